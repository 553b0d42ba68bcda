"""Frontiers: typed in the source's spelling, kept as held numbers, printed back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.coordinates import INT64_MAX, INT64_MIN, Coordinate, Spelling
from recovery_api.domain.errors import BadCoordinate, BadInput
from recovery_api.domain.frontiers import (
    coordinate_from_row,
    frontier_as_row,
    frontier_format,
    frontier_from_row,
    frontier_parse,
)

HELD = st.integers(INT64_MIN, INT64_MAX)


def test_lanes_are_named_once_each():
    with pytest.raises(BadInput, match="lane 'a' is given twice"):
        frontier_parse("a=1,a=2", Spelling.BIGINT)
    with pytest.raises(BadInput, match="names no lane"):
        frontier_parse("a=1,2", Spelling.BIGINT)
    with pytest.raises(BadCoordinate, match="lane b"):
        frontier_parse("a=1,b=x", Spelling.BIGINT)


def test_lane_with_an_equals_sign_keeps_it():
    assert list(frontier_parse("topic=3=7", Spelling.BIGINT)) == ["topic=3"]


@given(st.dictionaries(st.sampled_from(["0", "a", "b"]), st.builds(Coordinate, HELD), min_size=1))
def test_frontier_survives_its_row_and_its_spelling(frontier):
    row = frontier_as_row(frontier)
    assert frontier_from_row(row) == frontier
    assert frontier_parse(frontier_format(row, Spelling.PG_LSN), Spelling.PG_LSN) == frontier


@pytest.mark.parametrize(
    "row", [{"position": "1"}, {"position": "x", "ordinal": "0"}, {"position": None, "ordinal": "0"}]
)
def test_row_that_is_no_coordinate_is_refused(row):
    with pytest.raises(BadInput):
        coordinate_from_row(row)
