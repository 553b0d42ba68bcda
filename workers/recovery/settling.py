"""The settle intent: learn from the sink itself what is true, and bring the control database to it."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from recovery_api.domain.abilities import Ability
from recovery_api.domain.errors import FencepostError, Refused
from recovery_api.domain.kinds import abilities_of
from recovery_api.models import Intent, Recovery, Sink
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.registry import pipeline_of
from recovery_api.services.sinks import sink_clear, sink_remember
from workers.connectors.registry import delivery_make, record_make
from workers.evidence.read import evidence_read
from workers.recovery.ends import evidence_place, paths_read, request_make, session_open
from workers.recovery.giving_up import recovery_give_up
from workers.recovery.looking import ends_look
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
    pipeline = pipeline_of(sink)
    if pipeline is None:
        raise Refused(f"settling sink {sink.name}", "it serves no pipeline any more", "Nothing is fired into it.")
    record = record_make(sink.kind, sink.options)
    report(step="asking the sink")
    finding = sink_remember(sink, record.said(), actor=intent.taken_by, now=timezone.now())
    if not finding.is_restored:
        return {"sink": sink.name, "standing": finding.standing.value, "says": finding.says}
    if Ability.FENCED in abilities_of(sink.kind, sink.options):
        report(step="raising the counter", says=f"above {finding.counter_floor}")
        delivery_make(sink.kind, sink.options, Ability.FENCED).counter_raise(finding.counter_floor + 1)
    started_at = now_get()
    request = request_make(pipeline, evidence_place("audits", str(intent.id)), is_rebased=True)
    with session_open(intent) as session, evidence_read(session, request, report) as found:
        pass
    paths = paths_read(pipeline)
    audit = audit_write(
        pipeline, found, started_at=started_at, is_full=True, paths=paths, intent=intent, ends=ends_look(found)
    )
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
