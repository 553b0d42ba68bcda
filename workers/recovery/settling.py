"""The settle intent: learn from the sink itself what is true, and bring the control database to it."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from recovery_api.domain.abilities import Ability
from recovery_api.domain.errors import FencepostError, Refused
from recovery_api.domain.kinds import abilities_of
from recovery_api.models import Intent, Pipeline, Recovery, Sink
from recovery_api.services.sinks import sink_clear, sink_remember
from workers.evidence.read import evidence_read
from workers.recovery.ends import evidence_directory, fenced_of, paths_read, record_of, request_make, session_open
from workers.recovery.giving_up import recovery_give_up
from workers.recovery.strategies import recovery_run
from workers.recovery.verdicts import audit_write


def settle_run(intent: Intent, report: Any) -> dict[str, Any] | None:
    """A recovery half done is settled by locking its claim, and finished; a sink found restored is made safe again."""
    if intent.recovery is not None:
        if not (intent.arguments.get("gives_up") and recovery_give_up(intent, report, _left_with(intent.recovery))):
            recovery_run(intent, report)
        return None
    if intent.sink is None:
        raise Refused("settling", "neither a recovery nor a sink is named", "Name one of the two.")
    return _sink_settle(intent, report, intent.sink)


def _left_with(recovery: Recovery) -> FencepostError:
    """What the recovery's last work ended with."""
    return FencepostError(str((recovery.problem or {}).get("text") or "Its work ended without an outcome."))


def _sink_settle(intent: Intent, report: Any, sink: Sink) -> dict[str, Any]:
    """Compare the sink with the memory of it; where it was restored, raise its counter above both and audit in full.

    What was certified before stays void: only the audit made here counts (THEORY section 4, step 9).
    """
    pipeline = Pipeline.objects.select_related("source", "sink").get(sink=sink, retired_at__isnull=True)
    record = record_of(pipeline)
    report(step="asking the sink")
    finding = sink_remember(sink, record.said(), actor=intent.taken_by, now=timezone.now())
    if not finding.is_restored:
        return {"sink": sink.name, "standing": finding.standing.value, "says": finding.says}
    if Ability.FENCED in abilities_of(sink.kind, sink.options):
        report(step="raising the counter", says=f"above {finding.counter_floor}")
        fenced_of(pipeline).counter_raise(finding.counter_floor + 1)
    started_at = timezone.now()
    request = request_make(pipeline, evidence_directory("audits", str(intent.id)), is_rebased=True)
    with session_open(intent) as session, evidence_read(session, request, report) as found:
        pass
    paths = paths_read(pipeline)
    audit = audit_write(pipeline, found, started_at=started_at, is_full=True, paths=paths, intent=intent)
    sink_clear(
        sink,
        record.said(),
        audit=audit,
        is_record_whole=found.sink_reading.is_complete,
        actor=intent.taken_by,
        now=timezone.now(),
    )
    return {
        "sink": sink.name,
        "standing": "trusted again",
        "audit": str(audit.id),
        "says": f"{finding.says} That was done, and the full audit says: {audit.says}",
    }
