"""What every connector builds on: an end's rows made into history, record and batch, with their digests.

A kind brings rows, plain (mappings with schemas.BATCH's names: lane, position, ordinal, event_id, op, key, and content
as JSON text) or Arrow; digests, widths, ranges and the ends of lanes are made here, for every kind alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Unsuitable
from workers.connectors.readings import BatchDigest, CoordinateRange, LaneReading, SafeFrontier, Width
from workers.evidence import schemas
from workers.evidence.canonical import (
    ABSENT,
    UncanonicalContent,
    batch_digest,
    content_digest,
    content_parse,
    entry_digest,
    entry_digests,
    payload_digest,
)

Where = tuple[str, int, int]
"""Lane, position, ordinal."""

Grid = list[list[int]]
"""Held coordinates, ascending, as JSON can carry them: points with about equally many rows between them."""

NO_FRONTIER = SafeFrontier(None, "acceptance record", "A record says nothing of what may still be committed.")


# -- one event --------------------------------------------------------------------------------------------------------


def where_of(row: Mapping[str, Any]) -> Where:
    """The row's lane and coordinate."""
    return row["lane"], row["position"], row["ordinal"]


def payload_of(event: Mapping[str, Any]) -> bytes:
    """The payload digest of op, key and content (JSON text; None: there is none).

    Raises: Unsuitable naming the coordinate.
    """
    try:
        content = ABSENT if event["content"] is None else content_parse(event["content"])
        return payload_digest(event["op"], event["key"], content_digest(content, event["op"]))
    except (json.JSONDecodeError, UncanonicalContent) as error:
        where = ":".join(map(str, where_of(event)))
        raise Unsuitable(f"the event at {where}", f"its content is not JSON ({error})", "Mend it.") from error


def entry_make(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event with its payload digest. Raises: Unsuitable naming the coordinate."""
    return {**event, "payload_digest": payload_of(event)}


def is_held(event: Mapping[str, Any]) -> bool:
    """Whether the event has a digest, and so can be held and judged."""
    try:
        payload_of(event)
    except Unsuitable:
        return False
    return True


# -- many -------------------------------------------------------------------------------------------------------------


def history_columns(width: Width, with_key: bool = False) -> list[str]:
    """The columns of schemas.HISTORY that a reading of this width carries."""
    if width is Width.FULL:
        return list(schemas.HISTORY.names)
    names = ["position", "ordinal", *(["key"] if with_key else [])]
    return names if width is Width.COORDINATE else [*names, "payload_digest"]


def accepted_columns(width: Width, with_head: bool = True) -> list[str]:
    """The columns of schemas.ACCEPTED that a reading of this width carries."""
    if width is Width.FULL:
        return list(schemas.ACCEPTED.names)
    names = ["position", "ordinal", *(["payload_digest"] if width is Width.PAYLOAD else [])]
    admitted = ["admitted_in"] if width is Width.PAYLOAD else []
    return [*names, *(["head_position", "head_ordinal"] if with_head else []), "entry", *admitted]


def rows_digest(rows: Iterable[Mapping[str, Any]]) -> BatchDigest:
    """Count and batch digest of plain rows with their payload digests, in any order."""
    entries = [entry_digest(*where_of(row), row["payload_digest"]) for row in rows]
    return BatchDigest(len(entries), batch_digest(pa.array(entries, pa.binary(32))))


def table_digest(rows: pa.Table) -> BatchDigest:
    """Count and batch digest of rows of lane, position, ordinal and payload_digest, in any order."""
    lanes, positions, ordinals = (rows[name].to_pylist() for name in ("lane", "position", "ordinal"))
    payloads = rows["payload_digest"].cast(pa.binary()).to_pylist()
    return BatchDigest(rows.num_rows, batch_digest(entry_digests(lanes, positions, ordinals, payloads)))


# -- lanes and ranges -------------------------------------------------------------------------------------------------


def lanes_of(rows: pa.Table, safe: Callable[[str, Coordinate], SafeFrontier] | None = None) -> dict[str, LaneReading]:
    """The lanes of `rows` with their ends. `safe`: what of a lane with this head is safe; a record has nothing that is."""
    lanes = {}
    for lane in sorted(pc.unique(rows["lane"]).to_pylist()):
        mine = rows.filter(pc.equal(rows["lane"], lane)).select(["position", "ordinal"])
        mine = mine.sort_by([("position", "ascending"), ("ordinal", "ascending")])
        low, high = (Coordinate(mine["position"][at].as_py(), mine["ordinal"][at].as_py()) for at in (0, -1))
        lanes[lane] = LaneReading(lane, high, low, None, safe(lane, high) if safe else NO_FRONTIER, mine.num_rows)
    return lanes


def inside(rows: pa.Table, range_: CoordinateRange) -> pa.Array:
    """Which rows lie in the range: its low bound included, its high one not."""
    position, ordinal = rows["position"].to_numpy(), rows["ordinal"].to_numpy()
    found = np.array(pc.equal(rows["lane"], range_.lane))
    if range_.low is not None:
        low = range_.low
        found &= (position > low.position) | ((position == low.position) & (ordinal >= low.ordinal))
    if range_.high is not None:
        high = range_.high
        found &= (position < high.position) | ((position == high.position) & (ordinal < high.ordinal))
    return pa.array(found)


def below(rows: pa.Table, lane: str, frontier: Coordinate) -> pa.Array:
    """Which rows lie in the lane at or below the frontier."""
    position, ordinal = rows["position"].to_numpy(), rows["ordinal"].to_numpy()
    is_below = (position < frontier.position) | ((position == frontier.position) & (ordinal <= frontier.ordinal))
    return pa.array(np.array(pc.equal(rows["lane"], lane)) & is_below)


def ranges_of(grid: Sequence[Sequence[int]], lane: str, parts: int) -> list[CoordinateRange]:
    """At most `parts` ranges that cover the lane, open at both ends, cut at points of the grid."""
    cuts = [Coordinate(*grid[len(grid) * part // parts]) for part in range(1, parts)] if len(grid) else []
    cuts = sorted(set(cuts))
    lows: list[Coordinate | None] = [None, *cuts]
    highs: list[Coordinate | None] = [*cuts, None]
    return [CoordinateRange(lane, low, high) for low, high in zip(lows, highs, strict=True)]


def rows_at(rows: pa.Table, coordinates: pa.Table) -> pa.Table:
    """The rows at these coordinates (lane, position, ordinal), in coordinate order, each asked for at most once."""
    keys = ["lane", "position", "ordinal"]
    wanted = coordinates.select(keys).group_by(keys).aggregate([])
    found = rows.join(wanted, keys, join_type="left semi")
    return found.select(rows.column_names).sort_by(
        [("lane", "ascending"), ("position", "ascending"), ("ordinal", "ascending")]
    )
