"""The audit intent: read both ends, judge, record."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from recovery_api.domain.frontiers import frontier_from_row
from recovery_api.models import Intent
from workers.evidence.read import evidence_read
from workers.recovery.ends import evidence_directory, paths_read, request_make, session_open, sink_compare
from workers.recovery.verdicts import audit_write


def audit_run(intent: Intent, report: Any) -> None:
    """Judge the intent's pipeline at the frontier asked for; the intent ends with the audit it recorded.

    Raises: FrontierRefused; Unreachable and other transient errors, after which the intent is offered again.
    """
    started_at = timezone.now()
    report(step="asking the sink")
    sink_compare(intent.pipeline)
    asked = intent.arguments.get("frontier")
    request = request_make(
        intent.pipeline,
        evidence_directory("audits", str(intent.id)),
        frontier=frontier_from_row(asked) if asked else None,
    )
    with session_open(intent) as session, evidence_read(session, request, report) as found:
        pass
    report(step="recording")
    paths = paths_read(intent.pipeline)
    audit_write(intent.pipeline, found, started_at=started_at, is_full=True, paths=paths, intent=intent)
