"""The batch of a reading: which findings a re-drive sends, its digest, and how it is cut into parts and slices."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import EvidenceGone
from recovery_api.domain.evidence_places import Stored
from workers.evidence import schemas
from workers.evidence.canonical import (
    batch_digest,
    batch_digest_add,
    digest_words,
    entry_digests,
    lane_entry_digests,
)
from workers.evidence.store import FINDINGS, rows_read

if TYPE_CHECKING:
    from workers.evidence.ranges import MeetSpec
    from workers.evidence.read import Evidence

SLICE_ROWS = 12_500
"""Rows a task, about: small enough that two cores share a batch of 100,000 evenly, large enough to be worth a COPY."""


@dataclass(frozen=True, slots=True)
class Slice:
    """`length` rows of one part's batch from `offset`."""

    part: int
    lane: str
    offset: int
    length: int


UNREPRESENTABLE = "unrepresentable"
"""Coordinates that a plan found the sink cannot hold the content of."""

BATCH_COLUMNS = [
    *("finding", "lane", "position", "ordinal"),
    *("is_acknowledged", "is_retained", "is_archived", "is_keyed_hidden", "history_digest"),
]
"""What `batch_rows` looks at."""


def batch_rows(findings: pa.Table, excluded: pa.Table | None = None) -> pa.Table:
    """What a re-drive sends of `findings`: lost, held by the source or the archive, not acknowledged, deliverable by identity.

    Returns columns lane, position, ordinal, payload_digest, is_archived, in coordinate order.
    """
    is_archived = pc.fill_null(findings["is_archived"], False)
    wanted = pc.and_(
        pc.and_(pc.equal(findings["finding"], "lost"), pc.or_(findings["is_retained"], is_archived)),
        pc.and_(pc.invert(findings["is_acknowledged"]), pc.invert(findings["is_keyed_hidden"])),
    )
    rows = findings.filter(wanted).select(["lane", "position", "ordinal", "history_digest", "is_archived"])
    rows = rows.rename_columns(["lane", "position", "ordinal", "payload_digest", "is_archived"])
    if excluded is not None and excluded.num_rows:
        rows = rows.join(excluded, ["lane", "position", "ordinal"], join_type="left anti")
    return rows.sort_by([("position", "ascending"), ("ordinal", "ascending")])


def rows_digest(batch: pa.Table) -> str:
    """The batch digest of rows of lane, position, ordinal, payload_digest; of coordinates alone where no content was read."""
    if batch["payload_digest"].null_count:
        lanes, positions, ordinals = (batch[name].to_pylist() for name in ("lane", "position", "ordinal"))
        payloads = batch["payload_digest"].cast(pa.binary()).fill_null(b"").to_pylist()
        return batch_digest(entry_digests(lanes, positions, ordinals, payloads))
    sums = [batch_digest_add()]
    for lane in pc.unique(batch["lane"]).to_pylist():
        mine = batch.filter(pc.equal(batch["lane"], lane)).combine_chunks()
        position, ordinal = (mine[name].to_numpy() for name in ("position", "ordinal"))
        payload = digest_words(mine["payload_digest"]).view(np.uint8).reshape(-1, 32)
        sums += [batch_digest(some) for some in lane_entry_digests(lane, position, ordinal, payload)]
    return batch_digest_add(*sums)


def batch_of_part(spec: MeetSpec, part: int) -> pa.Table:
    """The re-drivable rows of one evidence part, in coordinate order."""
    return batch_rows(_lost(spec.stored, part), spec.excluded)


def _lost(stored: Stored, part: int | None = None) -> pa.Table:
    wanted = ds.field("finding") == "lost"
    return rows_read(
        stored, stored.of(FINDINGS, part), schemas.FINDING, columns=BATCH_COLUMNS, wanted=wanted, wanted_by=["finding"]
    )


def batch_held(stored: Stored | None) -> int | None:
    """How many entries the evidence holds of its batch; None where it is not kept, or is not what was written."""
    if stored is None:
        return None
    try:
        return batch_rows(_lost(stored), unrepresentable_read(stored)).num_rows
    except EvidenceGone:
        return None


def batch_without(evidence: Evidence, excluded: pa.Table | None) -> Evidence:
    """The same evidence with `excluded` coordinates (few) left out of its batch."""
    if excluded is None or not excluded.num_rows:
        return evidence
    spec = replace(evidence.spec, excluded=excluded)
    pieces = []
    for piece in evidence.pieces:
        rows = batch_of_part(spec, piece.part)
        if rows.num_rows:
            pieces.append(replace(piece, count=rows.num_rows, digest=rows_digest(rows)))
    return replace(
        evidence,
        spec=spec,
        pieces=tuple(pieces),
        batch_count=sum(piece.count for piece in pieces),
        batch_digest=batch_digest_add(*(piece.digest for piece in pieces)),
    )


def unrepresentable_read(stored: Stored) -> pa.Table | None:
    """The coordinates a plan found unrepresentable at the sink, or None. They are few: each needs a person."""
    objects = stored.of(UNREPRESENTABLE)
    return rows_read(stored, objects, schemas.COORDINATE) if objects else None


def parts_split(evidence: Evidence, limit: int) -> list[dict[str, Coordinate]]:
    """Frontiers f1 < f2 < … that cut the batch into parts of at most `limit` entries; the last is the evidence's own.

    Lanes follow one another: each frontier names, for every lane, how far the parts so far have come.
    """
    final = {lane: found.frontier for lane, found in evidence.lanes.items() if lane in evidence.source_reading.lanes}
    lowest = {lane: found.reading.lowest or found.frontier for lane, found in evidence.lanes.items()}
    reached = {lane: min(lowest[lane], final[lane]) for lane in final}
    parts: list[dict[str, Coordinate]] = []
    held = 0
    for piece in evidence.pieces:
        index, lane, count = piece.part, piece.lane, piece.count
        rows: pa.Table | None = None
        offset = 0
        while held + (count - offset) > limit:
            rows = batch_of_part(evidence.spec, index) if rows is None else rows
            offset += limit - held
            last = rows.slice(offset - 1, 1).to_pylist()[0] if offset else None
            if last is not None:
                reached[lane] = Coordinate(last["position"], last["ordinal"])
            parts.append(dict(reached))
            held = 0
        held += count - offset
        reached[lane] = _end_of_piece(evidence, index, final[lane])
    return [*parts, final]


def _end_of_piece(evidence: Evidence, index: int, frontier: Coordinate) -> Coordinate:
    rows = batch_of_part(evidence.spec, index)
    last = rows.slice(rows.num_rows - 1, 1).to_pylist()[0]
    return min(Coordinate(last["position"], last["ordinal"]), frontier)


def slices_of(evidence: Evidence) -> list[Slice]:
    """Each piece in equal slices of about SLICE_ROWS: a small rest would cost a task of its own."""
    slices = []
    for piece in evidence.pieces:
        rows = math.ceil(piece.count / max(1, round(piece.count / SLICE_ROWS)))
        slices += [
            Slice(piece.part, piece.lane, start, min(rows, piece.count - start))
            for start in range(0, piece.count, rows)
        ]
    return slices
