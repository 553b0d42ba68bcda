"""Partitions that have left their table: what they held is not gone by mistake, and an entry accepted from them is real.

A detached partition leaves no trace in the catalogue; it is found by its shape: a table of the same schema with exactly
the columns of the partitioned one, outside its tree, whose highest coordinate the tree does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.coordinates import INT64_MAX, INT64_MIN, Coordinate
from workers.connectors.postgresql.catalogue import Table
from workers.connectors.postgresql.coordinate_sql import ROW
from workers.connectors.postgresql.extent import end_read
from workers.connectors.postgresql.mapped_table import MappedTable

SAME_SHAPE = """
SELECT c.relname::text, has_table_privilege(c.oid, 'SELECT')
FROM pg_class c
WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = %(oid)s::bigint::oid)
  AND c.relkind = 'r' AND NOT c.relispartition AND NOT c.oid::bigint = ANY(%(leaves)s::bigint[])
  AND (SELECT array_agg(attname::text || ' ' || atttypid::text ORDER BY attname) FROM pg_attribute
       WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
    = (SELECT array_agg(attname::text || ' ' || atttypid::text ORDER BY attname) FROM pg_attribute
       WHERE attrelid = %(oid)s::bigint::oid AND attnum > 0 AND NOT attisdropped)
ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Detached:
    """One table that looks detached. `highest` None with `is_readable` False: what it held cannot be seen."""

    name: str
    highest: Coordinate | None
    is_readable: bool

    def says(self, mapped: MappedTable) -> str:
        if not self.is_readable:
            return (
                f"{self.name!r} looks like a partition detached from {mapped.options['table']!r}, and this role may not"
                " read it: entries accepted from it may look as if they were never committed. GRANT SELECT on it."
            )
        assert self.highest is not None
        return (
            f"{self.name!r} looks like a partition detached from {mapped.options['table']!r}: what it held, up to"
            f" {mapped.coordinate.format(self.highest)}, counts as dropped by retention, not as never committed."
        )


def detached_find(connection: psycopg.Connection[Any], mapped: MappedTable, table: Table) -> list[Detached]:
    """Tables that look detached from a partitioned table; none for any other table."""
    if table.relkind != "p":
        return []
    found = []
    names = connection.execute(SAME_SHAPE.encode(), {"oid": table.oid, "leaves": list(table.leaves)}).fetchall()
    for name, is_readable in names:
        if not is_readable:
            found.append(Detached(name, None, False))
            continue
        other = MappedTable({**mapped.options, "table": name}, mapped.types, mapped.has_soft_errors)
        highest = end_read(connection, other, is_highest=True)
        if highest is not None and not _holds(connection, mapped, highest):
            found.append(Detached(name, highest, True))
    return found


def floor_above(detached: list[Detached]) -> Coordinate | None:
    """The floor that what was detached leaves: the coordinate after the highest it held."""
    highest = max((one.highest for one in detached if one.highest is not None), default=None)
    if highest is None:
        return None
    if highest.ordinal < INT64_MAX:
        return Coordinate(highest.position, highest.ordinal + 1)
    return Coordinate(min(highest.position + 1, INT64_MAX), INT64_MIN)


def _holds(connection: psycopg.Connection[Any], mapped: MappedTable, coordinate: Coordinate) -> bool:
    row = connection.execute(
        sql.SQL("SELECT EXISTS (SELECT {}.* FROM {} WHERE ({}) = ({}))").format(
            sql.Identifier(ROW), mapped.rows, mapped.coordinate.native, mapped.coordinate.literal(coordinate)
        )
    ).fetchone()
    return bool(row and row[0])
