"""Moving an owed batch: what its content is, and staging it at the sink in parallel.

The batch lies with the evidence of a reading, one part a range. A task takes a slice of one part, reads
the content of those coordinates in the reading's own source snapshot, and hands it on as Arrow. Repeating a task
leaves the same rows: staging is keyed by generation, arm and coordinate.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.conditions import LATER_KEYS_NAMED, LaterKeys
from recovery_api.domain.evidence_places import Stored, written_from_row
from workers.connectors.protocols.record import OrderedRecord
from workers.evidence import schemas
from workers.evidence.archive.contents import contents_read
from workers.evidence.batch import UNREPRESENTABLE, Slice, batch_of_part, slices_of
from workers.evidence.ranges import MeetSpec
from workers.evidence.read import Evidence
from workers.evidence.store import part_write, rows_read
from workers.spark.session import engine_errors_mapped, error_rows_raise
from workers.spark.stored import stored_frame
from workers.spark.tasks import InProcess, session_chosen, summary_row, tasks_run

SLICES_A_TASK = 2
"""A task costs 0.1 s before it begins, and staging a slice little more."""
LATER_KEYS = "later-keys"
KEYS = pa.schema([("key", pa.string())])
SAMPLE_ROWS = 5
SAMPLE_CHARACTERS = 200


def batch_stage(session: Any, evidence: Evidence, generation: int, arm: int) -> int:
    """Stage the batch at the sink. Returns how many rows its tasks handed over. Raises a task's own error."""
    work = slices_of(evidence)
    spec = evidence.spec
    stage = _over_slices(spec, work, lambda piece: _stage(spec, piece, generation, arm))
    rows = tasks_run(session, len(work), stage, SLICES_A_TASK)
    return sum(row["staged"] for row in rows)


def batch_inspect(session: Any, evidence: Evidence) -> dict[str, Any]:
    """What the batch's content is: `bytes`, a `sample` of rows cut short, and how many events the sink cannot represent.

    The coordinates of those are written beside the evidence (`unrepresentable_read`), and so, where the sink's effect
    needs order, are the keys with a later accepted event (`later_keys_count`): `stored` is the evidence with both.
    """
    work = slices_of(evidence)
    spec = evidence.spec
    rows = tasks_run(
        session, len(work), _over_slices(spec, work, lambda piece: _inspect(spec, piece, work.index(piece)))
    )
    return {
        "stored": evidence.stored.with_(written_from_row(one) for row in rows for one in row["written"]),
        "bytes": sum(row["bytes"] for row in rows),
        "unrepresentable": sum(row["unrepresentable"] for row in rows),
        "sample": [line for row in rows for line in row["sample"]][:20],
    }


def later_keys_count(session: Any, stored: Stored) -> LaterKeys:
    """Over the slices of a batch's inspection: the keys that have a later accepted event, each counted once."""
    objects = stored.of(LATER_KEYS)
    if not objects:
        return LaterKeys()
    engine = session_chosen(session)
    if isinstance(engine, InProcess):
        named = sorted(rows_read(stored, objects, KEYS)["key"].unique().to_pylist())
        return LaterKeys(len(named), tuple(named[:LATER_KEYS_NAMED]))
    with engine_errors_mapped():
        keys = stored_frame(engine, stored, LATER_KEYS, KEYS).select("key", "error").distinct().persist()
        try:
            met = keys.filter("error IS NOT NULL").select("error").toArrow()
            error_rows_raise(json.loads(text) for text in met["error"].to_pylist())
            first = keys.orderBy("key").limit(LATER_KEYS_NAMED).select("key")
            return LaterKeys(keys.count(), tuple(first.toArrow()["key"].to_pylist()))
        finally:
            keys.unpersist()


def _over_slices(
    spec: MeetSpec, work: list[Slice], body: Callable[[Slice], dict[str, Any]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                piece = work[index]
                yield summary_row(index, piece.lane, functools.partial(body, piece))

    return run


def _content(spec: MeetSpec, piece: Slice) -> Iterator[pa.RecordBatch]:
    return contents_read(spec, batch_of_part(spec, piece.part).slice(piece.offset, piece.length))


def _stage(spec: MeetSpec, piece: Slice, generation: int, arm: int) -> dict[str, Any]:
    content = _content(spec, piece)
    return {"staged": spec.fired_into.fenced().stage(generation, arm, content)}


def _inspect(spec: MeetSpec, piece: Slice, number: int) -> dict[str, Any]:
    delivery, record = spec.fired_into.delivery(), spec.sink.record()
    total = 0
    sample: list[dict[str, Any]] = []
    refused = []
    sent = []
    for batch in _content(spec, piece):
        total += pc.sum(pc.binary_length(batch.column("content"))).as_py() or 0
        is_refused = pa.repeat(False, batch.num_rows) if delivery is None else delivery.unrepresentable(batch)
        refused.append(batch.select(["lane", "position", "ordinal"]).filter(is_refused))
        if record.needs_order:
            sent.append(batch.select(["position", "ordinal", "key"]).filter(pc.invert(is_refused)))
        if len(sample) < SAMPLE_ROWS:
            short = batch.slice(0, SAMPLE_ROWS - len(sample))
            cut = pc.utf8_slice_codeunits(short.column("content"), 0, SAMPLE_CHARACTERS)
            sample += [
                {**row, "content": content, "position": str(row["position"]), "ordinal": str(row["ordinal"])}
                for row, content in zip(short.drop_columns(["content"]).to_pylist(), cut.to_pylist(), strict=True)
            ]
    table = pa.Table.from_batches(refused, schema=schemas.COORDINATE) if refused else schemas.COORDINATE.empty_table()
    written = part_write(spec.evidence, UNREPRESENTABLE, number, table)
    if sent:
        assert isinstance(record, OrderedRecord)
        later = record.later_accepted(spec.sink_reading, piece.lane, pa.Table.from_batches(sent))
        written += part_write(spec.evidence, LATER_KEYS, number, pa.table({"key": later}, schema=KEYS))
    told = [one.as_row() for one in written]
    return {"written": told, "bytes": total, "unrepresentable": table.num_rows, "sample": sample}
