"""The plan intent: what a recovery would send, on which evidence, under which conditions. Writes nothing at the sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.utils import timezone

from recovery_api.domain.archives import archived_says
from recovery_api.domain.attestations import LATER_EVENTS_CONFIRMED, attested_says
from recovery_api.domain.capabilities import Capability
from recovery_api.domain.conditions import Condition, PlanEvidence, conditions_judge, warnings_says
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Refused
from recovery_api.domain.evidence_classes import classes_counted, sent_count, unsent_says
from recovery_api.domain.frontiers import frontier_as_row, frontier_from_row
from recovery_api.domain.kinds import deciding
from recovery_api.domain.plans import (
    PlanVerdict,
    plan_conclude,
    plan_digest,
    scope_digest,
)
from recovery_api.domain.strategies import strategy_of
from recovery_api.domain.strategies.attested import ATTESTED, attestations_asked
from recovery_api.domain.verdicts import Total, verdict_total
from recovery_api.models import Intent
from recovery_api.selectors.clock import now_get
from recovery_api.services.plans import plan_record, plan_refuse, plan_start
from workers.evidence.batch import batch_of_part, batch_without, parts_split, unrepresentable_read
from workers.evidence.ranges import MeetSpec
from workers.evidence.read import Evidence, evidence_read
from workers.recovery.archiving import batch_archived, unrecoverable_says
from workers.recovery.ends import (
    capability_of,
    evidence_place,
    record_of,
    request_make,
    safe_as_rows,
    session_open,
    sink_compare,
)
from workers.recovery.listing import classes_count, listing_rows
from workers.recovery.looking import ends_look
from workers.recovery.verdicts import audit_write, evidence_digest, lane_verdicts, total_says, weaknesses
from workers.spark.jobs.redrive import batch_inspect, later_keys_count


def plan_run(intent: Intent, report: Any) -> None:
    """Compute the intent's plan and record it: ready, nothing owed, or refused by a condition that is named.

    Raises: FrontierRefused (the plan is refused with it); transient errors, after which the intent is offered again.
    """
    started_at = now_get()
    plan = plan_start(intent.plan)
    pipeline = plan.pipeline
    sink = record_of(pipeline)
    sink_compare(pipeline)
    capability = capability_of(pipeline)
    strategy = strategy_of(capability)
    request = request_make(
        pipeline,
        evidence_place("plans", str(plan.id)),
        frontier=frontier_from_row(plan.frontier) if plan.frontier else None,
    )
    with session_open(intent) as session, evidence_read(session, request, report) as found:
        report(step="reading what is owed", done=0, total=found.batch_count, unit="events")
        content = batch_inspect(session, found)
        found = replace(found, spec=replace(found.spec, stored=content["stored"]))
        later = later_keys_count(session, found.stored) if sink.needs_order else None
        found = batch_without(found, unrepresentable_read(found.stored))
        archived = batch_archived(found)
        limit = min(int(pipeline.options.get("batch_limit") or 200_000), capability.batch_limit or 2**63)
        parts = parts_split(found, limit)
    report(step="recording")
    classes = _classes(found)
    paths = sink.undisciplined_paths()
    evidence = replace(
        _plan_evidence(found, content["unrepresentable"]),
        undisciplined_paths=paths,
        later=later,
        lands_behind_later=strategy is ATTESTED and _lands_behind(found),
    )
    conditions = conditions_judge(evidence, capability)
    asked = list(attestations_asked(capability)) if strategy is ATTESTED else []
    if later is not None and later.count:
        asked.append(LATER_EVENTS_CONFIRMED)
    judged = lane_verdicts(found)
    total = verdict_total(judged)
    verdict, refusal = plan_conclude(classes, conditions)
    frontier = frontier_as_row(
        {lane: one.frontier for lane, one in found.lanes.items() if lane in found.source_reading.lanes}
    )
    fields: dict[str, Any] = {
        "samples": content["sample"],
        "pins": {
            "source_snapshot": found.source_reading.identity,
            "sink_snapshot": found.sink_reading.identity,
            "strategy": strategy.name,
            "promise": strategy.promise_says([*total.given, *attested_says(asked)]),
            "attestations": asked,
            "batch_bytes": str(content["bytes"]),
            "batch_digest": found.batch_digest,
            "safe": safe_as_rows(found.source_reading.lanes),
            "late": [one.late.says for one in found.lanes.values() if one.late],
            "source_xmin": found.source_reading.handle.get("xmin"),
            "history": {
                lane: {name: str(value) for name, value in one.fingerprint.items()} for lane, one in found.lanes.items()
            },
            "parts": [frontier_as_row(part) for part in parts],
            "archived": str(archived),
            "later_keys": {"count": str(later.count), "first": list(later.first)} if later else None,
            "weaknesses": weaknesses(found, judged, paths),
            "frontier_says": {lane: found.spell(one.frontier) for lane, one in found.lanes.items()},
        },
        "batch": {name: str(count) for name, count in classes.items()},
        "evidence_uri": found.stored.uri,
        "evidence_digest": evidence_digest(found),
        "stranded_count": sum(one.stranded for one in found.lanes.values()),
    }
    rows = [condition.as_row() for condition in conditions]
    with (
        transaction.atomic()
    ):  # what the plan's reading shows is knowledge of the pipeline, whatever becomes of the plan
        fields["audit"] = audit_write(
            pipeline,
            found,
            started_at=started_at,
            is_full=False,
            paths=paths,
            intent=intent,
            but=plan,
            ends=ends_look(found),
        )
        if verdict is PlanVerdict.REFUSED:
            assert refusal is not None
            says = f"{refusal.says} {refusal.remedy}"
            plan_refuse(plan, conditions=rows, says=says, now=timezone.now(), intent=intent, **fields)
            return
        plan_record(
            plan,
            digest=_digest(pipeline.name, pipeline.scope, found, capability),
            frontier=frontier,
            conditions=rows,
            batch_count=found.batch_count,
            says=_says(classes, found, total, conditions, len(parts), archived),
            now=timezone.now(),
            intent=intent,
            listing=listing_rows(found),
            **fields,
        )


def _classes(found: Evidence) -> dict[str, int]:
    """How many owed events are of each evidence class, as the evidence has them.

    Raises: Refused where what would be sent is not exactly what is provably missing: nothing may be approved then.
    """
    classes = classes_counted(classes_count(found))
    if sent_count(classes) != found.batch_count:
        problem = f"{found.batch_count} events would be sent and {sent_count(classes)} are provably missing"
        raise Refused("Planning", problem, "Its evidence was changed while it was computed: plan again.")
    return classes


def _plan_evidence(found: Evidence, unrepresentable: int) -> PlanEvidence:
    counts = [one.counts for one in found.lanes.values()]
    safe = [one.reading.safe for lane, one in found.lanes.items() if lane in found.source_reading.lanes]
    return PlanEvidence(
        premature_count=sum(one.premature for one in counts),
        duplicate_count=sum(one.duplicate_payloads for one in counts),
        altered_count=sum(one.lost_hidden for one in counts),
        coordinates_ascending=all(one.coordinates_ascending for one in counts),
        frontier_is_safe=all(one.coordinate is not None for one in safe) or not any(c.history_rows for c in counts),
        safe_frontier_says=" ".join(dict.fromkeys(one.says for one in safe)),
        safe_frontier_weakness=" ".join(dict.fromkeys(one.weakness for one in safe if one.weakness)) or None,
        lost_below_floor_count=max(
            sum(one.floor_uncovered - one.lost_archived - one.acknowledged_remembered for one in counts),
            sum(one.lost_remembered - one.lost_archived - one.acknowledged_remembered for one in counts),
            0,
        ),
        lost_below_floor_says=unrecoverable_says(found),
        unknown_below_floor_count=sum(one.justification_unknown for one in counts),
        unrepresentable_count=unrepresentable,
        stranded_count=sum(one.stranded for one in found.lanes.values()),
        record_is_complete=found.sink_reading.is_complete and found.source_reading.is_complete,
        batch_count=found.batch_count,
    )


def _lands_behind(found: Evidence) -> bool:
    """Whether the record holds something later than the first event of the batch, in its lane."""
    for piece in found.pieces:
        lane = found.sink_reading.lanes.get(piece.lane)
        first = batch_of_part(found.spec, piece.part).slice(0, 1).to_pylist()
        if not first or lane is None or lane.head is None:
            continue
        if Coordinate(first[0]["position"], first[0]["ordinal"]) < lane.head:
            return True
    return False


def _digest(pipeline: str, scope: list[str] | None, found: Evidence, capability: Capability) -> str:
    return plan_digest(
        pipeline=pipeline,
        frontier={lane: found.spell(one.frontier) for lane, one in found.lanes.items()},
        floor={
            lane: found.spell(one.reading.floor) if one.reading.floor else None for lane, one in found.lanes.items()
        },
        scope_digest=scope_digest(scope),
        ends=_ends_bound(found.spec),
        capability=capability,
        history={lane: dict(one.fingerprint) for lane, one in found.lanes.items()},
        batch_digest=found.batch_digest,
        batch_count=found.batch_count,
        acknowledged=(
            f"{lane}:{position}:{ordinal}"
            for lane, question in found.spec.questions.items()
            if question.acknowledged is not None
            for position, ordinal in zip(
                question.acknowledged["position"].to_pylist(), question.acknowledged["ordinal"].to_pylist(), strict=True
            )
        ),
    )


def _ends_bound(spec: MeetSpec) -> dict[str, Any]:
    """What each end was read as, and written as where the delivery is an end of its own."""
    ends = {"source": spec.source, "sink": spec.sink, **({"delivery": spec.delivery} if spec.delivery else {})}
    return {name: deciding(end.kind, end.options) for name, end in ends.items()}


def _says(
    classes: Mapping[str, int],
    found: Evidence,
    total: Total,
    conditions: list[Condition],
    parts: int,
    archived: int,
) -> str:
    at = ", ".join(found.spell(one.frontier) for lane, one in found.lanes.items() if lane in found.source_reading.lanes)
    sent, unsent = sent_count(classes), unsent_says(classes)
    if not sent:
        return " ".join(part for part in (f"Nothing to send at {at}.", unsent, *total_says(total)) if part)
    split = f" in {parts} parts, each with its own claim" if parts > 1 else ""
    events = f"{sent:,} {'event is' if sent == 1 else 'events are'}"
    says = f"{events} missing up to {at} and would be sent{split}."
    return " ".join(part for part in (says, archived_says(archived), unsent, warnings_says(conditions)) if part)
