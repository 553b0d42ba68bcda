"""A drill's copy of a table, in a schema of its own, and the table as a drill drives it.

The law: nothing here writes the pipeline's table. The copy is made LIKE it, so its types, checks and constraints are
the same; triggers, rules and foreign keys are left out, and the drill says so. The schema is dropped at the end. What a
crash leaves behind carries a mark, and the next drill removes it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from recovery_api.domain.errors import AccessDenied, SinkBusy
from workers.connectors.deadlines import Step
from workers.connectors.postgresql.connection import CANONICAL_SETTINGS, Address, connection_open, transaction_write
from workers.connectors.postgresql.opening import Opened
from workers.connectors.sinks.table.appending import AS_A_RELAY, appended
from workers.connectors.sinks.table.facts import TableFacts, facts_read
from workers.connectors.sinks.table.owed import OwedRows
from workers.connectors.sinks.table.synthetic import event_make
from workers.connectors.sinks.table.target import Target

MARK = "A drill's copy of a table. Fencepost removes it."
LOCK_SECONDS = 10
NAME = "fencepost drill"

MAY = """
SELECT current_user::text, has_database_privilege(current_database(), 'CREATE'),
       has_table_privilege(%s::bigint::oid, 'SELECT')
"""

DRAWN = """
SELECT a.attname::text FROM pg_attrdef d
JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
JOIN pg_depend p ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_class'::regclass
JOIN pg_class s ON s.oid = p.refobjid AND s.relkind = 'S'
WHERE d.adrelid = %s::bigint::oid
"""
"""Columns whose default draws from a sequence: the copy's would draw from the pipeline's."""

LEFT = """
SELECT n.nspname::text FROM pg_namespace n
WHERE starts_with(n.nspname::text, %s) AND obj_description(n.oid, 'pg_namespace') = %s
"""

TableOpen = Callable[[psycopg.Connection[Any]], Opened]


@contextmanager
def namespace_open(address: Address, table_open: TableOpen) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The schema that holds a fresh copy of the table, and what is to be said of it; gone at the end.

    Raises: AccessDenied saying what to grant.
    """
    with connection_open(address, NAME) as connection:
        connection.execute("SET search_path = pg_catalog")
        opened = table_open(connection)
        facts = facts_read(connection, opened.table)
        _may_check(connection, opened)
        stem = _stem(connection.info.dbname, opened)
        for (name,) in connection.execute(LEFT, [f"{stem}_", MARK]).fetchall():
            _remove(connection, name)
        name = f"{stem}_{secrets.token_hex(4)}"
        _make(connection, name, opened)
    try:
        yield name, tuple(_notes(opened, facts))
    finally:
        with connection_open(address, NAME) as connection:
            _remove(connection, name)


def _make(connection: psycopg.Connection[Any], schema: str, opened: Opened) -> None:
    place, table = sql.Identifier(schema), opened.table
    copy = sql.Identifier(schema, table.name)
    with connection.transaction():
        connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(place))
        connection.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(place, sql.Literal(MARK)))
        like = sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)")
        connection.execute(like.format(copy, sql.Identifier(table.schema, table.name)))
        for (column,) in connection.execute(DRAWN.encode(), [table.oid]).fetchall():
            sequence = sql.Identifier(schema, f"{hashlib.sha256(column.encode()).hexdigest()[:8]}_seq")
            connection.execute(sql.SQL("CREATE SEQUENCE {}").format(sequence))
            default = sql.SQL("ALTER TABLE {} ALTER COLUMN {} SET DEFAULT nextval({})")
            drawn = sql.Literal(sequence.as_string())
            connection.execute(default.format(copy, sql.Identifier(column), drawn))


def _notes(opened: Opened, facts: TableFacts) -> Iterator[str]:
    left_out = [
        *(f"trigger {one.name!r}" for one in facts.triggers),
        *(f"foreign key {one!r}" for one in facts.foreign_keys),
    ]
    if left_out:
        yield f"The copy has none of the table's triggers and foreign keys: {', '.join(left_out)}."
    if opened.table.relkind == "p" or len(opened.table.leaves) > 1:
        yield "The copy is one plain table, without partitions."
    yield "Rights are looked at in the table itself; the copy belongs to the login that drills."


def _may_check(connection: psycopg.Connection[Any], opened: Opened) -> None:
    role, may_create, may_select = connection.execute(MAY.encode(), [opened.table.oid]).fetchone() or ("", False, False)
    name = sql.Identifier(role).as_string()
    grants = []
    if not may_create:
        grants.append(f"GRANT CREATE ON DATABASE {sql.Identifier(connection.info.dbname).as_string()} TO {name};")
    if not may_select:
        place = sql.Identifier(opened.table.schema, opened.table.name).as_string()
        grants.append(f"GRANT SELECT ON {place} TO {name};")
    if grants:
        remedy = f"{' '.join(grants)} Or name another login in the sink's option drill_connection."
        raise AccessDenied("The drill's copy", f"{role} may not make a schema with a copy of the table", remedy)


def _stem(database: str, opened: Opened) -> str:
    told = f"{database}:{opened.table.schema}.{opened.table.name}"
    return f"fencepost_drill_{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def _remove(connection: psycopg.Connection[Any], name: str) -> None:
    with connection.transaction():
        connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


@dataclass(frozen=True)
class DrilledTable:
    """A copy as a drill drives it: as a recoverer that stops before its commit, and as a relay that knows no protocol."""

    address: Address
    table_open: TableOpen

    def event(self, coordinate: int, variant: str = "") -> dict[str, Any]:
        """One synthetic event of schemas.BATCH that the mapped columns' types can hold. `variant`: another content."""
        with connection_open(self.address, NAME) as connection:
            connection.execute("SET search_path = pg_catalog")
            opened = self.table_open(connection)
            return event_make(opened.mapped, facts_read(connection, opened.table).columns, coordinate, variant)

    @contextmanager
    def append_held(self, batch: pa.RecordBatch, wait_seconds: float = 5.0) -> Iterator[dict[str, Any]]:
        """A recoverer that has appended and read back, and commits at the end; an error inside it is its death."""
        with appended(self.address, self.table_open, iter([batch]), wait_seconds) as figures:
            yield figures.as_row()

    @contextmanager
    def send_held(self, batch: pa.RecordBatch, wait_seconds: float = 5.0) -> Iterator[str]:
        """A relay's plain INSERT, committed at the end: `accepted`, or `refused` by a unique constraint.

        Raises: SinkBusy where it waits for a lock for longer.
        """
        step = Step("a plain send", len(batch), wait_seconds)
        with (
            connection_open(self.address, f"{NAME} relay", step) as connection,
            transaction_write(connection, self.address),
        ):
            connection.execute(CANONICAL_SETTINGS)
            rows = OwedRows(connection, Target.open(connection, self.table_open(connection)))
            with connection.cursor() as cursor:
                rows.copy(cursor, batch, 0)
            rows.digest()
            rows.bring()
            connection.execute(f"{AS_A_RELAY} SET LOCAL lock_timeout = {max(1, round(wait_seconds * 1000))}")
            try:
                with connection.transaction():
                    rows.insert_plain()
                word = "accepted"
            except psycopg.errors.UniqueViolation:
                word = "refused"
            except psycopg.errors.LockNotAvailable as error:
                error._pgconn = None  # it holds the password in plain
                raise SinkBusy("the table's lock", f"{wait_seconds:g}") from error
            yield word
