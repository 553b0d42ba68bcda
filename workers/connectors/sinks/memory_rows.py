"""The rows of a sink in memory: an event as an entry, and the record as Arrow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Unsuitable
from workers.connectors.readings import CoordinateRange, LaneReading, SafeFrontier, Width
from workers.evidence import schemas
from workers.evidence.canonical import (
    ABSENT,
    UncanonicalContent,
    batch_digest,
    content_digest,
    content_parse,
    entry_digest,
    payload_digest,
)

Where = tuple[str, int, int]
"""Lane, position, ordinal."""

COLUMNS = {
    Width.COORDINATE: ("position", "ordinal"),
    Width.PAYLOAD: ("position", "ordinal", "payload_digest"),
    Width.FULL: tuple(schemas.ACCEPTED.names),
}
HEAD = ("head_position", "head_ordinal", "entry")


def entry_make(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event with its payload digest. Raises: Unsuitable naming the coordinate."""
    try:
        content = ABSENT if event["content"] is None else content_parse(event["content"])
        digest = payload_digest(event["op"], event["key"], content_digest(content, event["op"]))
    except (json.JSONDecodeError, UncanonicalContent) as error:
        where = f"{event['lane']}:{event['position']}:{event['ordinal']}"
        raise Unsuitable(f"the event at {where}", f"its content is not JSON ({error})", "Mend it.") from error
    return {**event, "payload_digest": digest}


def is_held(event: Mapping[str, Any]) -> bool:
    """Whether the sink can hold this event."""
    try:
        entry_make(event)
    except Unsuitable:
        return False
    return True


def rows_digest(rows: list[dict[str, Any]]) -> str:
    """The batch digest of these entries, in any order."""
    entries = [entry_digest(*where_of(row), row["payload_digest"]) for row in rows]
    return batch_digest(pa.array(entries, pa.binary(32)))


def where_of(row: Mapping[str, Any]) -> Where:
    """The entry's lane and coordinate."""
    return row["lane"], row["position"], row["ordinal"]


def lanes_of(rows: pa.Table) -> dict[str, LaneReading]:
    """The record's lanes with their ends. A record has no safe frontier: it says so."""
    unsaid = SafeFrontier(None, "acceptance record", "A record says nothing of what may still be committed.")
    lanes = {}
    for lane in sorted(set(rows["lane"].to_pylist())):
        mine = rows.filter(pc.equal(rows["lane"], lane))
        found = sorted(zip(mine["position"].to_pylist(), mine["ordinal"].to_pylist(), strict=True))
        lanes[lane] = LaneReading(lane, Coordinate(*found[-1]), Coordinate(*found[0]), None, unsaid, len(found))
    return lanes


def inside(rows: pa.Table, range_: CoordinateRange) -> pa.Array:
    """Which rows lie in the range, both bounds included."""
    position, ordinal = rows["position"].to_numpy(), rows["ordinal"].to_numpy()
    inside = np.array(pc.equal(rows["lane"], range_.lane))
    if range_.low is not None:
        low = range_.low
        inside &= (position > low.position) | ((position == low.position) & (ordinal >= low.ordinal))
    if range_.high is not None:
        high = range_.high
        inside &= (position < high.position) | ((position == high.position) & (ordinal < high.ordinal))
    return pa.array(inside)
