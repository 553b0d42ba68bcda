"""The relay's cursor of an audit's lane: what it claims, and how much of that the evidence bears out."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import coordinate_as_row
from recovery_api.domain.relay_cursors import window_find
from workers.evidence.read import Evidence, LaneEvidence
from workers.evidence.schemas import FINDING
from workers.evidence.store import FINDINGS, parts_read


def cursor_row(found: Evidence, lane: LaneEvidence) -> dict[str, Any] | None:
    """For the lane's row: `says` and `at` the cursor, `problem` where it is not known; `lost_behind` it and `lost_beyond`
    it up to the frontier; whether the window beyond it holds anything, and how far it was `judged`. None: not registered.
    """
    read = found.cursors.get(lane.lane)
    if read is None:
        return None
    if read.coordinate is None:
        return {"says": None, "at": None, "problem": read.problem}
    behind, beyond = lost_around(found, lane.lane, read.coordinate)
    judged, has_window = window_find(read.coordinate, lane.frontier, lane.reading.head)
    return {
        "says": found.spell(read.coordinate),
        "at": coordinate_as_row(read.coordinate),
        "problem": None,
        "lost_behind": str(behind),
        "lost_beyond": str(beyond),
        "has_window": has_window,
        "judged": judged,
    }


def lost_around(found: Evidence, lane: str, cursor: Coordinate) -> tuple[int, int]:
    """How many of the lane's lost events lie at or below the cursor, and how many above it, part by part."""
    behind = beyond = 0
    chosen = (ds.field("finding") == "lost") & (ds.field("lane") == lane)
    for _, lost in parts_read(found.stored, FINDINGS, FINDING, columns=["position", "ordinal"], wanted=chosen):
        above = pc.or_(
            pc.greater(lost["position"], cursor.position),
            pc.and_(pc.equal(lost["position"], cursor.position), pc.greater(lost["ordinal"], cursor.ordinal)),
        )
        count = pc.sum(above).as_py() or 0
        behind, beyond = behind + lost.num_rows - count, beyond + count
    return behind, beyond
