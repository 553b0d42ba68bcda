"""Moving an owed batch: what its content is, and staging it at the sink in parallel.

The batch lies in the evidence directory of a reading, one Parquet part a range. A task takes a slice of one part, reads
the content of those coordinates in the reading's own source snapshot, and hands it on as Arrow. Repeating a task
leaves the same rows: staging is keyed by generation, arm and coordinate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recovery_api.domain.coordinates import Coordinate
from workers.evidence import schemas
from workers.evidence.canonical import batch_digest_limbs, batch_digest_sum, entry_digests
from workers.spark.jobs.audit import Evidence
from workers.spark.ranges import MeetSpec, batch_rows, part_write, summary_row, tasks_run

SLICE_ROWS = 12_500
"""Rows a task: small enough that two cores share a batch of 100,000 evenly, large enough to be worth a COPY."""


@dataclass(frozen=True, slots=True)
class Slice:
    """`length` rows of one part's batch from `offset`, of those above `low` and at or below `high`."""

    part: int
    lane: str
    offset: int
    length: int
    low: Coordinate | None = None
    high: Coordinate | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One batch of a recovery that is split by frontier: everything owed in (low, high], lane by lane."""

    frontier: Mapping[str, Coordinate]
    slices: tuple[Slice, ...]
    count: int
    digest: str


def steps_split(evidence: Evidence, limit: int) -> list[Step]:
    """The batch as steps f1 < f2 < …, none above `limit` entries; one step where it fits. Lanes follow one another."""
    steps: list[Step] = []
    reached: dict[str, Coordinate] = {}
    held: list[Slice] = []
    for index, lane, count in evidence.pieces:
        offset = 0
        while offset < count:
            room = limit - sum(piece.length for piece in held)
            if room == 0:
                steps.append(_step(evidence, reached, held))
                held, room = [], limit
            length = min(room, count - offset)
            held.append(Slice(index, lane, offset, length))
            offset += length
            reached[lane] = _coordinate_at(evidence, index, offset - 1)
    if held or not steps:
        steps.append(_step(evidence, reached, held))
    final = {lane: found.frontier for lane, found in evidence.lanes.items()}
    return [*steps[:-1], Step(final, steps[-1].slices, steps[-1].count, steps[-1].digest)]


def batch_of_part(directory: str, part: int, excluded: pa.Table | None) -> pa.Table:
    """The re-drivable rows of one evidence part, in coordinate order."""
    return batch_rows(pq.read_table(Path(directory) / f"part-{part:05d}.parquet"), excluded)


def batch_stage(session: Any, evidence: Evidence, step: Step, generation: int, arm: int) -> int:
    """Stage one step's batch at the sink. Returns how many rows its tasks handed over. Raises a task's own error."""
    work = _cut(step.slices)
    spec = evidence.spec
    rows = tasks_run(session, len(work), _over_slices(spec, work, lambda piece: _stage(spec, piece, generation, arm)))
    return sum(row["staged"] for row in rows)


def batch_inspect(session: Any, evidence: Evidence) -> dict[str, Any]:
    """How many bytes the batch holds, and which of its events the sink cannot represent (a part file of coordinates).

    Returns `bytes`, `unrepresentable` (a count) and `sample` (the first rows, content cut short).
    """
    work = _cut([Slice(part, lane, 0, count) for part, lane, count in evidence.pieces])
    spec = evidence.spec
    rows = tasks_run(session, len(work), _over_slices(spec, work, lambda piece: _inspect(spec, piece)))
    return {
        "bytes": sum(row["bytes"] for row in rows),
        "unrepresentable": sum(row["unrepresentable"] for row in rows),
        "sample": [line for row in rows for line in row["sample"]][:20],
    }


def unrepresentable_read(directory: str) -> pa.Table | None:
    """The coordinates a plan found unrepresentable at the sink, or None. They are few: each needs a person."""
    parts = sorted((Path(directory) / "unrepresentable").glob("part-*.parquet"))
    return pa.concat_tables([pq.read_table(part) for part in parts]) if parts else None


def _step(evidence: Evidence, reached: Mapping[str, Coordinate], slices: list[Slice]) -> Step:
    limbs = []
    for piece in slices:
        rows = batch_of_part(evidence.directory, piece.part, evidence.spec.excluded)
        limbs.append(batch_digest_limbs(entry_digests(rows.slice(piece.offset, piece.length))))
    return Step(
        dict(reached), tuple(slices), sum(piece.length for piece in slices), batch_digest_sum(limbs)
    )


def _coordinate_at(evidence: Evidence, part: int, row: int) -> Coordinate:
    one = batch_of_part(evidence.directory, part, evidence.spec.excluded).slice(row, 1).to_pylist()[0]
    return Coordinate(one["position"], one["ordinal"])


def _cut(slices: Any) -> list[Slice]:
    return [
        Slice(piece.part, piece.lane, piece.offset + start, min(SLICE_ROWS, piece.length - start))
        for piece in slices
        for start in range(0, piece.length, SLICE_ROWS)
    ]


def _over_slices(
    spec: MeetSpec, work: list[Slice], body: Callable[[Slice], dict[str, Any]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                piece = work[index]
                yield summary_row(index, piece.lane, lambda piece=piece: body(piece))

    return run


def _coordinates(spec: MeetSpec, piece: Slice) -> pa.Table:
    rows = batch_of_part(spec.evidence, piece.part, spec.excluded)
    return rows.slice(piece.offset, piece.length).select(["lane", "position", "ordinal"])


def _stage(spec: MeetSpec, piece: Slice, generation: int, arm: int) -> dict[str, Any]:
    content = spec.source.connector().read_content(spec.source_reading, _coordinates(spec, piece))
    return {"staged": spec.sink.connector().stage(generation, arm, content)}


def _inspect(spec: MeetSpec, piece: Slice) -> dict[str, Any]:
    sink = spec.sink.connector()
    total, sample, refused = 0, [], []
    for batch in spec.source.connector().read_content(spec.source_reading, _coordinates(spec, piece)):
        total += pc.sum(pc.binary_length(batch.column("content"))).as_py() or 0
        bad = sink.unrepresentable(batch)
        refused.append(batch.select(["lane", "position", "ordinal"]).filter(bad))
        if len(sample) < 5:
            short = batch.slice(0, 5 - len(sample)).to_pylist()
            sample += [{**row, "content": (row["content"] or "")[:200]} for row in short]
    table = pa.Table.from_batches(refused, schema=schemas.COORDINATE) if refused else schemas.COORDINATE.empty_table()
    if table.num_rows:
        directory = Path(spec.evidence) / "unrepresentable"
        directory.mkdir(exist_ok=True)
        part_write(str(directory), f"part-{piece.part:05d}-{piece.offset:09d}", table)
    return {"bytes": total, "unrepresentable": table.num_rows, "sample": sample}
