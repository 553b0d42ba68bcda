"""From a registered pipeline to its two ends, its reading, and the engine that reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from django.conf import settings
from django.utils import timezone

from recovery_api.domain.abilities import RECORDS, Ability
from recovery_api.domain.capabilities import Capability, capability_joined
from recovery_api.domain.conditions import UndisciplinedPath
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import AccessDenied, Refused, SinkRestored
from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.frontiers import coordinate_as_row, coordinate_from_row, frontier_from_row
from recovery_api.domain.grounds import Standing
from recovery_api.domain.identity import NO_REUSE
from recovery_api.domain.kinds import abilities_of, deciding, kind_get
from recovery_api.domain.ledger.epochs import epoch_digest
from recovery_api.domain.restores import RestoreFinding, SinkMemory
from recovery_api.domain.schedules import PinnedLane
from recovery_api.models import Intent, Pipeline, Plan, Sink, Source
from recovery_api.selectors.archives import archive_parts, is_asked, source_mapping
from recovery_api.selectors.audits import audit_newest, certified_by_lane
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.evidence_places import store_url, stored_find, stored_get
from recovery_api.selectors.grounds import attested_by, proven_by_lane
from recovery_api.selectors.ledger import (
    ITEM_COLUMNS,
    ledger_inherited,
    ledger_items_remembered,
    ledger_lanes,
    ledger_token,
)
from recovery_api.selectors.omissions import AcknowledgedLane, acknowledged_by_lane
from recovery_api.services.evidence_places import evidence_begin
from recovery_api.services.intents import intent_spark
from recovery_api.services.sinks import sink_remember as remember
from workers.connectors.protocols.fence import FencedDelivery
from workers.connectors.protocols.record import Record
from workers.connectors.readings import LaneReading, SafeFrontier, Width
from workers.connectors.registry import delivery_make, record_make
from workers.connectors.tested import capability_tested
from workers.evidence.archive.looking import Archive
from workers.evidence.batch import batch_held
from workers.evidence.grounds import Earlier, Remembered
from workers.evidence.known import ITEMS, Ledger
from workers.evidence.places import store_open, store_probe
from workers.evidence.ranges import EndSpec
from workers.evidence.read import AuditRequest, Certified
from workers.spark import session as engine
from workers.spark.on_demand import OnDemand
from workers.spark.tasks import InProcess


def ends_of(pipeline: Pipeline) -> list[Source | Sink]:
    """Its source, its record, and its delivery where that is an end of its own."""
    return [pipeline.source, pipeline.sink, *([pipeline.delivery] if pipeline.delivery else [])]


def record_of(pipeline: Pipeline) -> Record:
    """The acceptance record that the pipeline is judged by."""
    return record_make(pipeline.sink.kind, pipeline.sink.options)


def fenced_of(pipeline: Pipeline) -> FencedDelivery:
    """The fenced delivery of the pipeline. Raises: Refused where it has none."""
    return delivery_make(pipeline.fired_into.kind, pipeline.fired_into.options, Ability.FENCED)


def capability_of(pipeline: Pipeline) -> Capability:
    """What the pipeline's record and delivery can do together, each as tested now."""
    delivery = pipeline.delivery
    fed = None if delivery is None else capability_tested(delivery.kind, delivery.options)
    return capability_joined(record_capability_of(pipeline), fed)


def record_capability_of(pipeline: Pipeline) -> Capability:
    """What its record's end can do, as tested now: all that an audit rests on."""
    return capability_tested(pipeline.sink.kind, pipeline.sink.options)


def paths_read(pipeline: Pipeline) -> Sequence[UndisciplinedPath]:
    """The ways into record or target that pass the fence by (C1); that this login may not look for them is one, too."""
    try:
        found: Sequence[UndisciplinedPath] = record_of(pipeline).undisciplined_paths()
    except AccessDenied:
        return [("unseen", None, "this login may not see who else can write there")]
    return found


def evidence_place(sort: str, name: str) -> str:
    """A place of its own for one attempt's evidence. Raises: EvidenceUnwritable where the store is no folder and cannot be made
    one; a bucket is asked when something is put there."""
    store_open(store_url())
    return evidence_begin(sort, name, now_get())


def plan_stored(plan: Plan) -> Stored:
    """The plan's evidence. Raises: Refused where it is not kept any more."""
    found = stored_get(plan.evidence_uri)
    if found is None:
        raise _plan_gone(plan)
    return found


def evidence_check(plan: Plan) -> None:
    """Before anything is asked of the sink: a claim that could only be refused, or put off, would fence the relay for it.

    Raises: EvidenceUnwritable; AccessDenied; Refused where the plan's own evidence is gone.
    """
    store_probe(store_url())
    if batch_held(stored_get(plan.evidence_uri)) != plan.batch_count:
        raise _plan_gone(plan)


def _plan_gone(plan: Plan) -> Refused:
    problem = f"the plan's evidence at {plan.evidence_uri} is gone, whole or in part: plan again"
    return Refused("Comparing with what was approved", problem, "No claim was taken for it.")


def request_make(
    pipeline: Pipeline,
    evidence: str,
    *,
    frontier: Mapping[str, Coordinate] | None = None,
    plan: Plan | None = None,
    generation: int | None = None,
    approved: Stored | None = None,
    excluded: pa.Table | None = None,
    aged: Mapping[str, PinnedLane] | None = None,
    is_rebased: bool = False,
) -> AuditRequest:
    """What is to be read of `pipeline`, at its safe frontier unless another is asked, or `aged`: one pinned a window ago.

    `is_rebased`: in full, by name.

    `plan`: it found what is safe, so that is not asked again; what it read is compared with what is read now.
    """
    pins = plan.pins if plan else {}
    return AuditRequest(
        source=EndSpec(pipeline.source.kind, pipeline.source.options),
        sink=EndSpec(pipeline.sink.kind, pipeline.sink.options),
        delivery=None if pipeline.delivery is None else EndSpec(pipeline.delivery.kind, pipeline.delivery.options),
        evidence=evidence,
        frontier=dict(frontier or {}),
        aged=aged,
        scope=None if pipeline.scope is None else tuple(pipeline.scope),
        acknowledged={lane: acknowledged_table(found) for lane, found in acknowledged_by_lane(pipeline).items()},
        certified={lane: Certified(*found) for lane, found in certified_by_lane(pipeline).items()},
        proven=safe_from_rows(pins["safe"]) if plan else {},
        remembered={} if plan else remembered_make(pipeline),
        earlier=earlier_of_plan(plan) if plan else earlier_of_audit(pipeline),
        attested_by=attested_by(pipeline.source),
        ids_attested_by=attested_by(pipeline.source, NO_REUSE),
        width=Width.PAYLOAD,
        generation=generation,
        approved=approved,
        excluded=excluded,
        ledger=ledger_make(pipeline, is_rebased),
        clock=now_get,
        archive=archive_of(pipeline),
    )


def archive_of(pipeline: Pipeline, *, is_read: bool = False) -> Archive | None:
    """Where contents are looked for that the source does not hold any more. None: nothing was ever archived, or, unless a
    person reads (`is_read`), nothing is remembered that could be asked for."""
    parts = archive_parts(pipeline) if is_read or is_asked(pipeline) else ()
    return Archive(parts, source_mapping(pipeline.source)) if parts else None


def ledger_make(pipeline: Pipeline, is_rebased: bool = False) -> Ledger:
    """What is remembered of the pipeline. Its token is read first: what comes in after that is noticed."""
    token = ledger_token(pipeline)
    columns = list(zip(*ledger_items_remembered(pipeline), strict=True)) or [()] * len(ITEM_COLUMNS)
    held = dict(zip(ITEM_COLUMNS, columns, strict=True))
    held["digest"] = tuple(bytes(one) or None for one in held["digest"])
    held["other_digest"] = tuple(None if one is None else bytes(one) for one in held["other_digest"])
    held["settled_by"] = tuple(one or None for one in held["settled_by"])
    items = pa.table(
        [pa.array(held.get(field.name, [None] * len(columns[0])), field.type) for field in ITEMS], schema=ITEMS
    )
    source, sink = pipeline.source, pipeline.sink
    ends = {
        name: {"kind": end.kind, **deciding(end.kind, end.options)}
        for name, end in (("source", source), ("sink", sink))
    }
    sink_incarnation = Sink.objects.values_list("said_identity", flat=True).get(pk=sink.pk) or ""

    def epoch(source_incarnation: str) -> str:
        scope = None if pipeline.scope is None else list(pipeline.scope)
        return epoch_digest(scope=scope, **ends, incarnations=[source_incarnation, sink_incarnation])

    lanes, inherited = ledger_lanes(pipeline), ledger_inherited(pipeline)
    stored = stored_find(known.evidence for known in (*lanes.values(), *inherited.values()) if known.evidence)
    return Ledger(lanes, items, epoch, token, is_rebased, inherited, stored)


def acknowledged_table(found: AcknowledgedLane) -> pa.Table:
    """A lane's acknowledged coordinates as the kernel takes them: position and ordinal."""
    columns = {"position": found.positions, "ordinal": found.ordinals}
    return pa.table({name: np.frombuffer(held, ">i8").astype(np.int64) for name, held in columns.items()})


@contextmanager
def session_open(intent: Intent) -> Iterator[Any]:
    """Where the intent's readings are judged: this process while both ends are small, or where one lives in it; else its
    Spark session, with the intent's tag on what this thread runs.

    Where that runs is written in the intent before anything does, so that a successor can find and interrupt it; what a
    predecessor left running is interrupted first.
    """
    pipeline = intent.pipeline
    if pipeline is not None and any(kind_get(end.kind).is_in_process for end in ends_of(pipeline)):
        yield InProcess()
        return
    if intent.spark_session_id:
        engine.job_interrupt(intent.spark_session_id, intent.spark_tag)
    with ExitStack() as held:

        def opened() -> Any:
            session = engine.session_get()
            tag = engine.tag_make(f"intent {intent.id}")
            intent_spark(intent, engine.session_of(session), tag, now_get())
            held.enter_context(engine.engine_errors_mapped())
            held.enter_context(engine.job_tagged(session, tag))
            return session

        yield OnDemand(settings.FENCEPOST_IN_PROCESS_ROWS, opened)


def sink_compare(pipeline: Pipeline, said: SinkMemory | None = None) -> RestoreFinding:
    """Compare what the sink says now with what it said before, and remember the greater. `said`: None: it is asked.

    Where it lies behind that memory it was restored: certificates and waiting plans are void from now on.
    """
    return remember(pipeline.sink, said or record_of(pipeline).said(), actor="worker", now=timezone.now())


def sink_check(pipeline: Pipeline) -> None:
    """Raises: SinkRestored where one of its sinks lies behind what it said before: nothing fires (THEORY 4, step 9).

    A delivery that keeps no record has nothing to compare.
    """
    finding = sink_compare(pipeline)
    if finding.is_restored:
        raise SinkRestored(pipeline.sink.name, finding.says)
    sink = pipeline.delivery
    if sink is not None and abilities_of(sink.kind, sink.options) & RECORDS:
        finding = remember(sink, record_make(sink.kind, sink.options).said(), actor="worker", now=timezone.now())
        if finding.is_restored:
            raise SinkRestored(sink.name, finding.says)


def safe_as_rows(readings: Mapping[str, LaneReading]) -> dict[str, Any]:
    """The safe frontier of each lane, as a plan pins it."""
    return {
        lane: {
            "coordinate": coordinate_as_row(reading.safe.coordinate) if reading.safe.coordinate else None,
            "ground": reading.safe.ground,
            "says": reading.safe.says,
            "weakness": reading.safe.weakness,
            "standing": reading.safe.standing.value,
            "given": reading.safe.given,
            "catalogue": reading.safe.catalogue,
            "incarnation": reading.safe.incarnation,
        }
        for lane, reading in readings.items()
    }


def safe_from_rows(rows: Mapping[str, Any]) -> dict[str, SafeFrontier]:
    """What `safe_as_rows` wrote."""
    return {lane: safe_from_row(row) for lane, row in rows.items()}


def safe_from_row(row: Mapping[str, Any]) -> SafeFrontier:
    """One lane of it. A row of before standings were known is taken to be assumed."""
    return SafeFrontier(
        coordinate_from_row(row["coordinate"]) if row["coordinate"] else None,
        row["ground"],
        row["says"],
        weakness=row["weakness"],
        standing=Standing(row.get("standing", Standing.ASSUMED)),
        given=row.get("given", ""),
        catalogue=row.get("catalogue", ""),
        incarnation=row.get("incarnation", ""),
    )


def remembered_make(pipeline: Pipeline) -> dict[str, Remembered]:
    """The furthest frontier of each lane that was proven for the pipeline's source as it is now registered."""
    return {
        lane: Remembered(safe_from_row(row), f"{at:%Y-%m-%d %H:%M} UTC")
        for lane, (row, at) in proven_by_lane(pipeline.source).items()
    }


def earlier_of_audit(pipeline: Pipeline) -> dict[str, Earlier]:
    """The history as the newest audit that stands read it, where it was judged."""
    audit = audit_newest(pipeline)
    if audit is None:
        return {}
    since = f"the audit of {audit.finished_at:%Y-%m-%d %H:%M} UTC"
    return {
        lane: Earlier(
            coordinate_from_row(row["frontier"]),
            _fingerprint(row["history"]),
            row["safe_frontier"]["incarnation"],
            since,
            row.get("source_xmin"),
        )
        for lane, row in audit.lanes.items()
        if (row.get("safe_frontier") or {}).get("incarnation") and "positions" in (row.get("history") or {})
    }


def earlier_of_plan(plan: Plan) -> dict[str, Earlier]:
    """The history as the plan read it, at the plan's frontier."""
    frontier = frontier_from_row(plan.frontier)
    return {
        lane: Earlier(
            frontier[lane],
            _fingerprint(row),
            plan.pins["safe"][lane]["incarnation"],
            "the plan was made",
            plan.pins.get("source_xmin"),
        )
        for lane, row in (plan.pins.get("history") or {}).items()
        if lane in frontier and lane in plan.pins["safe"]
    }


def _fingerprint(row: Mapping[str, str]) -> dict[str, int]:
    return {name: int(value) for name, value in row.items()}
