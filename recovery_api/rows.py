"""The control plane's rows as JSON objects: one spelling for commands, REST and pages.

Coordinates are in the source's spelling; times are ISO 8601 in UTC. Commands print counts as numbers; REST gives every
whole number as text (`wide_numbers`), so that no reader of JSON rounds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from recovery_api.domain.attestations import KINDS as ATTESTATIONS
from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format
from recovery_api.domain.evidence_classes import classes_as_rows
from recovery_api.domain.frontiers import frontier_format
from recovery_api.domain.headroom.evidence import exit_code_read, expired_says, is_expired, lanes_read
from recovery_api.domain.outcomes import Status
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.samples import report_for
from recovery_api.models import (
    Audit,
    Claim,
    Drill,
    End,
    Event,
    Generation,
    Intent,
    Pipeline,
    Plan,
    PlanState,
    Recovery,
    Sink,
)
from recovery_api.retention_rows import evidence_as_row
from recovery_api.selectors.drills import passed_at, pipeline_passed_at
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.findings_named import FindingShown, Left
from recovery_api.selectors.fleet import PipelineStatus
from recovery_api.selectors.pairs import pipeline_allows
from recovery_api.selectors.plans import plan_attestations_asked
from recovery_api.selectors.recoveries import recovery_attested, recovery_steering
from recovery_api.selectors.timelines import event_data
from recovery_api.services.presets import preset_filled
from recovery_api.wide_numbers import wide_as_text

Row = dict[str, Any]


def end_as_row(end: End, reader: str = "") -> Row:
    """`reader` sees the sample rows of a test that they asked for (recovery_api.domain.samples)."""
    row: Row = {
        "name": end.name,
        "kind": end.kind,
        "options": end.options,
        "filled": sorted(preset_filled(end.options)),
        "is_usable": end.report["is_usable"] if end.report else None,
        "report": report_for(end.report, reader),
        "tested_at": time_as_text(end.tested_at),
        "created_at": time_as_text(end.created_at),
        "created_by": end.created_by,
    }
    if isinstance(end, Sink):
        row["capability"] = end.capability
        row["points"] = (end.report or {}).get("points") or []
        row["said"] = (
            None
            if end.said_at is None
            else {
                "identity": end.said_identity,
                "counter": _text(end.said_counter),
                "fence": _text(end.said_fence),
                "last_entry": _text(end.said_last_entry),
                "at": time_as_text(end.said_at),
            }
        )
        row["restored_at"], row["restored_says"] = time_as_text(end.restored_at), end.restored_says
        row["drill_every_hours"], row["drill_passed_at"] = end.drill_every_hours, time_as_text(passed_at(end))
    return row


def pipeline_as_row(pipeline: Pipeline) -> Row:
    """`strategy` None: an end was not tested, so that nothing is known of what a recovery may be."""
    allows = pipeline_allows(pipeline)
    return {
        "name": pipeline.name,
        "source": pipeline.source.name,
        "sink": pipeline.sink.name,
        "delivery": pipeline.delivery.name if pipeline.delivery else None,
        "strategy": allows.strategy.name if allows else None,
        "strategy_says": allows.says if allows else "",
        "scope": pipeline.scope,
        "options": pipeline_options_parse(pipeline.options),
        "requires_other_approver": pipeline.requires_other_approver,
        "created_at": time_as_text(pipeline.created_at),
        "created_by": pipeline.created_by,
    }


def status_as_row(status: PipelineStatus) -> Row:
    return {
        "name": status.pipeline.name,
        "status": status.status,
        "says": status.says,
        "exit_code": status.exit_code,
        "is_stale": status.is_stale,
        "is_expired": status.is_expired,
        "given": status.audit.givens if status.audit else [],
        "audit": str(status.audit.id) if status.audit else None,
        "audited_at": time_as_text(status.audit.finished_at) if status.audit else None,
        "frontier": _frontier(status.pipeline, status.audit.frontier) if status.audit else None,
        "recovery": str(status.recovery.id) if status.recovery else None,
        "drill_passed_at": time_as_text(pipeline_passed_at(status.pipeline)),
        "suspected": status.audit.suspected_count if status.audit else None,
        "schedule": status.schedule.as_row(),
    }


def drill_as_row(drill: Drill) -> Row:
    return {
        "drill": str(drill.id),
        "sink": drill.sink.name,
        "state": drill.state,
        "says": drill.says,
        "names": drill.names,
        "results": drill.results,
        "intent": str(drill.intent_id),
        "requested_by": drill.requested_by,
        "requested_at": time_as_text(drill.requested_at),
        "finished_at": time_as_text(drill.finished_at),
    }


def intent_as_row(intent: Intent, reader: str = "") -> Row:
    return {
        "intent": str(intent.id),
        "action": intent.action,
        "state": intent.state,
        "pipeline": intent.pipeline.name if intent.pipeline else None,
        "plan": str(intent.plan_id) if intent.plan_id else None,
        "recovery": str(intent.recovery_id) if intent.recovery_id else None,
        "attempts": intent.attempts,
        "taken_by": intent.taken_by,
        "progress": intent.progress,
        "result": report_for(intent.result, reader),
        "error": intent.error,
        "created_at": time_as_text(intent.created_at),
        "created_by": intent.created_by,
        "finished_at": time_as_text(intent.finished_at),
    }


def audit_as_row(audit: Audit, now: datetime, *, has_findings: bool = True) -> Row:
    """`status` as it reads now, `status_found` as it was recorded. `has_findings` False leaves the first page of findings
    out; their column need not be read then."""
    findings = {"findings": audit.findings} if has_findings else {}
    until = audit.evidence_until
    gone = until if is_expired(until, now) else None
    return {
        "audit": str(audit.id),
        "pipeline": audit.pipeline.name,
        "status": Status.UNKNOWN.value if gone else audit.status,
        "status_found": audit.status,
        "says": expired_says(gone, audit.says) if gone else audit.says,
        "exit_code": exit_code_read(audit.status, until, now),
        "evidence_until": time_as_text(until),
        "evidence_says": audit.evidence_says,
        "is_expired": gone is not None,
        "is_full": audit.is_full,
        "is_scheduled": audit.is_scheduled,
        "is_void": audit.void_since is not None,
        "void_says": audit.void_says,
        "frontier": _frontier(audit.pipeline, audit.frontier),
        "lost": audit.lost_count,
        "premature": None if audit.is_by_identity else audit.premature_count,
        "duplicates": audit.duplicate_count,
        "acknowledged": audit.acknowledged_count,
        "obligations": audit.obligation_count,
        "accepted": audit.accepted_count,
        "matching": audit.matching,
        "given": audit.givens,
        "weaknesses": audit.weaknesses,
        "lanes": lanes_read(audit.lanes, until, now),
        **findings,
        "source_snapshot": audit.source_snapshot,
        "sink_snapshot": audit.sink_snapshot,
        "evidence": {**evidence_as_row(audit), "rows": audit.evidence_rows},
        "record_read_at": time_as_text(audit.record_read_at),
        "started_at": time_as_text(audit.started_at),
        "finished_at": time_as_text(audit.finished_at),
    }


def plan_as_row(plan: Plan) -> Row:
    return {
        "plan": str(plan.id),
        "audit": str(plan.audit_id) if plan.audit_id else None,
        "pipeline": plan.pipeline.name,
        "state": plan.state,
        "says": plan.says,
        "frontier": _frontier(plan.pipeline, plan.frontier),
        "digest": plan.digest,
        "planned": plan.batch_count,
        "batch": plan.batch,
        "classes": classes_as_rows(plan.batch, plan.state == PlanState.REFUSED),
        "conditions": plan.conditions,
        "strategy": plan.pins.get("strategy"),
        "promise": plan.pins.get("promise"),
        "attestations": [
            {"name": name, "asks": ATTESTATIONS[name].asks, "write": ATTESTATIONS[name].form}
            for name in plan_attestations_asked(plan)
        ],
        "samples": [_spelled(plan.pipeline, sample) for sample in plan.samples],
        "stranded": plan.stranded_count,
        "evidence": evidence_as_row(plan),
        "author": plan.author,
        "approved_by": plan.approved_by or None,
        "approved_at": time_as_text(plan.approved_at),
        "created_at": time_as_text(plan.created_at),
        "computed_at": time_as_text(plan.computed_at),
    }


def recovery_as_row(recovery: Recovery, now: datetime) -> Row:
    """`wanted` is what a person asked, `steering` what is so. `outcome` is how it ended, and stays; what its certificate
    still shows of that is told beside it."""
    steering = recovery_steering(recovery)
    return {
        "recovery": str(recovery.id),
        "plan": str(recovery.plan_id),
        "pipeline": recovery.pipeline.name,
        "state": recovery.state,
        "outcome": recovery.outcome,
        "says": recovery.says,
        "frontier": _frontier(recovery.pipeline, recovery.frontier),
        "generation": _text(recovery.generation),
        "part": recovery.batch_index,
        "parts": recovery.batches,
        "armed": recovery.armed_count,
        "landed": recovery.landed_count,
        "absorbed": recovery.absorbed_count,
        "altered": recovery.altered_count,
        "start": recovery.start,
        "wanted": recovery.wanted,
        "steering": steering.word,
        "steering_says": steering.says,
        "problem": recovery.problem,
        "reason": recovery.reason,
        "attestations": recovery.attestations,
        "attested": recovery_attested(recovery),
        "requested_by": recovery.requested_by,
        "certificate": recovery.certificate,
        "certificate_digest": recovery.certificate_digest,
        "certificate_evidence_until": time_as_text(recovery.certificate_evidence_until),
        "certificate_is_expired": is_expired(recovery.certificate_evidence_until, now),
        "certificate_is_void": recovery.certificate_void_since is not None,
        "certificate_void_says": recovery.certificate_void_says,
        "created_at": time_as_text(recovery.created_at),
        "fired_at": time_as_text(recovery.fired_at),
        "finished_at": time_as_text(recovery.finished_at),
    }


def finding_as_row(spelling: Spelling, shown: FindingShown) -> Row:
    """One row of a listing. `number` is its place in it; digests are hex, None where that side holds nothing. `key`, `event_id`
    and `committed_at` of the committed event: None where no audit looked them up. `left`: who left it as it is, and why."""
    finding, named, left = shown.finding, shown.named, shown.left
    held = Coordinate(finding.position, finding.ordinal)
    return {
        "number": finding.number,
        "finding": finding.finding,
        "cause": finding.cause or None,
        "evidence_class": finding.evidence_class or None,
        "lane": finding.lane,
        "coordinate": coordinate_format(held, spelling),
        "position": str(finding.position),
        "ordinal": str(finding.ordinal),
        "entry": _text(finding.entry),
        "accepted_count": _text(finding.accepted_count),
        "is_acknowledged": finding.is_acknowledged,
        "history_digest": _hex(finding.history_digest),
        "accepted_digest": _hex(finding.accepted_digest),
        "key": named.key,
        "event_id": named.event_id,
        "committed_at": time_as_text(named.committed_at),
        "left": left_as_row(left) if left else None,
    }


def left_as_row(left: Left) -> Row:
    return {"by": left.by, "at": time_as_text(left.at), "reason": left.reason}


def event_as_row(event: Event) -> Row:
    return {
        "id": str(event.id),
        "at": time_as_text(event.at),
        "kind": event.kind,
        "actor": event.actor,
        "pipeline": event.pipeline.name if event.pipeline else None,
        "generation": _text(event.generation),
        "says": event.says,
        "data": event_data(event),
        "plan": str(event.plan_id) if event.plan_id else None,
        "recovery": str(event.recovery_id) if event.recovery_id else None,
        "audit": str(event.audit_id) if event.audit_id else None,
    }


def generation_as_row(generation: Generation) -> Row:
    return {
        "generation": str(generation.number),
        "pipeline": generation.pipeline.name,
        "purpose": generation.purpose,
        "asked_by": generation.asked_by,
        "fate": generation.fate,
        "recovery": str(generation.recovery_id) if generation.recovery_id else None,
        "taken_at": time_as_text(generation.taken_at),
        "settled_at": time_as_text(generation.settled_at),
    }


def claim_as_row(claim: Claim) -> Row:
    return {
        "generation": str(claim.generation),
        "pipeline": claim.pipeline.name,
        "recovery": str(claim.recovery_id),
        "part": claim.part,
        "state": claim.state,
        "claimed_by": claim.claimed_by,
        "frontier": _frontier(claim.pipeline, claim.frontier),
        "arm": _text(claim.arm),
        "armed": _text(claim.armed_count),
        "armed_digest": claim.armed_digest or None,
        "landed": _text(claim.landed_count),
        "absorbed": _text(claim.absorbed_count),
        "start": _frontier(claim.pipeline, claim.start),
        "superseded_by": _text(claim.superseded_by),
        "superseded_at": time_as_text(claim.superseded_at),
        "superseded_who": claim.superseded_who or None,
        "claimed_at": time_as_text(claim.claimed_at),
        "said_at": time_as_text(claim.said_at),
        "settled_at": time_as_text(claim.settled_at),
    }


def lanes_as_rows(audit: Audit, now: datetime) -> list[Row]:
    """Where each lane stood when last audited: what is judged, what is safe, how far the source goes, what is above. `status`
    as it reads now, `status_found` as it was recorded."""
    return [
        {
            "lane": lane,
            "status": row.get("status"),
            "status_found": row.get("status_found", row.get("status")),
            "frontier": row.get("frontier_says"),
            "safe_frontier": row.get("safe_frontier"),
            "head": row.get("head_says"),
            "cursor": row.get("cursor"),
            "above_frontier_owed": _number(row.get("above_frontier_owed")),
            "counts": wide_as_text(row.get("counts") or {}),
            "says": row.get("says") or [],
        }
        for lane, row in sorted(lanes_read(audit.lanes, audit.evidence_until, now).items())
    ]


def _frontier(pipeline: Pipeline, row: Mapping[str, Any] | None) -> str | None:
    return frontier_format(row, source_spelling(pipeline.source)) if row else None


def _spelled(pipeline: Pipeline, row: Row) -> Row:
    """A row with its coordinate as the source spells it, where it holds one."""
    if "coordinate" in row or "position" not in row:
        return row
    held = Coordinate(int(row["position"]), int(row.get("ordinal") or 0))
    return {**row, "coordinate": coordinate_format(held, source_spelling(pipeline.source))}


def time_as_text(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _number(value: Any) -> str | None:
    return None if value is None else str(value)


def _hex(digest: bytes | memoryview | None) -> str | None:
    return None if digest is None else bytes(digest).hex()


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
