"""Whether an index carries the coordinate: without one every range is a scan of the whole table."""

from __future__ import annotations

import json
from typing import Any

import psycopg
from psycopg import sql

from workers.connectors.postgresql.catalogue import Table
from workers.connectors.postgresql.mapped_table import MappedTable

LEADING = """
SELECT i.indisunique, array_agg(a.attname::text ORDER BY k.n), i.indnkeyatts
FROM pg_index i
JOIN pg_class ic ON ic.oid = i.indexrelid
JOIN pg_am am ON am.oid = ic.relam AND am.amname = 'btree'
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, n)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = %s::bigint::oid AND i.indisvalid AND i.indpred IS NULL AND k.n <= i.indnkeyatts
GROUP BY i.indexrelid, i.indisunique, i.indnkeyatts
"""


def has_coordinate_index(connection: psycopg.Connection[Any], mapped: MappedTable, table: Table) -> bool:
    """Whether a B-tree begins with the coordinate's columns, as they are compared."""
    if not all(component.is_plain for component in mapped.coordinate.components):
        return False
    if table.is_view:
        return _gives_order(connection, mapped)
    wanted = list(mapped.options["coordinate"])
    return any(names[: len(wanted)] == wanted for _, names, _ in _indexes(connection, table))


def _gives_order(connection: psycopg.Connection[Any], mapped: MappedTable) -> bool:
    """Whether the planner can give a view's rows in their order without sorting them: it reads an index then."""
    query = sql.SQL("EXPLAIN (FORMAT JSON) SELECT FROM {} ORDER BY {} LIMIT 1").format(
        mapped.rows, mapped.coordinate.order()
    )
    with connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off")
        row = connection.execute(query).fetchone()
    return row is not None and "Sort" not in json.dumps(row[0])


def is_coordinate_unique(connection: psycopg.Connection[Any], mapped: MappedTable, table: Table) -> bool:
    """Whether a unique index rules out two rows at one coordinate."""
    wanted = set(mapped.options["coordinate"])
    return any(is_unique and set(names) <= wanted for is_unique, names, _ in _indexes(connection, table))


UNIQUES = """
SELECT array_agg(a.attname::text ORDER BY k.n)
FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, n)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
WHERE i.indrelid = %s::bigint::oid AND i.indisunique AND i.indisvalid AND i.indisready AND i.indimmediate
  AND i.indpred IS NULL AND i.indexprs IS NULL AND k.n <= i.indnkeyatts
GROUP BY i.indexrelid
"""


def exact_uniques(connection: psycopg.Connection[Any], table: Table) -> list[set[str]]:
    """The columns of each unique constraint or index that holds at every moment and for every row: valid, not deferrable,
    not partial."""
    return [set(names) for (names,) in connection.execute(UNIQUES.encode(), [table.oid])]


UNIQUE_FLAWS = """
SELECT c.relname::text, i.indisvalid AND i.indisready, i.indimmediate, i.indpred IS NULL
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attname::text = %s::text
WHERE i.indrelid = %s::bigint::oid AND i.indisunique AND i.indnkeyatts = 1
"""


def unique_problem(connection: psycopg.Connection[Any], table: Table, column: str) -> str:
    """Why nothing keeps two rows from having one value in `column`; "" where a constraint does."""
    if {column} in exact_uniques(connection, table):
        return ""
    for name, is_valid, is_immediate, is_whole in connection.execute(UNIQUE_FLAWS.encode(), [column, table.oid]):
        if not is_valid:
            return f"has a unique index, {name!r}, that is not valid: its build failed, or still runs"
        if not is_immediate:
            return f"has a unique constraint, {name!r}, that is deferrable: two rows may share a value for a while"
        if not is_whole:
            return f"has a unique index, {name!r}, of some rows only"
    return "has no UNIQUE constraint of its own: two events may share one"


def latest_by(connection: psycopg.Connection[Any], mapped: MappedTable, table: Table) -> str | None:
    """`entry` where the latest rows are found by it without scanning more than the coordinate would; else None."""
    column = mapped.options.get("entry")
    has_entry_index = any(names[:1] == [column] for _, names, _ in _indexes(connection, table))
    return "entry" if column and (has_entry_index or not has_coordinate_index(connection, mapped, table)) else None


def _indexes(connection: psycopg.Connection[Any], table: Table) -> list[tuple[bool, list[str], int]]:
    return [tuple(row) for row in connection.execute(LEADING.encode(), [table.oid])]
