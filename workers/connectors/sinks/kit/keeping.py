"""What an upgrade keeps: the record's table as it lies on disk, and the rows of the small tables.

The law: nothing accepted is copied, and nothing that is copied changes its meaning. A key that was held as text is cast
to the target's own type under pinned settings; where that could be read two ways the upgrade is refused, with the rows.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.errors import Unsuitable
from workers.connectors.sinks.kit import KIT_VERSION, Names, quoted
from workers.connectors.sinks.kit.versions import FACTS_TABLE

PINNED = (
    ("TimeZone", "UTC"),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("bytea_output", "hex"),
    ("extra_float_digits", "1"),
)
COPIED_FIRST = ("generation", "claim")
SPELLED_BY_SETTINGS = ("date", "timestamp without time zone", "timestamp with time zone", "interval", "money")
"""Types whose text means one thing under one session's settings and another under another's."""
NAMED_AT_MOST = 5


def table_keep(connection: psycopg.Connection[Any], parked: str, schema: str, table: str, names: Names) -> None:
    """Moves a table from the parked schema in place of the new, empty one, and makes it equal to that one.

    Columns, constraints, triggers, owner and the kit's grants become the new one's; rules, policies and other triggers
    go, and so does an index that it has too many.
    """
    old, new = sql.Identifier(parked, table), sql.Identifier(schema, table)
    old_oid, new_oid = _oid(connection, parked, table), _oid(connection, schema, table)
    statements: list[sql.Composed] = []
    for kind, name in _attached(connection, old_oid):
        statements.append(sql.SQL("DROP {} {} ON {}").format(sql.SQL(kind), sql.Identifier(name), old))
    wanted, held = _columns(connection, new_oid), _columns(connection, old_oid)
    for name, definition in wanted.items():
        if name not in held:
            statements.append(
                sql.SQL("ALTER TABLE {} ADD COLUMN {} {}").format(old, sql.Identifier(name), sql.SQL(definition))
            )
    constraints, had = _constraints(connection, new_oid), _constraints(connection, old_oid)
    for name, definition in had.items():
        if constraints.get(name) != definition:
            statements.append(sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(old, sql.Identifier(name)))
    for name, definition in constraints.items():
        if had.get(name) != definition:
            statements.append(
                sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} {}").format(old, sql.Identifier(name), sql.SQL(definition))
            )
    for name in _indexes(connection, old_oid) - _indexes(connection, new_oid):
        statements.append(sql.SQL("DROP INDEX {}").format(sql.Identifier(parked, name)))
    statements += [
        sql.SQL("ALTER TABLE {} DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY").format(old),
        sql.SQL("ALTER TABLE {} OWNER TO {}").format(old, sql.Identifier(names.owner)),
    ]
    statements_after = _triggers_and_grants(connection, new_oid, new)
    statements += [
        sql.SQL("DROP TABLE {}").format(new),
        sql.SQL("ALTER TABLE {} SET SCHEMA {}").format(old, sql.Identifier(schema)),
        *statements_after,
    ]
    for statement in statements:
        connection.execute(statement)


def rows_keep(connection: psycopg.Connection[Any], parked: str, schema: str, version: int) -> None:
    """Copies the rows of every other table of the parked kit into the new one of the same name."""
    for name, value in PINNED:
        connection.execute("SELECT set_config(%s, %s, true)", (name, value))
    shared = [
        name
        for (name,) in connection.execute(
            "SELECT o.relname FROM pg_class o JOIN pg_class n ON n.relname = o.relname AND n.relkind = o.relkind"
            " WHERE o.relkind = 'r' AND o.relnamespace = %s::regnamespace AND n.relnamespace = %s::regnamespace"
            " AND o.relname NOT IN ('counter', 'applied') ORDER BY 1",
            (quoted(parked), quoted(schema)),
        )
    ]
    _row_keep(connection, parked, FACTS_TABLE[version], schema)
    connection.execute(
        sql.SQL("UPDATE {} SET allocated = o.allocated FROM {} o").format(
            sql.Identifier(schema, "counter"), sql.Identifier(parked, "counter")
        )
    )
    for table in sorted(shared, key=lambda name: (*(name != one for one in COPIED_FIRST), name)):
        _rows_copy(connection, parked, schema, table)
    _applied_copy(connection, parked, schema)
    connection.execute(
        sql.SQL(
            "UPDATE {} p SET fence_purpose = g.purpose, fence_asked_by = g.asked_by FROM {} g WHERE g.number = p.fence"
        ).format(sql.Identifier(schema, FACTS_TABLE[KIT_VERSION]), sql.Identifier(schema, "generation"))
    )


def _row_keep(connection: psycopg.Connection[Any], parked: str, table: str, schema: str) -> None:
    """The one row of fence, identity and limits; version and effect are the new text's."""
    new = FACTS_TABLE[KIT_VERSION]
    columns = [
        name
        for name in _shared_columns(connection, (parked, table), (schema, new))
        if name not in ("is_only", "kit_version", "effect")
    ]
    pairs = sql.SQL(", ").join(sql.SQL("{0} = o.{0}").format(sql.Identifier(name)) for name in columns)
    connection.execute(
        sql.SQL("UPDATE {} SET {} FROM {} o").format(sql.Identifier(schema, new), pairs, sql.Identifier(parked, table))
    )


def _rows_copy(connection: psycopg.Connection[Any], parked: str, schema: str, table: str) -> None:
    columns = _shared_columns(connection, (parked, table), (schema, table))
    if not columns:
        return
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    keys = sql.SQL(", ").join(map(sql.Identifier, _key(connection, schema, table)))
    updates = sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in columns)
    connection.execute(
        sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} ON CONFLICT ({}) DO UPDATE SET {}").format(
            sql.Identifier(schema, table), names, names, sql.Identifier(parked, table), keys, updates
        )
    )


def _applied_copy(connection: psycopg.Connection[Any], parked: str, schema: str) -> None:
    """The last applied coordinate of each key: two spellings of one key become one, with the later coordinate."""
    old, new = sql.Identifier(parked, "applied"), sql.Identifier(schema, "applied")
    type_ = _type_of(connection, schema, "applied", "key")
    if type_ is None:
        return
    columns = _shared_columns(connection, (parked, "applied"), (schema, "applied"))
    if type_ != "text":
        _uncastable_refuse(connection, old, type_, schema)
    key = sql.SQL("o.key::{}").format(sql.SQL(type_)) + sql.SQL(_collation_of(connection, schema))
    chosen = sql.SQL(", ").join(key if name == "key" else sql.Identifier("o", name) for name in columns)
    connection.execute(
        sql.SQL(
            "INSERT INTO {} ({}) SELECT DISTINCT ON (o.lane, {}) {} FROM {} o"
            " ORDER BY o.lane, {}, o.position DESC, o.ordinal DESC"
        ).format(new, sql.SQL(", ").join(map(sql.Identifier, columns)), key, chosen, old, key)
    )


def _uncastable_refuse(connection: psycopg.Connection[Any], old: sql.Composable, type_: str, schema: str) -> None:
    """Counts the keys that are no value of the type, or could be two; they are named by their coordinates."""
    base = type_.partition("(")[0]
    again = "true"
    if base in SPELLED_BY_SETTINGS:
        again = f"found.key::{type_}::text = found.key" + (
            " OR found.key ~ '^[0-9]{4,}-[0-9]{2}-[0-9]{2} [0-9:.]+[+-][0-9:]+( BC)?$'"
            if base == "timestamp with time zone"
            else ""
        )
    connection.execute(
        sql.SQL(
            """
            CREATE FUNCTION pg_temp.fencepost_keys_that_stay_out() RETURNS TABLE (lane text, place text)
            LANGUAGE plpgsql AS $$
            DECLARE
                found record;
                is_one boolean;
            BEGIN
                FOR found IN SELECT o.lane, o.key, o.position, o.ordinal FROM {old} o ORDER BY 1, 3, 4 LOOP
                    BEGIN
                        is_one := {again};
                    EXCEPTION WHEN data_exception OR datetime_field_overflow OR program_limit_exceeded THEN
                        is_one := false;
                    END;
                    IF is_one IS NOT TRUE THEN
                        lane := found.lane;
                        place := found.position || ':' || found.ordinal;
                        RETURN NEXT;
                    END IF;
                END LOOP;
            END
            $$
            """
        ).format(
            old=old,
            again=sql.SQL(again if base in SPELLED_BY_SETTINGS else f"found.key::{type_} IS NOT NULL"),
        )
    )
    rows = connection.execute(
        "SELECT lane, place, count(*) OVER () FROM pg_temp.fencepost_keys_that_stay_out() LIMIT %s", (NAMED_AT_MOST,)
    ).fetchall()
    connection.execute("DROP FUNCTION pg_temp.fencepost_keys_that_stay_out()")
    if rows:
        named = ", ".join(f"lane {lane} at {place}" for lane, place, _ in rows)
        raise Unsuitable(
            f"schema {schema!r}",
            f"{rows[0][2]} applied keys cannot be read as one value of the target's type {type_}: last applied in {named}",
            "Nothing was changed. Their text was written under other settings (DateStyle, TimeZone), or the key's type"
            " was changed since. Write these rows of `applied` in ISO form, as the owner, and upgrade again.",
        )


def _attached(connection: psycopg.Connection[Any], oid: int) -> list[tuple[str, str]]:
    return connection.execute(
        "SELECT 'TRIGGER', tgname::text FROM pg_trigger WHERE tgrelid = %(oid)s AND NOT tgisinternal"
        " UNION ALL SELECT 'RULE', rulename::text FROM pg_rewrite WHERE ev_class = %(oid)s"
        " UNION ALL SELECT 'POLICY', polname::text FROM pg_policy WHERE polrelid = %(oid)s",
        {"oid": oid},
    ).fetchall()


def _columns(connection: psycopg.Connection[Any], oid: int) -> dict[str, str]:
    """Name -> type, collation, NOT NULL and default, as ADD COLUMN takes them."""
    query = """
        SELECT a.attname, format_type(a.atttypid, a.atttypmod)
            || CASE WHEN a.attcollation <> t.typcollation AND a.attcollation <> 0
                    THEN ' COLLATE ' || a.attcollation::regcollation::text ELSE '' END
            || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '')
            || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
        FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
    return dict(connection.execute(query, (oid,)).fetchall())


def _constraints(connection: psycopg.Connection[Any], oid: int) -> dict[str, str]:
    query = "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s AND contype IN ('c','p','u','x','f')"
    return dict(connection.execute(query, (oid,)).fetchall())


def _indexes(connection: psycopg.Connection[Any], oid: int) -> set[str]:
    query = (
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = %s"
        " AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.conrelid = i.indrelid)"
    )
    return {name for (name,) in connection.execute(query, (oid,))}


def _triggers_and_grants(connection: psycopg.Connection[Any], oid: int, table: sql.Composable) -> list[sql.Composed]:
    """What is to be done again on the table that takes this one's place."""
    statements: list[sql.Composed] = []
    for name, definition, enabled in connection.execute(
        "SELECT tgname, pg_get_triggerdef(oid), tgenabled FROM pg_trigger WHERE tgrelid = %s AND NOT tgisinternal",
        (oid,),
    ):
        statements.append(sql.SQL("{}").format(sql.SQL(definition)))
        mode = {"A": "ENABLE ALWAYS", "R": "ENABLE REPLICA", "D": "DISABLE", "O": "ENABLE"}[enabled]
        statements.append(sql.SQL("ALTER TABLE {} {} TRIGGER {}").format(table, sql.SQL(mode), sql.Identifier(name)))
    for grantee, privilege in connection.execute(
        "SELECT x.grantee::regrole::text, x.privilege_type FROM pg_class c, LATERAL aclexplode(c.relacl) x"
        " WHERE c.oid = %s AND x.grantee <> c.relowner AND x.grantee <> 0",
        (oid,),
    ):
        statements.append(sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(privilege), table, sql.SQL(grantee)))
    return statements


def _shared_columns(connection: psycopg.Connection[Any], old: tuple[str, str], new: tuple[str, str]) -> list[str]:
    query = """
        SELECT o.attname FROM pg_attribute o JOIN pg_attribute n ON n.attname = o.attname
        WHERE o.attrelid = to_regclass(%s) AND n.attrelid = to_regclass(%s) AND o.attnum > 0 AND n.attnum > 0
            AND NOT o.attisdropped AND NOT n.attisdropped AND n.attgenerated = '' ORDER BY n.attnum"""
    places = [f"{quoted(schema)}.{quoted(table)}" for schema, table in (old, new)]
    return [name for (name,) in connection.execute(query, places)]


def _key(connection: psycopg.Connection[Any], schema: str, table: str) -> list[str]:
    query = """
        SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = to_regclass(%s) AND i.indisprimary"""
    return [name for (name,) in connection.execute(query, (f"{quoted(schema)}.{quoted(table)}",))]


def _type_of(connection: psycopg.Connection[Any], schema: str, table: str, column: str) -> str | None:
    query = (
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = %s"
    )
    row = connection.execute(query, (f"{quoted(schema)}.{quoted(table)}", column)).fetchone()
    return row and row[0]


def _collation_of(connection: psycopg.Connection[Any], schema: str) -> str:
    """` COLLATE …` of the applied keys, or nothing where their type has none."""
    query = (
        "SELECT coalesce(' COLLATE ' || nullif(attcollation, 0)::regcollation::text, '') FROM pg_attribute"
        " WHERE attrelid = to_regclass(%s) AND attname = 'key'"
    )
    row = connection.execute(query, (f"{quoted(schema)}.applied",)).fetchone()
    return str(row[0]) if row else ""


def _oid(connection: psycopg.Connection[Any], schema: str, table: str) -> int:
    row = connection.execute("SELECT to_regclass(%s)::oid::bigint", (f"{quoted(schema)}.{quoted(table)}",)).fetchone()
    if row is None or row[0] is None:
        raise Unsuitable(f"schema {schema!r}", f"it has no table {table}", "What is left is not a sink kit.")
    return int(row[0])
