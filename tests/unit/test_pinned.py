"""A frontier that was proven or pinned before: for how long it is gone by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import FrontierRefused
from recovery_api.domain.grounds import Standing
from workers.connectors.readings import LaneReading, Reading, SafeFrontier
from workers.evidence.grounds import CHANGED, ELSEWHERE, Remembered, pinned_apply, pinned_choose

PROVEN = SafeFrontier(
    Coordinate(9), "share lock", "No writer was open.", standing=Standing.PROVEN, catalogue="c", incarnation="i"
)
WAITING = replace(PROVEN, coordinate=None, says="A writer is open.", waits_for=("writer 7",))


def lane(safe: SafeFrontier) -> LaneReading:
    return LaneReading("0", Coordinate(9), Coordinate(1), None, safe)


def chosen(now: SafeFrontier) -> SafeFrontier:
    return pinned_choose(lane(now), Remembered(PROVEN, "an hour ago"), None, "").safe


def applied(now: SafeFrontier, is_just_pinned: bool = False, pinned: SafeFrontier = PROVEN) -> SafeFrontier:
    reading = Reading("source", {}, {"0": lane(now)})
    return pinned_apply(reading, {"0": pinned}, is_just_pinned).lanes["0"].safe


def test_a_frontier_proven_before_stands_for_its_own_catalogue_and_incarnation_only() -> None:
    assert (chosen(WAITING).coordinate, chosen(WAITING).waits_for) == (Coordinate(9), ("writer 7",))
    for other in ({"catalogue": "d"}, {"incarnation": "j"}, {"incarnation": ""}):
        assert chosen(replace(WAITING, **other)).coordinate is None


def test_a_ground_ends_where_the_catalogue_shows_something_else_than_at_the_pin() -> None:
    assert applied(PROVEN).standing is Standing.PROVEN
    ended = applied(replace(PROVEN, catalogue="d"))
    assert ended.standing is Standing.ASSUMED and CHANGED in (ended.weakness or "")


def test_a_ground_ends_where_another_server_answers() -> None:
    ended = applied(replace(PROVEN, incarnation="j"))
    assert ended.standing is Standing.ASSUMED and ELSEWHERE in (ended.weakness or "")
    with pytest.raises(FrontierRefused):
        applied(replace(PROVEN, incarnation="j"), is_just_pinned=True)


def test_a_frontier_that_moved_back_between_two_readings_is_refused() -> None:
    with pytest.raises(FrontierRefused):
        applied(replace(PROVEN, coordinate=Coordinate(8)), is_just_pinned=True)
