"""The co-partitioned way to meet: each Spark task takes one range of coordinates, reads both ends for it and judges.

No shuffle. What a task finds it writes as one Parquet part under the evidence directory, by rename, so that a retried
or speculative attempt leaves the same file; what comes back to the driver is one small row a range.
"""

from __future__ import annotations

import functools
import gc
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import FencepostError
from workers.connectors.readings import CoordinateRange, LateRows, Reading, Width
from workers.connectors.registry import connector_make
from workers.evidence import schemas
from workers.evidence.canonical import batch_digest, entry_digests
from workers.evidence.folder import folder_error
from workers.evidence.kernel import LaneQuestion, judge_block
from workers.spark.session import engine_errors_mapped, error_rows_raise

SUMMARY = pa.schema([("range", pa.int64()), ("lane", pa.string()), ("summary", pa.string()), ("error", pa.string())])
SUMMARY_DDL = "range bigint, lane string, summary string, error string"

GROUP_ROWS = 65_536
"""Rows of a Parquet group: findings stand kind by kind, so that who wants one kind reads a few groups."""

_modules_frozen = 0


@dataclass(frozen=True, slots=True)
class EndSpec:
    """One end as an executor can make it: no credential, only references."""

    kind: str
    options: dict[str, Any]

    def connector(self) -> Any:
        return connector_make(self.kind, self.options)


@dataclass(frozen=True, slots=True)
class MeetSpec:
    """Everything one co-partitioned job needs, shipped to its tasks.

    `approved` names the evidence directory of an approved plan: each task then also says how its range's batch differs
    from what was approved there.
    """

    source: EndSpec
    sink: EndSpec
    source_reading: Reading
    sink_reading: Reading
    ranges: tuple[CoordinateRange, ...]
    questions: dict[str, LaneQuestion]
    width: Width
    evidence: str
    approved: str | None = None
    excluded: pa.Table | None = None
    """lane, position, ordinal of owed events that are left out of any batch (the sink cannot represent them)."""
    earlier: Mapping[str, Coordinate] = field(default_factory=dict)
    """Where an earlier reading judged each lane: its history there is fingerprinted again."""


def ranges_judge(session: Any, spec: MeetSpec) -> list[dict[str, Any]]:
    """One summary a range, in the order of `spec.ranges`.

    Raises: the first error that a task met, as itself.
    """
    Path(spec.evidence).mkdir(parents=True, exist_ok=True)
    return tasks_run(session, len(spec.ranges), _over_ranges(spec))


Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class InProcess:
    """In place of a session: the tasks of a job run one after another in this process. For ends that live in its memory."""

    def run(self, count: int, task: Task) -> list[dict[str, Any]]:
        work = (pa.record_batch({"id": pa.array([index], pa.int64())}) for index in range(count))
        return [row for batch in work for answer in task(iter([batch])) for row in answer.to_pylist()]


def tasks_run(session: Any, count: int, task: Task, rows_a_task: int = 1) -> list[dict[str, Any]]:
    """Run `task` over the indexes below `count` and return their summaries by index. Raises a task's own error."""
    if count == 0:
        return []
    if isinstance(session, InProcess):
        rows = session.run(count, task)
    else:
        frame = session.range(0, count, 1, math.ceil(count / rows_a_task)).mapInArrow(task, SUMMARY_DDL)
        with engine_errors_mapped():
            rows = frame.select("range", "lane", "summary", "error").toArrow().to_pylist()
    error_rows_raise(json.loads(row["error"]) for row in rows if row["error"])
    return [json.loads(row["summary"]) for row in sorted(rows, key=lambda row: row["range"])]


def summary_row(index: int, lane: str, body: Callable[[], dict[str, Any]]) -> pa.RecordBatch:
    """`body`'s summary as one row, or the error it raised as data: only text survives the way back."""
    summary: str | None = None
    error: str | None = None
    try:
        summary = json.dumps(body())
    except FencepostError as failure:
        error = json.dumps(failure.as_row(), default=str)
    except OSError as failure:  # of the evidence folder, or this machine's; a connector maps its end's own
        if (away := folder_error(failure)) is None:
            raise
        error = json.dumps(away.as_row())
    imports_freeze()
    return pa.RecordBatch.from_arrays(
        [pa.array([index]), pa.array([lane]), pa.array([summary], pa.string()), pa.array([error], pa.string())],
        schema=SUMMARY,
    )


def imports_freeze() -> None:
    """Keeps what this worker process has imported out of the collector's sight.

    PySpark collects after every task, and walking the objects of the imported libraries took 0.15 s each time: longer
    than most tasks.
    """
    global _modules_frozen
    if len(sys.modules) != _modules_frozen:
        _modules_frozen = len(sys.modules)
        gc.freeze()


def part_write(directory: str, name: str, table: pa.Table) -> None:
    """One Parquet part, whole or not there: attempts write their own file and rename it."""
    final = Path(directory) / f"{name}.parquet"
    attempt = Path(directory) / f".{name}.{os.getpid()}.{os.urandom(4).hex()}"
    pq.write_table(table, attempt, compression="zstd", row_group_size=GROUP_ROWS)
    attempt.replace(final)


def _over_ranges(spec: MeetSpec) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                lane = spec.ranges[index].lane
                yield summary_row(index, lane, functools.partial(range_judge, spec, index))

    return judge


def range_judge(spec: MeetSpec, index: int) -> dict[str, Any]:
    range_ = spec.ranges[index]
    question = spec.questions[range_.lane]
    with_key = question.scope is not None
    late = LateRows(question.frontier)
    history = _table(
        spec.source.connector().read_history(spec.source_reading, range_, spec.width, with_key=with_key, late=late)
        if range_.lane in spec.source_reading.lanes
        else iter(())
    )
    accepted = _table(spec.sink.connector().read_accepted(spec.sink_reading, range_, spec.width))
    verdict = judge_block(question, history, accepted)
    batch = batch_rows(verdict.findings, spec.excluded)
    part_write(spec.evidence, f"part-{index:05d}", verdict.findings)
    summary: dict[str, Any] = {
        "lane": range_.lane,
        "counts": verdict.counts,
        "findings": verdict.findings.num_rows,
        "batch_count": batch.num_rows,
        "batch_digest": rows_digest(batch),
        "history": history_fingerprint(history, question.frontier),
        "stranded": _stranded(question, history, accepted),
    }
    if range_.lane in spec.earlier:
        at = spec.earlier[range_.lane]
        is_same = at == question.frontier
        summary["earlier"] = summary["history"] if is_same else history_fingerprint(history, at)
    if late.first:
        summary["late"] = _late(late, verdict.findings)
    if spec.approved is not None:
        summary["approval"] = _against_approved(spec, range_, question, batch, accepted)
    return summary


BATCH_COLUMNS = [
    *("finding", "lane", "position", "ordinal"),
    *("is_acknowledged", "is_retained", "is_keyed_hidden", "history_digest"),
]
"""What `batch_rows` looks at."""


def batch_rows(findings: pa.Table, excluded: pa.Table | None = None) -> pa.Table:
    """What a re-drive sends of `findings`: lost, still held by the source, not acknowledged, deliverable by identity.

    Returns columns lane, position, ordinal, payload_digest, in coordinate order.
    """
    wanted = pc.and_(
        pc.and_(pc.equal(findings["finding"], "lost"), findings["is_retained"]),
        pc.and_(pc.invert(findings["is_acknowledged"]), pc.invert(findings["is_keyed_hidden"])),
    )
    rows = findings.filter(wanted).select(["lane", "position", "ordinal", "history_digest"])
    rows = rows.rename_columns(["lane", "position", "ordinal", "payload_digest"])
    if excluded is not None and excluded.num_rows:
        rows = rows.join(excluded, ["lane", "position", "ordinal"], join_type="left anti")
    return rows.sort_by([("position", "ascending"), ("ordinal", "ascending")])


def rows_digest(batch: pa.Table) -> str:
    """The batch digest of rows of lane, position, ordinal, payload_digest; of coordinates alone where no content was read."""
    lanes, positions, ordinals = (batch[name].to_pylist() for name in ("lane", "position", "ordinal"))
    payloads = batch["payload_digest"].cast(pa.binary()).fill_null(b"").to_pylist()
    return batch_digest(entry_digests(lanes, positions, ordinals, payloads))


def history_fingerprint(history: pa.Table, frontier: Coordinate) -> dict[str, int]:
    """An order-free fingerprint of the history at or below `frontier`: a count and sums that bind content to position."""
    below = _at_or_below(history, frontier)
    position = history["position"].to_numpy()
    weight = position[below].astype(np.uint64) * np.uint64(2) + np.uint64(1)
    total = {"count": int(below.sum()), "positions": int(weight.sum(dtype=np.uint64))}
    if "payload_digest" in history.column_names and history.num_rows:
        digests = history["payload_digest"].combine_chunks()
        limbs = np.frombuffer(digests.buffers()[1], dtype=">u8")[digests.offset * 4 :][: len(digests) * 4]
        limbs = limbs.reshape(-1, 4)[below].astype(np.uint64)
        total["contents"] = int((limbs * weight[:, None]).sum(dtype=np.uint64))
    return total


def _against_approved(
    spec: MeetSpec, range_: CoordinateRange, question: LaneQuestion, armed: pa.Table, accepted: pa.Table
) -> dict[str, int]:
    """How the range's batch differs from the approved one: only fewer is allowed, each of those found accepted or
    acknowledged since."""
    approved = ds.dataset(parts_of(str(spec.approved)), format="parquet", schema=schemas.FINDING)
    promised = batch_rows(approved.to_table(filter=range_filter(range_, question.frontier)), spec.excluded)
    keys = ["position", "ordinal", "payload_digest"]
    newly = armed.select(keys).join(promised.select(keys), keys, join_type="left anti")
    gone = promised.select(keys).join(armed.select(keys), keys, join_type="left anti")
    unaccepted = gone.join(accepted.select(keys), keys, join_type="left anti")
    unexplained = unaccepted
    if question.acknowledged is not None:
        unexplained = unaccepted.join(question.acknowledged, ["position", "ordinal"], join_type="left anti")
    return {
        "approved": promised.num_rows,
        "not_approved": newly.num_rows,
        "landed_meanwhile": gone.num_rows - unaccepted.num_rows,
        "acknowledged_since": unaccepted.num_rows - unexplained.num_rows,
        "unexplained": unexplained.num_rows,
    }


def _late(late: LateRows, findings: pa.Table) -> dict[str, Any]:
    """What was seen of late rows in this range, and which of the named ones the sink lacks."""
    lost = findings.filter(pc.equal(findings["finding"], "lost")).select(["position", "ordinal"])
    first = [(one.position, one.ordinal) for one in late.first]
    named = pa.table({"position": [one for one, _ in first], "ordinal": [one for _, one in first]})
    lacking = lost.join(named, ["position", "ordinal"], join_type="left semi").to_pylist()
    missing = {(row["position"], row["ordinal"]) for row in lacking}
    return {
        "count": late.count,
        "written_since": late.written_since,
        "first": first,
        "missing": [pair for pair in first if pair in missing],
    }


def _stranded(question: LaneQuestion, history: pa.Table, accepted: pa.Table) -> int:
    """How many events in scope above the frontier the record does not hold, by coordinate."""
    is_above = ~_at_or_below(history, question.frontier)
    if not is_above.any():
        return 0
    above = history.filter(pa.array(is_above))
    if question.scope is not None:
        above = above.filter(pc.is_in(above["key"], value_set=question.scope))
    keys = ["position", "ordinal"]
    return above.select(keys).join(accepted.select(keys), keys, join_type="left anti").num_rows


def _at_or_below(rows: pa.Table, frontier: Coordinate) -> np.ndarray:
    position, ordinal = rows["position"].to_numpy(), rows["ordinal"].to_numpy()
    if frontier.ordinal >= 0 and not ordinal.any():
        return position <= frontier.position
    return (position < frontier.position) | ((position == frontier.position) & (ordinal <= frontier.ordinal))


def parts_of(directory: str) -> list[str]:
    """The evidence parts under a directory, in the order of their ranges."""
    return sorted(str(part) for part in Path(directory).glob("part-*.parquet"))


def range_filter(range_: CoordinateRange, frontier: Coordinate | None = None) -> Any:
    """`range_`, and at or below `frontier`, as a filter on evidence parts."""
    held = ds.field("lane") == range_.lane
    if range_.low is not None:
        held &= (ds.field("position") > range_.low.position) | (
            (ds.field("position") == range_.low.position) & (ds.field("ordinal") >= range_.low.ordinal)
        )
    if range_.high is not None:
        held &= (ds.field("position") < range_.high.position) | (
            (ds.field("position") == range_.high.position) & (ds.field("ordinal") < range_.high.ordinal)
        )
    if frontier is not None:
        held &= (ds.field("position") < frontier.position) | (
            (ds.field("position") == frontier.position) & (ds.field("ordinal") <= frontier.ordinal)
        )
    return held


def _table(batches: Iterator[pa.RecordBatch]) -> pa.Table:
    held = list(batches)
    if held:
        return pa.Table.from_batches(held)
    return schemas.HISTORY.empty_table()
