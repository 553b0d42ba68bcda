"""What an upgrade leaves behind: the parked kit's objects, and rights that others were given on them.

The law: nothing that is not the kit's is dropped. A table, function or type in the schema that the kit never made, or a
view elsewhere that stands on one of the kit's, stops the upgrade by name.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.errors import Unsuitable
from workers.connectors.sinks.kit import Names, quoted
from workers.connectors.sinks.kit.releases import releases

READING = {"n": "USAGE", "r": "SELECT"}
_MADE = re.compile(
    r"CREATE (?:UNLOGGED )?(FUNCTION|TABLE|TYPE|SEQUENCE|VIEW) \{schema\}\.([a-z_0-9]+(?:\{kit_version\})?)"
)


def names_made() -> dict[str, set[str]]:
    """What the kit's texts ever made: FUNCTION, TABLE, TYPE -> names."""
    made: dict[str, set[str]] = {"FUNCTION": set(), "TABLE": set(), "TYPE": set(), "SEQUENCE": set(), "VIEW": set()}
    for release in releases():
        for part in release.files:
            for kind, name in _MADE.findall(release.text.read(part)):
                made[kind].add(name.replace("{kit_version}", str(release.version)))
    return made


def parked_drop(connection: psycopg.Connection[Any], parked: str, schema: str) -> None:
    """Drops the parked kit, object by object. Raises: Unsuitable, naming what is not the kit's."""
    made = names_made()
    strange = [f"{kind.lower()} {name}" for kind, name, _ in _objects(connection, parked) if name not in made[kind]]
    if strange:
        _refuse(schema, f"it holds what is not the kit's: {', '.join(strange)}")
    try:
        with connection.transaction():
            for statement in _untied(connection, parked):
                connection.execute(statement)
            for wanted in ("FUNCTION", "TABLE", "TYPE"):
                found = [place for kind, _, place in _objects(connection, parked) if kind == wanted]
                if found:
                    places = sql.SQL(", ").join(map(sql.SQL, found))
                    connection.execute(sql.SQL("DROP {} {}").format(sql.SQL(wanted), places))
            connection.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(parked)))
    except psycopg.errors.DependentObjectsStillExist as error:
        detail = (error.diag.message_detail or "something stands on it").replace(parked, schema)
        _refuse(schema, f"other objects stand on the old kit's: {detail}", error)


def grants_carry(connection: psycopg.Connection[Any], parked: str, schema: str, names: Names) -> list[str]:
    """Gives others the reading they had of the old kit again; what else they had is told, a sentence each."""
    ours = [names.owner, names.relay, names.recoverer, names.auditor]
    lost = []
    query = """
        SELECT 'n' AS kind, '' AS name, x.grantee, x.privilege_type FROM pg_namespace n, LATERAL aclexplode(n.nspacl) x
            WHERE n.nspname = %(parked)s
        UNION ALL
        SELECT 'r', c.relname, x.grantee, x.privilege_type FROM pg_class c, LATERAL aclexplode(c.relacl) x
            WHERE c.relnamespace = %(place)s::regnamespace AND c.relkind IN ('r', 'v', 'm', 'p')
        UNION ALL
        SELECT 'f', p.proname, x.grantee, x.privilege_type FROM pg_proc p, LATERAL aclexplode(p.proacl) x
            WHERE p.pronamespace = %(place)s::regnamespace"""
    rows = connection.execute(
        "SELECT kind, name, CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who, privilege_type"
        f" FROM ({query}) g WHERE NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = g.grantee AND r.rolname = ANY (%(ours)s))"
        " AND NOT EXISTS (SELECT FROM pg_namespace o WHERE o.nspname = %(parked)s AND o.nspowner = g.grantee) ORDER BY 1, 2, 3, 4",
        {"parked": parked, "place": quoted(parked), "ours": ours},
    ).fetchall()
    for kind, name, who, privilege in rows:
        place = sql.Identifier(schema, name) if name else sql.Identifier(schema)
        exists = kind == "n" or (
            kind == "r"
            and connection.execute("SELECT to_regclass(%s)", (f"{quoted(schema)}.{quoted(name)}",)).fetchone()
            != (None,)
        )
        if exists and READING.get(kind) == privilege:
            on = sql.SQL("SCHEMA {}" if kind == "n" else "{}").format(place)
            connection.execute(sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(privilege), on, sql.SQL(who)))
        else:
            lost.append(f"{who} had {privilege} on {name or 'the schema'}; it was not given again.")
    return lost


def _untied(connection: psycopg.Connection[Any], parked: str) -> list[sql.Composed]:
    """What ties the parked tables to the parked functions, so that neither can be dropped first: taken off."""
    triggers = connection.execute(
        "SELECT t.tgname::text, c.relname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " WHERE c.relnamespace = %s::regnamespace AND NOT t.tgisinternal",
        (quoted(parked),),
    ).fetchall()
    generated = connection.execute(
        "SELECT a.attname::text, c.relname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE c.relnamespace = %s::regnamespace AND a.attgenerated <> '' AND NOT a.attisdropped",
        (quoted(parked),),
    ).fetchall()
    return [
        sql.SQL("DROP TRIGGER {} ON {}").format(sql.Identifier(name), sql.Identifier(parked, table))
        for name, table in triggers
    ] + [
        sql.SQL("ALTER TABLE {} DROP COLUMN {}").format(sql.Identifier(parked, table), sql.Identifier(name))
        for name, table in generated
    ]


def _objects(connection: psycopg.Connection[Any], parked: str) -> list[tuple[str, str, str]]:
    """Kind, name, and how DROP names it: functions, relations that are no index, and types of their own."""
    query = """
        SELECT 'FUNCTION', p.proname::text, p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = %(s)s::regnamespace
        UNION ALL
        SELECT CASE c.relkind WHEN 'c' THEN 'TYPE' WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,
            c.relname::text, c.oid::regclass::text
        FROM pg_class c WHERE c.relnamespace = %(s)s::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c')
        UNION ALL
        SELECT 'TYPE', t.typname::text, t.oid::regtype::text FROM pg_type t
        WHERE t.typnamespace = %(s)s::regnamespace AND t.typtype IN ('e', 'd', 'r')
        ORDER BY 1, 2"""
    return connection.execute(query, {"s": quoted(parked)}).fetchall()


def _refuse(schema: str, problem: str, error: Exception | None = None) -> None:
    raise Unsuitable(
        f"schema {schema!r}", problem, "Nothing was changed. Move it out of the kit's way, and upgrade again."
    ) from error
