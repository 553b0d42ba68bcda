"""Moving an owed batch: what its content is, and staging it at the sink in parallel.

The batch lies in the evidence directory of a reading, one Parquet part a range. A task takes a slice of one part, reads
the content of those coordinates in the reading's own source snapshot, and hands it on as Arrow. Repeating a task
leaves the same rows: staging is keyed by generation, arm and coordinate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from recovery_api.domain.conditions import LATER_KEYS_NAMED, LaterKeys
from recovery_api.domain.coordinates import Coordinate
from workers.evidence import schemas
from workers.evidence.canonical import batch_digest_add
from workers.spark.jobs.audit import Evidence
from workers.spark.ranges import (
    BATCH_COLUMNS,
    MeetSpec,
    batch_rows,
    part_write,
    parts_of,
    rows_digest,
    summary_row,
    tasks_run,
)
from workers.spark.session import engine_errors_mapped

SLICE_ROWS = 12_500
"""Rows a task, about: small enough that two cores share a batch of 100,000 evenly, large enough to be worth a COPY."""
SLICES_A_TASK = 2
"""A task costs 0.1 s before it begins, and staging a slice little more."""
LATER_KEYS = "later_keys"
SAMPLE_ROWS = 5
SAMPLE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Slice:
    """`length` rows of one part's batch from `offset`."""

    part: int
    lane: str
    offset: int
    length: int


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


def batch_of_part(spec: MeetSpec, part: int) -> pa.Table:
    """The re-drivable rows of one evidence part, in coordinate order."""
    path = Path(spec.evidence) / f"part-{part:05d}.parquet"
    return batch_rows(pq.read_table(path, columns=BATCH_COLUMNS, filters=[("finding", "==", "lost")]), spec.excluded)


def batch_held(directory: str) -> int | None:
    """How many entries the evidence under `directory` holds of its batch; None where it cannot be read."""
    if not (parts := parts_of(directory)):
        return None
    try:
        findings = ds.dataset(parts, format="parquet", schema=schemas.FINDING)
        lost = findings.to_table(columns=BATCH_COLUMNS, filter=ds.field("finding") == "lost")
        return batch_rows(lost, unrepresentable_read(directory)).num_rows
    except (OSError, pa.ArrowInvalid):
        return None


def batch_stage(session: Any, evidence: Evidence, generation: int, arm: int) -> int:
    """Stage the batch at the sink. Returns how many rows its tasks handed over. Raises a task's own error."""
    work = _slices(evidence)
    spec = evidence.spec
    stage = _over_slices(spec, work, lambda piece: _stage(spec, piece, generation, arm))
    rows = tasks_run(session, len(work), stage, SLICES_A_TASK)
    return sum(row["staged"] for row in rows)


def batch_inspect(session: Any, evidence: Evidence) -> dict[str, Any]:
    """What the batch's content is: `bytes`, a `sample` of rows cut short, and how many events the sink cannot represent.

    The coordinates of those are written beside the evidence (`unrepresentable_read`), and so, where the sink's effect
    needs order, are the keys with a later accepted event (`later_keys_count`).
    """
    work = _slices(evidence)
    spec = evidence.spec
    rows = tasks_run(session, len(work), _over_slices(spec, work, lambda piece: _inspect(spec, piece)))
    return {
        "bytes": sum(row["bytes"] for row in rows),
        "unrepresentable": sum(row["unrepresentable"] for row in rows),
        "sample": [line for row in rows for line in row["sample"]][:20],
    }


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


def unrepresentable_read(directory: str) -> pa.Table | None:
    """The coordinates a plan found unrepresentable at the sink, or None. They are few: each needs a person."""
    parts = sorted((Path(directory) / "unrepresentable").glob("part-*.parquet"))
    return pa.concat_tables([pq.read_table(part) for part in parts]) if parts else None


def later_keys_count(session: Any, directory: str) -> LaterKeys:
    """Over the slices of a batch's inspection: the keys that have a later accepted event, each counted once."""
    found = Path(directory) / LATER_KEYS
    if not found.exists():
        return LaterKeys()
    keys = session.read.parquet(str(found.resolve())).select("key").distinct()
    first = keys.orderBy("key").limit(LATER_KEYS_NAMED).select("key")
    with engine_errors_mapped():
        return LaterKeys(keys.count(), tuple(first.toArrow()["key"].to_pylist()))


def _end_of_piece(evidence: Evidence, index: int, frontier: Coordinate) -> Coordinate:
    rows = batch_of_part(evidence.spec, index)
    last = rows.slice(rows.num_rows - 1, 1).to_pylist()[0]
    return min(Coordinate(last["position"], last["ordinal"]), frontier)


def _slices(evidence: Evidence) -> list[Slice]:
    """Each piece in equal slices of about SLICE_ROWS: a small rest would cost a task of its own."""
    slices = []
    for piece in evidence.pieces:
        rows = math.ceil(piece.count / max(1, round(piece.count / SLICE_ROWS)))
        slices += [
            Slice(piece.part, piece.lane, start, min(rows, piece.count - start))
            for start in range(0, piece.count, rows)
        ]
    return slices


def _over_slices(
    spec: MeetSpec, work: list[Slice], body: Callable[[Slice], dict[str, Any]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                piece = work[index]
                yield summary_row(index, piece.lane, functools.partial(body, piece))

    return run


def _coordinates(spec: MeetSpec, piece: Slice) -> pa.Table:
    rows = batch_of_part(spec, piece.part)
    return rows.slice(piece.offset, piece.length).select(["lane", "position", "ordinal"])


def _stage(spec: MeetSpec, piece: Slice, generation: int, arm: int) -> dict[str, Any]:
    content = spec.source.connector().read_content(spec.source_reading, _coordinates(spec, piece))
    return {"staged": spec.sink.connector().stage(generation, arm, content)}


def _inspect(spec: MeetSpec, piece: Slice) -> dict[str, Any]:
    sink = spec.sink.connector()
    total = 0
    sample: list[dict[str, Any]] = []
    refused = []
    sent = []
    for batch in spec.source.connector().read_content(spec.source_reading, _coordinates(spec, piece)):
        total += pc.sum(pc.binary_length(batch.column("content"))).as_py() or 0
        is_refused = sink.unrepresentable(batch)
        refused.append(batch.select(["lane", "position", "ordinal"]).filter(is_refused))
        if sink.needs_order:
            sent.append(batch.select(["position", "ordinal", "key"]).filter(pc.invert(is_refused)))
        if len(sample) < SAMPLE_ROWS:
            short = batch.slice(0, SAMPLE_ROWS - len(sample))
            cut = pc.utf8_slice_codeunits(short.column("content"), 0, SAMPLE_CHARACTERS)
            sample += [
                {**row, "content": content, "position": str(row["position"]), "ordinal": str(row["ordinal"])}
                for row, content in zip(short.drop_columns(["content"]).to_pylist(), cut.to_pylist(), strict=True)
            ]
    table = pa.Table.from_batches(refused, schema=schemas.COORDINATE) if refused else schemas.COORDINATE.empty_table()
    _write_beside(spec, piece, "unrepresentable", table)
    if sent:
        later = sink.later_accepted(spec.sink_reading, piece.lane, pa.Table.from_batches(sent))
        _write_beside(spec, piece, LATER_KEYS, pa.table({"key": later}))
    return {"bytes": total, "unrepresentable": table.num_rows, "sample": sample}


def _write_beside(spec: MeetSpec, piece: Slice, what: str, table: pa.Table) -> None:
    if table.num_rows:
        directory = Path(spec.evidence) / what
        directory.mkdir(exist_ok=True)
        part_write(str(directory), f"part-{piece.part:05d}-{piece.offset:09d}", table)
