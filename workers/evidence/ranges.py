"""Matching by ranges: each Spark task takes one range of coordinates, reads both ends of it and judges.

No shuffle, and no more memory for a larger table: a task that meets more rows than it is meant to hold takes its range
in stretches, and what it works out it works out for a few blocks at a time. What it finds it writes as one Parquet part under the evidence directory, by rename, so that a retried
or speculative attempt leaves the same file; what comes back to the driver is one small row for each range.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.abilities import Ability
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.evidence_places import NOTHING, Stored
from recovery_api.domain.ledger.blocks import ROWS_A_BLOCK
from workers.connectors.kept import kept_between_ranges
from workers.connectors.protocols.appended import AppendedDelivery
from workers.connectors.protocols.delivery import Delivery
from workers.connectors.protocols.fence import FencedDelivery
from workers.connectors.protocols.record import Record
from workers.connectors.protocols.source import Source
from workers.connectors.readings import CoordinateRange, Reading, Width
from workers.connectors.registry import delivery_find, delivery_make, record_make, source_make
from workers.connectors.rows import inside
from workers.evidence.acknowledged import acknowledged_accepted, acknowledged_narrow
from workers.evidence.approval import approval_compare, approval_read
from workers.evidence.archive.looking import Archive, archive_look
from workers.evidence.batch import batch_rows, rows_digest
from workers.evidence.blocks import Group, range_judge_by_blocks
from workers.evidence.cutting import ROWS_A_RANGE
from workers.evidence.grounds import at_or_below, history_fingerprint, is_all_below, late_missing
from workers.evidence.holding import Held, stretches_held
from workers.evidence.kernel import BlockVerdict, LaneQuestion, judge_block
from workers.evidence.known import Kept
from workers.evidence.remembered import judge_remembering, ledger_tell, prefix_of, remembered_read
from workers.evidence.telling import Told
from workers.spark.slots import slots_of
from workers.spark.tasks import summary_row, tasks_run

RANGES_A_TASK = 8
"""At most. More would save tasks, of about 18 ms each (docs/performance.md); fewer are done again when an executor dies."""


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

    `evidence`: the place that is written to. `approved` is the evidence of an approved plan: each task then also says how
    its range's batch differs from what was approved there. `stored`: what was written, once it was judged.
    """

    source: EndSpec
    sink: EndSpec
    source_reading: Reading
    sink_reading: Reading
    ranges: tuple[CoordinateRange, ...]
    questions: dict[str, LaneQuestion]
    width: Width
    evidence: str
    approved: Stored | None = None
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
    """Below which transactions of the sink its entries are counted: those seen now, and those seen then."""
    archive: Archive | None = None
    """Where the contents of lost events are looked for that the source does not hold any more."""
    rows_a_range: int = ROWS_A_RANGE
    """Rows of both ends that one task is meant to hold; with twice as many it cuts its range (workers.evidence.holding)."""

    remembered: Stored | None = None
    """What is remembered, put beside the evidence (workers.evidence.remembered). None: nothing is."""
    stored: Stored = NOTHING

    @property
    def fired_into(self) -> EndSpec:
        return self.delivery or self.sink


def ranges_judge(session: Any, spec: MeetSpec, wanted: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """One summary a range, in the order of `spec.ranges`; of those at the places in `wanted` alone, where some are.

    Raises: the first error that a task met, as itself.
    """
    places = list(range(len(spec.ranges))) if wanted is None else list(wanted)
    return tasks_run(session, len(places), _over_ranges(spec, places), ranges_a_task(len(places), slots_of(session)))


def ranges_a_task(ranges: int, slots: int) -> int:
    """How many neighbouring ranges one task takes, one after the other, over connections that it opens once: so that every
    slot has about as many.

    >>> [ranges_a_task(ranges, 6) for ranges in (1, 8, 18, 2670)], ranges_a_task(54, 2)
    ([1, 2, 3, 8], 7)
    """
    tasks = slots * math.ceil(ranges / (slots * RANGES_A_TASK))
    return max(1, math.ceil(ranges / max(tasks, 1)))


def _over_ranges(
    spec: MeetSpec, places: Sequence[int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with kept_between_ranges():
            for batch in batches:
                for index in batch.column(0).to_pylist():
                    place = places[index]
                    yield summary_row(index, spec.ranges[place].lane, functools.partial(range_judge, spec, place))

    return judge


def range_judge(spec: MeetSpec, index: int) -> dict[str, Any]:
    """The summary of one range, whose findings are written: the sums of the groups of blocks it was judged in."""
    lane = spec.ranges[index].lane
    with closing(Told(spec, index, lane)) as told:
        for held in stretches_held(spec, spec.ranges[index]):
            _stretch_tell(spec, held, told)
            del held
        return told.finish()


def _stretch_tell(spec: MeetSpec, held: Held, told: Told) -> None:
    question = acknowledged_narrow(spec.questions[held.range_.lane], held.range_)
    promised = None if spec.approved is None else approval_read(spec.approved, held.range_, question, spec.excluded)
    remembered = remembered_read(spec, held.range_) if spec.has_ledger else None
    missing: list[tuple[int, int]] = []
    for group in _groups(spec, question, held, remembered):
        findings = _group_tell(spec, question, group, remembered, promised, told)
        missing += late_missing(held.late, findings)
        pa.default_memory_pool().release_unused()
    told.late_add(held.late, missing)


def _groups(spec: MeetSpec, question: LaneQuestion, held: Held, remembered: pa.Table | None) -> Iterator[Group]:
    def judge(within: CoordinateRange, mine: pa.Table, theirs: pa.Table) -> tuple[BlockVerdict, pa.Table]:
        if remembered is None:
            return judge_block(question, mine, theirs), theirs
        there = remembered.filter(inside(remembered, within))
        return judge_remembering(spec, within, question, mine, theirs, there)

    def sums(mine: pa.Table, theirs: pa.Table) -> dict[str, dict[str, int]]:
        return _sums(spec, question, mine, theirs)

    rows = spec.block_rows or ROWS_A_BLOCK
    return range_judge_by_blocks(question, held, rows, judge, sums, is_kept=bool(spec.block_rows))


def _sums(spec: MeetSpec, question: LaneQuestion, history: pa.Table, accepted: pa.Table) -> dict[str, dict[str, int]]:
    """What is summed over a range: fingerprints of the history at the frontier and the earlier one, and of acceptances."""
    lane = question.lane
    sums = {"history": history_fingerprint(history, question.frontier)}
    if lane in spec.earlier:
        at = spec.earlier[lane]
        sums["earlier"] = sums["history"] if at == question.frontier else history_fingerprint(history, at)
    if spec.has_ledger:
        sums["prefix"] = prefix_of(accepted, spec.admitted_now)
        if lane in spec.admitted_then:
            sums["prefix_then"] = prefix_of(accepted, spec.admitted_then[lane])
    return sums


def _group_tell(
    spec: MeetSpec,
    question: LaneQuestion,
    group: Group,
    remembered: pa.Table | None,
    promised: pa.Table | None,
    told: Told,
) -> pa.Table:
    """Its findings, once they, what the ledger is told of it, and its summary are given to `told`."""
    history, accepted, findings = group.history, group.accepted, group.verdict.findings
    summary: dict[str, Any] = {}
    if spec.archive is not None:
        looked = archive_look(spec.archive, question.lane, findings, history)
        findings, summary["archived"], summary["unarchived"] = looked
    if remembered is not None:
        there = remembered.filter(inside(remembered, group.range_))
        items, summary["ledger"] = ledger_tell(spec, question, findings, history, accepted, there)
        told.items.add(items)
    batch = batch_rows(findings, spec.excluded)
    stranded = _stranded(question, history, accepted)
    told.findings.add(findings)
    told.acknowledged.append(acknowledged_accepted(question, findings, accepted))
    if promised is not None:
        here = promised.filter(inside(promised, group.range_))
        summary["approval"] = approval_compare(here, question, batch, accepted)
    told.add(
        {
            "counts": group.verdict.counts,
            "findings": findings.num_rows,
            "batch_count": batch.num_rows,
            "batch_digest": rows_digest(batch),
            "stranded": stranded.num_rows,
            "waiting": _lowest(findings, stranded),
            "blocks": group.told,
            **group.sums,
            **summary,
        }
    )
    return findings


def _stranded(question: LaneQuestion, history: pa.Table, accepted: pa.Table) -> pa.Table:
    """Position and ordinal of the events in scope above the frontier that the record does not hold, by coordinate."""
    keys = ["position", "ordinal"]
    if is_all_below(history, question.frontier):
        return history.select(keys).slice(0, 0)
    above = history.filter(pa.array(~at_or_below(history, question.frontier)))
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
