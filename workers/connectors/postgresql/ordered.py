"""Advice where a coordinate gives no order: which columns of the table do, and the statement that adds such a column.

Many outboxes are keyed by a random id. The advice says exactly what such a table needs, what the new column orders and
what it does not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from psycopg import sql

from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import Unsuitable
from workers.connectors.postgresql.catalogue import Column, Server, Table, column_get
from workers.connectors.postgresql.coordinate_sql import INTEGERS, TEXTS
from workers.connectors.postgresql.identifiers import qualified

ORDERED = (*INTEGERS, "numeric", "xid8", "pg_lsn")
HAS_IDENTITY_ON_PARTITIONS = 170000
NEW_COLUMN = "insert_number"

ORDERS = (
    "It numbers rows from then on in the order of their INSERT, not of their commit: what is safe to judge still needs"
    " the share lock or a grace. Rows that exist are numbered as they lie on disk, which orders nothing: judge from the"
    " first row after it. It rewrites the table and keeps everybody out meanwhile."
)


def ordered_or_advise(options: Mapping[str, Any], names: Collection[str], table: Table, server: Server) -> None:
    """Nothing, where the coordinate's columns can be in order. Raises: NotFound; Unsuitable with what to do."""
    spelling = Spelling(options["coordinate_spelling"])
    for name in names:
        column = column_get(table, name)
        if column.type in ORDERED or (column.type in TEXTS and spelling is Spelling.PG_LSN):
            continue
        problem = (
            f"is {column.type} and cannot hold a {spelling.value} coordinate: it does not say in which order rows came"
        )
        raise Unsuitable(f"column {name!r}", problem, advice(table, server))


def added_or_advise(names: Collection[str], table: Table, server: Server) -> None:
    """Nothing, unless the coordinate is the column that is advised and it is not there. Raises: Unsuitable with how."""
    if NEW_COLUMN in names and NEW_COLUMN not in table.columns:
        raise Unsuitable(f"column {NEW_COLUMN!r}", "has not been added to the table yet", advice(table, server))


def advice(table: Table, server: Server) -> str:
    """Which columns could order the table, or else how one is added."""
    if found := [column.name for column in table.columns.values() if _is_drawn(column)]:
        return f"Columns here that can: {', '.join(map(repr, found))}."
    numbers = [column.name for column in table.columns.values() if column.type in INTEGERS]
    drawn = (
        f"No column here is drawn from a sequence ({', '.join(map(repr, numbers))}: only if who writes it numbers rows in their order)."
        if numbers
        else "No column here orders its rows."
    )
    if table.is_view:
        over = " and ".join(table.over)
        return f"{drawn} Add one to {over}, a bigint GENERATED ALWAYS AS IDENTITY, and show it in the view. {ORDERS}"
    return f"{drawn} This adds one: {statement(table, server)} {ORDERS}"


def statement(table: Table, server: Server) -> str:
    """What adds an ordered column to the table, to be run by its owner."""
    name = NEW_COLUMN
    while name in table.columns:
        name += "_"
    at, column = qualified(table.schema, table.name), sql.Identifier(name)
    if table.relkind != "p":
        add = sql.SQL("ALTER TABLE {} ADD COLUMN {} bigint GENERATED ALWAYS AS IDENTITY UNIQUE;")
        return add.format(at, column).as_string(None)
    index = sql.SQL("CREATE INDEX ON {} ({});").format(at, column).as_string(None)
    if server.version >= HAS_IDENTITY_ON_PARTITIONS:
        add = sql.SQL("ALTER TABLE {} ADD COLUMN {} bigint GENERATED ALWAYS AS IDENTITY;")
        return f"{add.format(at, column).as_string(None)} {index}"
    numbers = qualified(table.schema, f"{name}_seq")
    make = sql.SQL("CREATE SEQUENCE {}; ALTER TABLE {} ADD COLUMN {} bigint NOT NULL DEFAULT nextval({});")
    drawn = sql.Literal(numbers.as_string(None))
    return f"{make.format(numbers, at, column, drawn).as_string(None)} {index}"


def _is_drawn(column: Column) -> bool:
    if column.type in ("xid8", "pg_lsn"):
        return True
    return column.type in INTEGERS and bool(column.identity or (column.default or "").startswith("nextval("))
