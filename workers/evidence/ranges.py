"""Matching by ranges: each Spark task takes one range of coordinates, reads both ends of it and judges.

No shuffle. What a task finds it writes as one Parquet part under the evidence directory, by rename, so that a retried
or speculative attempt leaves the same file; what comes back to the driver is one small row for each range.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.abilities import Ability
from recovery_api.domain.coordinates import Coordinate
from workers.connectors.protocols.appended import AppendedDelivery
from workers.connectors.protocols.delivery import Delivery
from workers.connectors.protocols.fence import FencedDelivery
from workers.connectors.protocols.record import Record
from workers.connectors.protocols.source import Source
from workers.connectors.readings import CoordinateRange, LateRows, Reading, Width
from workers.connectors.registry import delivery_find, delivery_make, record_make, source_make
from workers.connectors.rows import inside
from workers.evidence import schemas
from workers.evidence.acknowledged import acknowledged_narrow, acknowledged_write
from workers.evidence.approval import approval_compare
from workers.evidence.archive.looking import Archive, archive_look
from workers.evidence.batch import batch_rows, rows_digest
from workers.evidence.blocks import range_judge_by_blocks
from workers.evidence.grounds import at_or_below, history_fingerprint, late_summary
from workers.evidence.kernel import BlockVerdict, LaneQuestion, judge_block
from workers.evidence.known import Kept
from workers.evidence.remembered import judge_remembering, ledger_write, prefix_of, remembered_read
from workers.evidence.store import part_write
from workers.spark.on_demand import counted
from workers.spark.tasks import summary_row, tasks_run


@dataclass(frozen=True, slots=True)
class EndSpec:
    """One end as an executor can make it: no credential, only references."""

    kind: str
    options: dict[str, Any]

    def source(self) -> Source:
        return source_make(self.kind, self.options)

    def record(self) -> Record:
        return record_make(self.kind, self.options)

    def delivery(self) -> Delivery | None:
        """None: the sink is a record alone."""
        return delivery_find(self.kind, self.options)

    def fenced(self) -> FencedDelivery:
        return delivery_make(self.kind, self.options, Ability.FENCED)

    def appended(self) -> AppendedDelivery:
        return delivery_make(self.kind, self.options, Ability.APPENDED)


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
    most_rows: int | None = None
    """How many rows of one end's range may be held (workers.spark.on_demand). None: any number."""
    delivery: EndSpec | None = None
    """The end that is fired into; None: `sink`, as record and delivery in one."""
    block_rows: int = 0
    """Of how many events about the blocks are by which each range is judged, so that they can be kept. 0: as one."""
    has_ledger: bool = False
    """What is remembered is judged as well, and the ledger is told (workers.evidence.remembered)."""
    kept: Mapping[str, Kept] = field(default_factory=dict)
    admitted_now: int | None = None
    admitted_then: Mapping[str, int | None] = field(default_factory=dict)
    archive: Archive | None = None
    """Where the contents of lost events are looked for that the source does not hold any more."""
    """Below which transactions of the sink its entries are counted: those seen now, and those seen then."""

    @property
    def fired_into(self) -> EndSpec:
        return self.delivery or self.sink


def ranges_judge(session: Any, spec: MeetSpec, wanted: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """One summary a range, in the order of `spec.ranges`; of those at the places in `wanted` alone, where some are.

    Raises: the first error that a task met, as itself.
    """
    Path(spec.evidence).mkdir(parents=True, exist_ok=True)
    places = list(range(len(spec.ranges))) if wanted is None else list(wanted)
    return tasks_run(session, len(places), _over_ranges(spec, places))


def _over_ranges(
    spec: MeetSpec, places: Sequence[int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                place = places[index]
                yield summary_row(index, spec.ranges[place].lane, functools.partial(range_judge, spec, place))

    return judge


def range_judge(spec: MeetSpec, index: int) -> dict[str, Any]:
    range_ = spec.ranges[index]
    question = acknowledged_narrow(spec.questions[range_.lane], range_)
    with_key = question.scope is not None
    late = LateRows(question.frontier)
    history = _table(
        spec.source.source().read_history(spec.source_reading, range_, spec.width, with_key=with_key, late=late)
        if range_.lane in spec.source_reading.lanes
        else iter(()),
        spec.most_rows,
    )
    accepted = _table(spec.sink.record().read_accepted(spec.sink_reading, range_, spec.width), spec.most_rows)
    told: dict[str, Any] = {}
    remembered = remembered_read(spec, range_) if spec.has_ledger else None
    if spec.has_ledger:
        told["prefix"] = prefix_of(accepted, spec.admitted_now)
        if range_.lane in spec.admitted_then:
            told["prefix_then"] = prefix_of(accepted, spec.admitted_then[range_.lane])

    def judge(within: CoordinateRange, mine: pa.Table, theirs: pa.Table) -> tuple[BlockVerdict, pa.Table]:
        if remembered is None:
            return judge_block(question, mine, theirs), theirs
        there = remembered.filter(inside(remembered, within))
        return judge_remembering(spec, within, question, mine, theirs, there)

    if spec.block_rows:
        verdict, accepted, told["blocks"] = range_judge_by_blocks(
            question, range_, history, accepted, spec.block_rows, judge
        )
    else:
        verdict, accepted = judge(range_, history, accepted)
    if spec.archive is not None:
        findings, told["archived"], told["unarchived"] = archive_look(
            spec.archive, range_.lane, verdict.findings, history
        )
        verdict = replace(verdict, findings=findings)
    if remembered is not None:
        told["ledger"] = ledger_write(spec, index, question, verdict, history, accepted, remembered)
    batch = batch_rows(verdict.findings, spec.excluded)
    stranded = _stranded(question, history, accepted)
    part_write(spec.evidence, f"part-{index:05d}", verdict.findings)
    acknowledged_write(spec.evidence, index, range_.lane, question, verdict.findings, accepted)
    summary: dict[str, Any] = {
        "lane": range_.lane,
        "counts": verdict.counts,
        "findings": verdict.findings.num_rows,
        "batch_count": batch.num_rows,
        "batch_digest": rows_digest(batch),
        "history": history_fingerprint(history, question.frontier),
        "stranded": stranded.num_rows,
        "waiting": _lowest(verdict.findings, stranded),
        **told,
    }
    if range_.lane in spec.earlier:
        at = spec.earlier[range_.lane]
        is_same = at == question.frontier
        summary["earlier"] = summary["history"] if is_same else history_fingerprint(history, at)
    if late.first:
        summary["late"] = late_summary(late, verdict.findings)
    if spec.approved is not None:
        summary["approval"] = approval_compare(spec.approved, range_, question, batch, accepted, spec.excluded)
    return summary


def _stranded(question: LaneQuestion, history: pa.Table, accepted: pa.Table) -> pa.Table:
    """Position and ordinal of the events in scope above the frontier that the record does not hold, by coordinate."""
    keys = ["position", "ordinal"]
    is_above = ~at_or_below(history, question.frontier)
    if not is_above.any():
        return history.select(keys).slice(0, 0)
    above = history.filter(pa.array(is_above))
    if question.scope is not None:
        above = above.filter(pc.is_in(above["key"], value_set=question.scope))
    return above.select(keys).join(accepted.select(keys), keys, join_type="left anti")


def _lowest(findings: pa.Table, stranded: pa.Table) -> tuple[int, int] | None:
    """The lowest coordinate that was not accepted and that nobody acknowledged, at the frontier or above. None: none."""
    is_owed = pc.and_(pc.equal(findings["finding"], "lost"), pc.invert(findings["is_acknowledged"]))
    keys = ["position", "ordinal"]
    places = []
    for rows in (findings.filter(is_owed).select(keys), stranded):
        if rows.num_rows:
            first = rows.sort_by([(key, "ascending") for key in keys]).slice(0, 1).to_pylist()[0]
            places.append((first["position"], first["ordinal"]))
    return min(places, default=None)


def _table(batches: Iterator[pa.RecordBatch], most: int | None) -> pa.Table:
    held = list(counted(batches, most))
    if held:
        return pa.Table.from_batches(held)
    return schemas.HISTORY.empty_table()
