"""Ranges: how many, where they are cut, and that together they are the lane, whatever the estimates say."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.ledger.blocks import Block
from recovery_api.domain.ledger.following import LaneBlocks
from workers.connectors.readings import CoordinateRange, LaneReading, Reading, SafeFrontier
from workers.connectors.rows import ranges_of
from workers.evidence.cutting import (
    ROWS_A_RANGE,
    ROWS_LEAST,
    Cell,
    lane_cut,
    ranges_between,
    ranges_cut,
    ranges_wanted,
)
from workers.evidence.ranges import EndSpec

SAFE = SafeFrontier(None, "test", "A test.")


class Grid:
    """An end that says where its rows lie: a reading's handle holds the positions."""

    def split(self, reading: Reading, lane: str, parts: int) -> list[CoordinateRange]:
        return ranges_of([[at, 0] for at in reading.handle["grid"]], lane, parts)


def reading(positions: list[int], rows: int, lanes: tuple[str, ...] = ("0",)) -> Reading:
    held = {lane: LaneReading(lane, None, None, None, SAFE, rows) for lane in lanes}
    return Reading("a test", {"grid": positions}, held)


@pytest.mark.parametrize("slots", [1, 2, 6, 64])
@pytest.mark.parametrize("rows", [0, 10_000, 8_000_000, 50_000_000, 2_000_000_000])
def test_ranges_are_a_multiple_of_the_slots_where_that_pays_and_never_too_large(rows: int, slots: int) -> None:
    count = ranges_wanted(rows, slots)
    assert count * ROWS_A_RANGE >= rows
    assert count % slots == 0 or rows < count * slots * ROWS_LEAST
    assert rows / count >= ROWS_LEAST or count == max(8, -(-rows // ROWS_A_RANGE))


@given(st.lists(st.integers(-50, 50)), st.lists(st.integers(-50, 50)), st.integers(1, 20))
def test_the_ranges_together_are_the_lane(mine: list[int], theirs: list[int], count: int) -> None:
    ends = [[Cell(Coordinate(at), 3.0) for at in sorted(end)] for end in (mine, theirs)]
    ranges = lane_cut("0", count, ends)
    assert ranges[0].low is None and ranges[-1].high is None and len(ranges) <= max(count, 1)
    for one, two in pairwise(ranges):
        assert one.high == two.low and one.high is not None
    cuts = [one.high for one in ranges[:-1]]
    assert cuts == sorted(set(cuts))  # type: ignore[type-var]


def test_both_ends_rows_count_where_they_lie() -> None:
    """The source kept the upper tenth, the record everything: cut by the source alone, one range held nine tenths of it."""
    source = [Cell(Coordinate(at), 10.0) for at in range(901, 1001)]
    record = [Cell(Coordinate(at), 10.0) for at in range(1, 1001)]
    ranges = lane_cut("0", 10, [source, record])
    rows = [
        sum(
            10
            for cell in (*source, *record)
            if (low is None or cell.high > low) and (high is None or cell.high <= high)
        )
        for low, high in ((one.low, one.high) for one in ranges)
    ]
    assert len(ranges) == 10 and max(rows) <= 1.2 * min(rows)


def test_many_small_lanes_are_not_cut_and_a_large_one_among_them_is() -> None:
    lanes = {str(number): 100 for number in range(200)} | {"large": 29_900_000}
    held = {lane: LaneReading(lane, None, None, None, SAFE, rows) for lane, rows in lanes.items()}
    found = Reading("a test", {"grid": list(range(1, 2001))}, held)
    memory = EndSpec("memory", options_parse(kind_get("memory"), {"name": "no rows"})).record()
    ranges = ranges_cut(lanes, (Grid(), found), (memory, Reading("empty", {})), {}, 8)  # type: ignore[arg-type]
    assert len([one for one in ranges if one.lane == "large"]) == 40
    assert len(ranges) == 240


def test_a_lane_that_earlier_audits_judged_is_cut_at_its_blocks_and_above_them_where_the_source_says() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    highs = [Coordinate(1_000 * number, 1) for number in range(1, 21)]
    lows = [None, *highs[:-1]]
    count = {"count": 500_000}
    blocks = tuple(Block(low, high, {}, count, count, at) for low, high in zip(lows, highs, strict=True))
    known = LaneBlocks(Coordinate(20_000), blocks, None, None, "", "here")
    source = reading(list(range(100, 30_000, 100)), 15_000_000)
    memory = EndSpec("memory", options_parse(kind_get("memory"), {"name": "no rows"})).record()
    ranges = ranges_cut(["0"], (Grid(), source), (memory, Reading("empty", {})), {"0": known}, 2)  # type: ignore[arg-type]
    cuts = [one.high for one in ranges if one.high is not None]
    below = [cut for cut in cuts if cut <= highs[-1]]
    assert below and set(below) <= set(highs)
    assert any(cut > highs[-1] for cut in cuts)


def test_cuts_outside_of_a_range_cut_nothing() -> None:
    whole = CoordinateRange("0", Coordinate(5), Coordinate(9))
    cuts = [Coordinate(1), Coordinate(5), Coordinate(7), Coordinate(9), Coordinate(12)]
    assert ranges_between(whole, cuts) == [
        CoordinateRange("0", Coordinate(5), Coordinate(7)),
        CoordinateRange("0", Coordinate(7), Coordinate(9)),
    ]
