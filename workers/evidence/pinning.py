"""The frontier that a reading judges at: chosen before either snapshot is opened, never above what is safe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from recovery_api.domain.coordinates import INT64_MAX, INT64_MIN, Coordinate, Spelling, coordinate_format
from recovery_api.domain.errors import FrontierRefused
from workers.connectors.protocols.source import Source
from workers.connectors.readings import LaneReading, SafeFrontier
from workers.evidence.grounds import pinned_choose
from workers.evidence.known import epoch_open, frontier_raise

if TYPE_CHECKING:
    from workers.evidence.read import AuditRequest

BEFORE_EVERYTHING = Coordinate(INT64_MIN, INT64_MIN)
AFTER_EVERYTHING = Coordinate(INT64_MAX, INT64_MAX)


class Pinned(NamedTuple):
    """By lane the safe frontier to go by and the one to judge at; the pinning snapshot, in which late rows are looked up;
    and what that itself says is safe."""

    safe: Mapping[str, SafeFrontier]
    frontiers: Mapping[str, Coordinate]
    handle: Mapping[str, Any] | None
    own: Mapping[str, SafeFrontier]


def pin(request: AuditRequest, source: Source, progress: Callable[..., None], held: ExitStack) -> Pinned:
    """What is judged at, chosen before either snapshot is opened. The pinning snapshot stays open with `held`."""
    progress(step="pinning the frontier")
    pinned = held.enter_context(source.hold_pin())
    for lane in request.frontier:
        if lane not in pinned.lanes:
            raise FrontierRefused(lane, ", ".join(pinned.lanes), "set of lanes", "the source has no such lane")
    chosen = {
        lane: pinned_choose(reading, request.remembered.get(lane), request.frontier.get(lane), request.attested_by)
        for lane, reading in pinned.lanes.items()
    }
    frontiers = {
        lane: frontier_choose(reading, request.frontier.get(lane), source.spelling) for lane, reading in chosen.items()
    }
    if request.ledger is not None:
        _, known = epoch_open(request.ledger, pinned)
        frontiers |= {
            lane: frontier_raise(frontier, known.get(lane))
            for lane, frontier in frontiers.items()
            if lane not in request.frontier
        }
    return Pinned(
        {lane: reading.safe for lane, reading in chosen.items()},
        frontiers,
        pinned.handle.get("pinned"),
        {lane: reading.safe for lane, reading in pinned.lanes.items()},
    )


def frontier_choose(reading: LaneReading, asked: Coordinate | None, spelling: Spelling) -> Coordinate:
    """The frontier to judge a lane at: what was asked, if it may be; else as far as is safe and committed.

    Raises: FrontierRefused naming the safe frontier or the floor.
    """
    safe = reading.safe.coordinate
    if asked is None:
        if safe is None or reading.head is None:
            return BEFORE_EVERYTHING
        return min(safe, reading.head)
    if safe is None or asked > safe:
        raise FrontierRefused(
            coordinate_format(asked, spelling),
            coordinate_format(safe, spelling) if safe else "not there yet",
            "safe frontier",
            " ".join([reading.safe.says, *(f"Waits for {name}." for name in reading.safe.waits_for)]),
        )
    refuse_below_floor(reading, asked, spelling)
    return asked


def refuse_below_floor(reading: LaneReading, asked: Coordinate, spelling: Spelling) -> None:
    if reading.floor is not None and BEFORE_EVERYTHING < asked < reading.floor:
        raise FrontierRefused(
            coordinate_format(asked, spelling),
            coordinate_format(reading.floor, spelling),
            "floor",
            "retention dropped what lies below it, and no journal is registered",
        )
