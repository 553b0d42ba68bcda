"""What an audit leaves for the next one by its schedule: the frontier it pinned, and the event that has waited longest."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from recovery_api.domain.schedules import Pin, PinnedLane
from workers.connectors.readings import LaneReading
from workers.evidence.read import Evidence


def pin_of(lanes: Mapping[str, LaneReading], at: datetime) -> Pin:
    """How far each lane was safe and committed. `at`: the control database's time, at or after they were read.

    What is safe had ended by then, so whatever lies at or below was committed by then, too.
    """
    found = {}
    for lane, reading in lanes.items():
        safe = reading.safe
        if safe.coordinate is not None and reading.head is not None:
            found[lane] = PinnedLane(min(safe.coordinate, reading.head), safe.incarnation)
    return Pin(at, found)


def pin_of_evidence(found: Evidence) -> Pin:
    """As an audit read it: its frontiers were pinned before it opened the record. A lane with late rows is left out."""
    return pin_of({lane: one.reading for lane, one in found.lanes.items() if not one.late}, found.record_read_at)


def waiting_of(found: Evidence) -> dict[str, PinnedLane] | None:
    """The lowest event of each lane that was not accepted, where there is one. None: that was not read whole."""
    if not (found.source_reading.is_complete and found.sink_reading.is_complete):
        return None
    return {
        lane: PinnedLane(one.waiting, one.reading.safe.incarnation)
        for lane, one in found.lanes.items()
        if one.waiting is not None
    }
