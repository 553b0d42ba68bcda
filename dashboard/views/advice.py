"""What to do next, in a sentence, from a pipeline's status."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import Plan, PlanState, RecoveryState
from recovery_api.selectors.fleet import PipelineStatus
from recovery_api.selectors.pairs import restored_of


@dataclass(frozen=True, slots=True)
class Advice:
    """`link` and `label`: where to do it, empty where a button on the page does."""

    says: str
    link: str = ""
    label: str = ""


def advice_of(status: PipelineStatus, now: datetime, plan: Plan | None = None) -> Advice:
    """The next step for whoever is on call. One step, even where several would do. `plan`: one that waits for a person."""
    recovery, audit = status.recovery, status.audit
    if restored_of(status.pipeline) is not None:
        return Advice("Settle the sink: it is made safe and audited in full. Until then nothing is delivered.")
    if recovery is not None and recovery.state != RecoveryState.FINISHED:
        says = (
            "Settle the recovery: a worker asks the sink what became of it."
            if recovery.problem
            else "Watch the recovery."
        )
        return Advice(says, f"/recoveries/{recovery.id}/", "The recovery")
    if status.schedule.overdue_since is not None:
        return Advice(
            "See why no audit is made: whether a worker runs, and what the last one met.", "/work/", "The work"
        )
    if audit is None:
        return Advice("Audit now. Until then nothing is known, and *unknown* is not a success.")
    if status.is_expired:
        return Advice("Audit now: an end may have forgotten what the last audit rests on.")
    if status.is_stale:
        return Advice("Audit now: what the last audit found may have changed since.")
    findings = f"/audits/{audit.id}/findings/"
    match status.status:
        case "owed" if plan is not None:
            says = (
                "is approved. Apply it." if plan.state == PlanState.APPROVED else "waits for an approval. Look at it."
            )
            return Advice(f"A plan for {plan.batch_count or 0:,} events {says}", f"/plans/{plan.id}/", "The plan")
        case "owed":
            return Advice(
                "Plan a recovery. A plan shows exactly what would be sent, and sends nothing.", findings, "What is lost"
            )
        case "hazard":
            says = "Look at what was accepted twice, early or altered. A recovery adds none and takes none away."
            return Advice(says, findings, "The hazards")
        case "exactly_once_given":
            return Advice(
                "Nothing is owed, given what is named. Look at what that is, and whether it can be proven instead.",
                f"/audits/{audit.id}/",
                "What was given",
            )
        case "complete_by_identity":
            return Advice(
                "Every event's id is there. A record of ids shows no more: to judge contents, register a record that has them.",
                f"/audits/{audit.id}/",
                "What was not judged",
            )
        case "unknown":
            return Advice(
                "See what could not be read, put it right, then audit again.", f"/audits/{audit.id}/", "The audit"
            )
    seconds = pipeline_options_parse(status.pipeline.options)["stale_after_seconds"]
    left = audit.record_read_at + timedelta(seconds=seconds) - now
    minutes = max(int(left.total_seconds() // 60), 0)
    if status.schedule.next_due_at is not None:
        return Advice("Nothing to do: it is audited by itself.")
    return Advice(f"Nothing to do. In {minutes} min without another audit this becomes unknown.")
