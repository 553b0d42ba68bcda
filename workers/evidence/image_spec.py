"""What one image audit reads, as its tasks are given it, and what a task gives back: rows of MEETING, or its error as a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.archives import Part
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import FencepostError, Unsuitable
from recovery_api.domain.evidence_places import Written
from recovery_api.domain.kinds.state import PARTIAL_SAYS
from workers.connectors.protocols.image import StatePart, StateReading
from workers.connectors.readings import CoordinateRange, Reading
from workers.evidence.folder import folder_error
from workers.evidence.grounds import at_or_below
from workers.evidence.image_base import base_rows
from workers.evidence.kernel.image import ACCEPTED, BASE, EVENT, LATER, MEETING, ROW, ImageQuestion, latest_keep
from workers.evidence.ranges import EndSpec
from workers.spark.on_demand import counted

MET = MEETING.append(pa.field("error", pa.string()))


@dataclass(frozen=True, slots=True)
class Later:
    """A lane of the record of which acceptances above a coordinate are read; None: all of them. `frontier`: those at or below
    it are told apart; None: each one is later than every event that counts."""

    lane: str
    above: Coordinate | None
    frontier: Coordinate | None = None


@dataclass(frozen=True, slots=True)
class Archived:
    """A part of the archive: those of its events that lie from `low` on and below `high`."""

    part: Part
    within: CoordinateRange


@dataclass(frozen=True, slots=True)
class BasePiece:
    """An object of the base, and where it lies."""

    url: str
    written: Written


Piece = CoordinateRange | StatePart | Later | Archived | BasePiece
"""What one task reads: a range of the history, a share of the target, later acceptances, a part of the archive, an object
of the base."""


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """`pieces`: a task each. `sets`: into how many disjoint sets keys are hashed. `most_rows`: how many rows of one piece may
    be held here; None: any number."""

    source: EndSpec
    sink: EndSpec
    source_reading: Reading
    sink_reading: Reading
    state: StateReading
    pieces: tuple[Piece, ...]
    question: ImageQuestion
    evidence: str
    sets: int = 1
    most_rows: int | None = None
    above: Coordinate | None = field(default=None)


def piece_read(spec: ImageSpec, index: int) -> Iterator[pa.RecordBatch]:
    """MET rows of one piece. What it meets on the way comes as a last row with the error as data."""
    try:
        for side, batch in _rows(spec, spec.pieces[index]):
            yield _met(side, batch)
    except FencepostError as failure:
        yield _error(failure.as_row())
    except OSError as failure:  # of the evidence folder, or this machine's; a connector maps its end's own
        if (away := folder_error(failure)) is None:
            raise
        yield _error(away.as_row())


def _rows(spec: ImageSpec, piece: Piece) -> Iterator[tuple[int, pa.RecordBatch]]:
    if isinstance(piece, CoordinateRange):
        source: Any = spec.source.source()
        batches = source.read_image(spec.source_reading, piece, spec.state.mapping)
        for batch in counted(batches, spec.most_rows):
            partial_refuse(spec, batch)
            yield EVENT, latest_keep(batch)
        return
    if isinstance(piece, BasePiece):
        for batch in base_rows(piece.url, piece.written):
            yield BASE, batch
        return
    if isinstance(piece, Archived):
        from workers.evidence.image_archive import archived_read

        for batch in archived_read(spec, piece):
            partial_refuse(spec, batch)
            yield EVENT, latest_keep(batch)
        return
    record: Any = spec.sink.record()
    if isinstance(piece, StatePart):
        for batch in counted(record.read_state(spec.state, piece), spec.most_rows):
            yield ROW, batch
        return
    for batch in record.read_later(spec.sink_reading, spec.state, piece.lane, piece.above):
        if piece.frontier is None:
            yield LATER, batch
            continue
        is_below = pa.array(at_or_below(batch, piece.frontier))
        yield ACCEPTED, latest_keep(batch.filter(is_below))
        yield LATER, batch.filter(pc.invert(is_below))


def partial_refuse(spec: ImageSpec, batch: pa.RecordBatch) -> None:
    """Raises: Unsuitable where an update lacks a member that the target has a column for."""
    found = pc.fill_null(batch.column("is_partial"), False)
    if not pc.any(found).as_py():
        return
    place = batch.filter(found).slice(0, 1).to_pylist()[0]
    members = ", ".join(spec.state.mapping.members)
    raise Unsuitable(
        f"the target {spec.state.name}",
        f"has a column for each of {members}, and the update at {place['position']}:{place['ordinal']} does not carry all of "
        f"them. {PARTIAL_SAYS}",
        "Write whole contents in updates, or map the whole content to one column.",
    )


def _met(side: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    count = batch.num_rows
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns["side"] = pa.array(np.full(count, side, np.int8))
    zeros = pa.array(np.zeros(count, np.int64))
    for name in ("position", "ordinal"):
        columns[name] = pc.fill_null(columns[name], 0) if name in columns else zeros
    arrays = [columns[one.name].cast(one.type) if one.name in columns else pa.nulls(count, one.type) for one in MET]
    return pa.record_batch(arrays, schema=MET)


def _error(row: dict[str, Any]) -> pa.RecordBatch:
    values = {"side": -1, "key_hash": bytes(32), "position": 0, "ordinal": 0, "digest": None}
    return pa.RecordBatch.from_pylist([{**values, "error": json.dumps(row, default=str)}], schema=MET)
