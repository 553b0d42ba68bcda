"""Where a lane is cut into ranges: at places that both ends name, so that each range holds about as many rows of both.

The law: a cut decides who reads a row and never whether it is read. A poor estimate makes uneven ranges, no wrong ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.ledger.following import LaneBlocks
from workers.connectors.protocols.record import DividedRecord, Record
from workers.connectors.protocols.source import Source
from workers.connectors.readings import CoordinateRange, Reading

ROWS_A_RANGE = 750_000
"""Rows of both ends together that one task reads, about. One that meets more than twice as many cuts its range again: so
many events, none of which arrived, are what it has memory for (tests/unit/test_holding.py)."""

RANGES_LEAST = 8
"""Of all lanes together: cheap, and enough for a few processors."""

ROWS_LEAST = 65_536
"""With fewer rows a range it is not worth a task and its connections, however many slots the engine has."""

CELLS_A_RANGE, CELLS_MOST = 32, 8192
"""How finely an end is asked where its rows lie."""


class Cell(NamedTuple):
    """About `rows` rows of one end below `high`, from the cell before it on."""

    high: Coordinate
    rows: float


def ranges_wanted(rows: int, slots: int, least: int = RANGES_LEAST) -> int:
    """Into how many ranges a lane of so many rows of both ends is cut: a multiple of the engine's slots where that pays.

    >>> [ranges_wanted(rows, 6) for rows in (0, 500_000, 10_000_000, 2_000_000_000)]
    [8, 8, 18, 2670]
    """
    wanted = max(least, math.ceil(rows / ROWS_A_RANGE))
    filled = math.ceil(wanted / slots) * slots
    return filled if rows >= filled * ROWS_LEAST else wanted


def lane_cut(lane: str, count: int, ends: Sequence[Sequence[Cell]]) -> list[CoordinateRange]:
    """At most `count` ranges that cover the lane, open at both ends, with about as many rows of all `ends` in each."""
    cells = sorted(cell for end in ends for cell in end)
    if not cells or count < 2:
        return [CoordinateRange(lane, None, None)]
    reached = np.cumsum([cell.rows for cell in cells])
    shares = reached[-1] * np.arange(1, count) / count
    chosen = {cells[min(int(at), len(cells) - 1)].high for at in np.searchsorted(reached, shares)}
    return ranges_between(CoordinateRange(lane, None, None), sorted(chosen))


def ranges_between(whole: CoordinateRange, cuts: Sequence[Coordinate]) -> list[CoordinateRange]:
    """`whole` cut at these coordinates, ascending, as far as they lie inside it."""
    inside = [
        one for one in cuts if (whole.low is None or whole.low < one) and (whole.high is None or one < whole.high)
    ]
    lows, highs = [whole.low, *inside], [*inside, whole.high]
    return [CoordinateRange(whole.lane, low, high) for low, high in zip(lows, highs, strict=True)]


def ranges_cut(
    lanes: Iterable[str],
    source: tuple[Source, Reading],
    record: tuple[Record, Reading],
    known: Mapping[str, LaneBlocks],
    slots: int,
    least: int = RANGES_LEAST,
) -> list[CoordinateRange]:
    """Every lane in ranges: cut at the ledger's blocks, whose rows are known, and above them where the ends say.

    All lanes together are as many ranges as `ranges_wanted` says, and one more for each lane at most.
    """
    rows = {lane: _rows(lane, source[1], record[1], known.get(lane)) for lane in lanes}
    total = sum(rows.values())
    wanted = ranges_wanted(total, slots, least)
    ranges = []
    for lane, mine in rows.items():
        count = math.ceil(wanted * mine / total) if total else 1
        ranges += lane_cut(lane, count, _ends(lane, source, record, known.get(lane), count))
    return ranges


def _rows(lane: str, source: Reading, record: Reading, blocks: LaneBlocks | None) -> int:
    """About how many rows both ends have of the lane."""
    estimated = sum(reading.lanes[lane].estimated_rows for reading in (source, record) if lane in reading.lanes)
    return max(estimated, round(sum(cell.rows for cell in _known(blocks))))


def _ends(
    lane: str,
    source: tuple[Source, Reading],
    record: tuple[Record, Reading],
    blocks: LaneBlocks | None,
    count: int,
) -> list[list[Cell]]:
    if count < 2:
        return []
    finely = min(CELLS_MOST, count * CELLS_A_RANGE)
    cells = [_cells(source, lane, finely)] if lane in source[1].lanes else []
    if lane in record[1].lanes and isinstance(record[0], DividedRecord):
        cells.append(_cells((record[0], record[1]), lane, finely))
    if known := _known(blocks):
        cells = [known, *([cell for cell in end if cell.high > known[-1].high] for end in cells)]
    return cells


def _cells(end: tuple[Source | DividedRecord, Reading], lane: str, finely: int) -> list[Cell]:
    divided, reading = end
    ranges = divided.split(reading, lane, finely)
    rows = reading.lanes[lane].estimated_rows / len(ranges)
    return [Cell(one.high, rows) for one in ranges if one.high is not None]


def _known(blocks: LaneBlocks | None) -> list[Cell]:
    held = () if blocks is None else blocks.blocks
    return [Cell(one.high, one.committed.get("count", 0) + one.accepted.get("count", 0)) for one in held]
