"""Whose acceptances a repeated payload is: the generations in which the record's entries of it were admitted."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.dataset as ds

from recovery_api.domain.coordinates import INT64_MAX, INT64_MIN, Coordinate
from workers.connectors.protocols.record import Record
from workers.connectors.readings import CoordinateRange, Width
from workers.evidence import schemas
from workers.evidence.ranges import MeetSpec
from workers.evidence.store import FINDINGS, rows_head

SHOWN = 50
"""How many repeated payloads are followed: each is one small reading of the record."""

Generations = Mapping[tuple[str, int, int, bytes], tuple[int, ...]]
"""By lane, position, ordinal and payload digest: a generation an entry, in order of acceptance."""


def generations_read(sink: Record, spec: MeetSpec) -> Generations:
    """The generations of the first `SHOWN` duplicates, from the snapshot that was judged, which must still be open.

    A record that gives no generation gives nothing, and neither does one that was judged by coordinate alone.
    """
    if spec.width is Width.COORDINATE:
        return {}
    wanted = (ds.field("finding") == "duplicate") & ds.field("accepted_digest").is_valid()
    columns = ["lane", "position", "ordinal", "accepted_digest"]
    repeated = rows_head(spec.stored, FINDINGS, schemas.FINDING, SHOWN, columns, wanted)
    found = {}
    for row in repeated.to_pylist():
        at = Coordinate(row["position"], row["ordinal"])
        entries = [
            (entry["entry"] or 0, entry["generation"])
            for batch in sink.read_accepted(spec.sink_reading, _only(row["lane"], at), Width.FULL)
            for entry in batch.to_pylist()
            if entry["payload_digest"] == row["accepted_digest"]
        ]
        if entries and all(generation is not None for _, generation in entries):
            key = (row["lane"], at.position, at.ordinal, row["accepted_digest"])
            found[key] = tuple(generation for _, generation in sorted(entries))
    return found


def _only(lane: str, at: Coordinate) -> CoordinateRange:
    """The range that holds this coordinate alone."""
    after = None
    if at.ordinal < INT64_MAX:
        after = Coordinate(at.position, at.ordinal + 1)
    elif at.position < INT64_MAX:
        after = Coordinate(at.position + 1, INT64_MIN)
    return CoordinateRange(lane, at, after)
