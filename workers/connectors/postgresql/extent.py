"""How far a table reaches: its lowest and highest coordinates, about how many rows, and where they lie.

The grid is a list of coordinates with about equally many rows between them, from a sample of pages (no scan). Ranges
for tasks and blocks for packed reads are cut at its points. A poor sample makes uneven ranges, never wrong ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Unsuitable
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.postgresql.packed import Block, packed_integer, read_packed
from workers.connectors.readings import CoordinateRange
from workers.connectors.rows import Grid

ROWS_A_BLOCK = 131_072
CELLS_LEAST, CELLS_MOST = 64, 8192
PAGES_A_CELL = 8
PAGES_LEAST = 256


@dataclass(frozen=True, slots=True)
class Extent:
    """`lowest` and `highest` None: there are no rows. `has_null`: a row without a coordinate exists."""

    lowest: Coordinate | None
    highest: Coordinate | None
    estimated_rows: int


def extent_read(connection: psycopg.Connection[Any], mapped: MappedTable) -> Extent:
    """The table's ends in the transaction's snapshot. Raises: Unsuitable where a coordinate is null."""
    null = mapped.coordinate.is_null
    if null is not None:
        exists = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE {})").format(mapped.rows, null)
        if _value(connection, exists):
            raise Unsuitable(
                f"table {mapped.options['table']!r}",
                f"has rows whose coordinate ({', '.join(mapped.options['coordinate'])}) is null",
                "A row without a coordinate cannot be judged: make the column NOT NULL, or map another.",
            )
    plan = _value(connection, sql.SQL("EXPLAIN (FORMAT JSON) SELECT FROM {}").format(mapped.rows))
    plan = json.loads(plan) if isinstance(plan, str) else plan
    rows = int(plan[0]["Plan"]["Plan Rows"])
    lowest, highest = end_read(connection, mapped), end_read(connection, mapped, is_highest=True)
    return Extent(lowest, highest, rows if lowest is not None else 0)


def end_read(connection: psycopg.Connection[Any], mapped: MappedTable, is_highest: bool = False) -> Coordinate | None:
    """The lowest or highest coordinate; None where there is no row."""
    coordinate = mapped.coordinate
    null = coordinate.is_null
    row = connection.execute(
        sql.SQL("SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT 1").format(
            sql.SQL(", ").join(component.send for component in coordinate.components),
            mapped.rows,
            sql.SQL("true") if null is None else sql.SQL("NOT ") + null,
            coordinate.order(is_descending=is_highest),
        )
    ).fetchone()
    return None if row is None else coordinate.hold(list(row))


def grid_read(connection: psycopg.Connection[Any], mapped: MappedTable, extent: Extent, pages: int) -> Grid:
    """Points with about equally many rows between them; fewer than CELLS_LEAST only where there are fewer rows.

    `pages`: how many the table has, in all its leaves.
    """
    cells = min(max(extent.estimated_rows // ROWS_A_BLOCK, CELLS_LEAST), CELLS_MOST)
    percent = min(100.0, 100.0 * max(PAGES_A_CELL * cells, PAGES_LEAST) / max(pages, 1))
    sampled = mapped.rows_sampled(sql.SQL("TABLESAMPLE SYSTEM ({}) REPEATABLE (1)").format(sql.Literal(percent)))
    components = mapped.coordinate.components
    columns = [packed_integer(str(at), component.send, component.held) for at, component in enumerate(components)]
    null = mapped.coordinate.is_null
    rows = list(
        read_packed(connection, columns, sampled, [Block(sql.SQL("true") if null is None else sql.SQL("NOT ") + null)])
    )
    if not rows:
        return []
    numbers = [np.asarray(rows[0][str(at)]) for at in range(len(components))]
    order = np.lexsort(numbers[::-1])
    chosen = order[np.unique(np.linspace(0, len(order) - 1, cells + 1).astype(np.int64))[1:]]
    ordinals = numbers[1] if len(numbers) > 1 else np.zeros_like(numbers[0])
    points = np.unique(np.stack([numbers[0][chosen], ordinals[chosen]], axis=1), axis=0)
    return [[int(position), int(ordinal)] for position, ordinal in points]


def grid_even(extent: Extent) -> Grid:
    """Points at even distances between the ends: of a view no pages can be sampled, and its rows are not counted."""
    if extent.lowest is None or extent.highest is None:
        return []
    low, high = extent.lowest.position, extent.highest.position
    cells = min(max(extent.estimated_rows // ROWS_A_BLOCK, CELLS_LEAST), CELLS_MOST)
    cuts = {low + (high - low) * at // cells for at in range(1, cells)} | {high}
    return [[cut, 0] for cut in sorted(cuts)]


def blocks_of(grid: Grid, range_: CoordinateRange, rows: int) -> list[CoordinateRange]:
    """The range cut into blocks of about ROWS_A_BLOCK. `rows`: how many the whole table has."""
    stride = max(1, round(ROWS_A_BLOCK * len(grid) / max(rows, 1)))
    inside = [point for point in (Coordinate(*pair) for pair in grid) if _is_inside(point, range_)]
    cuts = inside[stride - 1 :: stride]
    lows: Sequence[Coordinate | None] = [range_.low, *cuts]
    highs: Sequence[Coordinate | None] = [*cuts, range_.high]
    return [CoordinateRange(range_.lane, low, high) for low, high in zip(lows, highs, strict=True)]


def blocks_are_bounded(blocks: Sequence[CoordinateRange]) -> bool:
    """Whether they are parts of a table, not one that takes all of it."""
    return any(block.low is not None or block.high is not None for block in blocks)


def _is_inside(point: Coordinate, range_: CoordinateRange) -> bool:
    return (range_.low is None or range_.low < point) and (range_.high is None or point < range_.high)


def _value(connection: psycopg.Connection[Any], query: sql.Composed) -> Any:
    row = connection.execute(query).fetchone()
    return None if row is None else row[0]
