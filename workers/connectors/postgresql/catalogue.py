"""What PostgreSQL's catalogue says about one mapped table. Only facts; what they mean is judged elsewhere.

Everything here is readable by a role that may do nothing but connect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import psycopg

from recovery_api.domain.errors import AccessDenied, NotFound
from workers.connectors.postgresql.identifiers import not_found


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `type` is the base type's name (domains resolved); `scale` None: a numeric without one."""

    name: str
    type: str
    scale: int | None
    is_not_null: bool
    identity: str
    default: str | None
    is_readable: bool

    @property
    def facts(self) -> dict[str, Any]:
        """What a task far away needs to read it."""
        return {"type": self.type, "scale": self.scale, "is_not_null": self.is_not_null}


@dataclass(frozen=True, slots=True)
class Table:
    """One table or view. `leaves` are the tables that hold its rows (itself, its partitions, or those that the view
    reads), by oid and printed name; `over` names the tables of a view, `definition` is the digest of what it says."""

    oid: int
    schema: str
    name: str
    relkind: str
    persistence: str
    is_row_security_active: bool
    columns: dict[str, Column]
    leaves: dict[int, str]
    detaching: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    definition: str = ""

    @property
    def is_view(self) -> bool:
        return self.relkind == "v"


@dataclass(frozen=True, slots=True)
class Server:
    """The server and database that answered."""

    version: int
    is_in_recovery: bool
    encoding: str
    database: str
    role: str
    system_identifier: str | None
    timeline: int | None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def has_soft_errors(self) -> bool:
        """PostgreSQL 16 and newer can say whether jsonb holds a text without raising an error."""
        return self.version >= 160000


RELKINDS = {
    "r": "table",
    "p": "partitioned table",
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
    "S": "sequence",
    "i": "index",
    "c": "composite type",
    "t": "TOAST table",
    "I": "partitioned index",
}

TABLE = """
SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text,
       row_security_active(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname::text = %s::text AND c.relname::text = %s::text
"""

COLUMNS = """
WITH RECURSIVE typed AS (
    SELECT a.attnum, a.atttypid AS typid, a.atttypmod AS typmod
    FROM pg_attribute a WHERE a.attrelid = %(oid)s::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT typed.attnum, t.typbasetype, t.typtypmod FROM typed JOIN pg_type t ON t.oid = typed.typid
    WHERE t.typtype = 'd'
)
SELECT a.attname::text, CASE WHEN n.nspname = 'pg_catalog' THEN '' ELSE n.nspname || '.' END || t.typname,
       CASE WHEN t.typname = 'numeric' AND typed.typmod >= 4 THEN ((typed.typmod - 4) & 2047 # 1024) - 1024 END,
       a.attnotnull, a.attidentity::text, pg_get_expr(d.adbin, d.adrelid),
       has_column_privilege(a.attrelid, a.attnum, 'SELECT')
FROM pg_attribute a
JOIN typed ON typed.attnum = a.attnum
JOIN pg_type t ON t.oid = typed.typid AND t.typtype <> 'd'
JOIN pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %(oid)s::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

LEAVES = """
WITH RECURSIVE tree AS (
    SELECT %(oid)s::bigint::oid AS oid, false AS is_detaching
    UNION ALL
    SELECT i.inhrelid, i.inhdetachpending FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid
)
SELECT c.oid::bigint, c.oid::regclass::text, bool_or(tree.is_detaching)
FROM tree JOIN pg_class c ON c.oid = tree.oid WHERE c.relkind <> 'p' GROUP BY c.oid
"""

NAMES = """
SELECT CASE WHEN n.nspname::text = %s::text THEN c.relname::text ELSE n.nspname || '.' || c.relname END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
"""

SERVER = """
SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('server_encoding'),
       current_database()::text, current_user::text, has_function_privilege('pg_control_system()', 'EXECUTE')
"""

CONTROL = """
SELECT (SELECT system_identifier::text FROM pg_control_system()),
       CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())
            ELSE ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int END
"""


def server_read(connection: psycopg.Connection[Any]) -> Server:
    """The server's facts; `system_identifier` and `timeline` None where the role may not see them."""
    version, is_in_recovery, encoding, database, role, may_see = _one(connection, SERVER)
    system, timeline = _one(connection, CONTROL) if may_see else (None, None)
    return Server(version, is_in_recovery, encoding, database, role, system, timeline)


def table_read(connection: psycopg.Connection[Any], schema: str, table: str) -> Table:
    """The table's facts.

    Raises: NotFound with the nearest names, for a schema or a table; AccessDenied where the role may not look inside.
    """
    where = f"database {connection.info.dbname!r}"
    found = connection.execute(TABLE, [schema, table]).fetchone()
    if found is None:
        schemas = [name for (name,) in connection.execute("SELECT nspname::text FROM pg_namespace")]
        if schema not in schemas:
            raise not_found("schema", schema, where, [name for name in schemas if not name.startswith("pg_")])
        raise not_found("table", table, f"schema {schema!r} of {where}", _table_names(connection, schema))
    oid = found[0]
    columns = {row[0]: Column(*row) for row in connection.execute(COLUMNS, {"oid": oid})}
    leaves = connection.execute(LEAVES, {"oid": oid}).fetchall()
    oid, schema, name, relkind, persistence, is_policed = found
    return Table(
        oid=oid,
        schema=schema,
        name=name,
        relkind=relkind,
        persistence=persistence,
        is_row_security_active=is_policed,
        columns=columns,
        leaves={leaf: printed for leaf, printed, _ in leaves},
        detaching=tuple(printed for _, printed, is_detaching in leaves if is_detaching),
    )


def column_get(table: Table, name: str) -> Column:
    """The column called so. Raises: NotFound with the nearest names."""
    if name not in table.columns:
        raise not_found("column", name, f"table {table.name!r} of schema {table.schema!r}", table.columns)
    return table.columns[name]


def privileges_check(connection: psycopg.Connection[Any], table: Table, names: list[str]) -> None:
    """Nothing, where the role may read the columns. Raises: AccessDenied with the grant that is missing."""
    role, may_use = _one(
        connection, "SELECT current_user::text, has_schema_privilege(%s::text, 'USAGE')", [table.schema]
    )
    place = f"{table.schema}.{table.name}"
    if not may_use:
        raise AccessDenied(place, f"role {role!r} may not use schema {table.schema!r}", "GRANT USAGE on the schema.")
    hidden = [name for name in names if not table.columns[name].is_readable]
    if hidden:
        problem = f"role {role!r} may not read {', '.join(repr(name) for name in hidden)}"
        raise AccessDenied(place, problem, "GRANT SELECT on the table, or on these columns.")


def _table_names(connection: psycopg.Connection[Any], schema: str) -> list[str]:
    return [name for (name,) in connection.execute(NAMES, [schema])]


def _one(connection: psycopg.Connection[Any], query: str, parameters: list[Any] | None = None) -> tuple[Any, ...]:
    row = connection.execute(query.encode(), parameters).fetchone()
    if row is None:
        raise NotFound("an answer", f"database {connection.info.dbname!r}", "")
    return tuple(row)
