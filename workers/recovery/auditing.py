"""The audit intent: read both ends, judge, record."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction

from recovery_api.domain.errors import AccessDenied, FencepostError
from recovery_api.domain.frontiers import frontier_from_row
from recovery_api.domain.outcomes import OUTCOMES
from recovery_api.models import AuditStatus, Intent, Pipeline
from recovery_api.selectors.blocks import known_get
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.schedules import aged_of
from recovery_api.services.audits import audit_record
from recovery_api.services.plans import plans_lapse
from recovery_api.services.schedules import schedule_forget, schedule_pin
from workers.evidence.ranges import EndSpec
from workers.evidence.read import evidence_read
from workers.recovery.archiving import archive_discard, archive_keep, archive_run
from workers.recovery.ends import (
    evidence_place,
    paths_read,
    record_capability_of,
    record_of,
    request_make,
    session_open,
    sink_compare,
)
from workers.recovery.following import epoch_of, learned_keep
from workers.recovery.looking import ends_look
from workers.recovery.pinning import pin_of
from workers.recovery.verdicts import audit_write


def audit_run(intent: Intent, report: Any) -> None:
    """Judge the intent's pipeline at the frontier asked for; the intent ends with the audit it recorded.

    Where the login may not read the record, that is what it records: unknown.
    Raises: FrontierRefused; Unreachable and other transient errors, after which the intent is offered again.
    """
    started_at = now_get()
    try:
        _audit(intent, report, started_at)
        if intent.arguments.get("is_scheduled"):
            schedule_forget(intent.pipeline, now_get())
    except AccessDenied as error:
        if not record_is_denied(intent.pipeline):
            raise
        audit_denied(intent, error, started_at)


def record_is_denied(pipeline: Pipeline) -> bool:
    """Whether the login may not read the sink's record now."""
    try:
        return not record_capability_of(pipeline).can_read_record
    except FencepostError as error:
        return isinstance(error, AccessDenied)


def audit_denied(intent: Intent, error: AccessDenied, started_at: datetime) -> None:
    """An audit that read nothing: what was found before still stands beside it, and nothing of it is certain any more.

    Waiting plans lapse: a sink whose record cannot be read is another one than they were made for.
    """
    now, pipeline = now_get(), intent.pipeline
    with transaction.atomic():
        plans_lapse(pipeline, because="The sink's record may not be read any more.", actor=intent.taken_by, now=now)
        audit_record(
            pipeline,
            status=AuditStatus.UNKNOWN,
            exit_code=OUTCOMES[AuditStatus.UNKNOWN].exit_code,
            now=now,
            started_at=started_at,
            is_full=False,
            says=f"The acceptance record could not be read: {error}",
            weaknesses=[str(error)],
            intent=intent,
        )


def _audit(intent: Intent, report: Any, started_at: datetime) -> None:
    aged = None
    if intent.arguments.get("is_scheduled"):
        aged = aged_of(intent.pipeline, now_get())
        if aged is None:
            _pin_only(intent, report)
            return
    report(step="asking the sink")
    pipeline = intent.pipeline
    said = record_of(pipeline).said()
    sink_compare(pipeline, said)
    asked, is_full = intent.arguments.get("frontier"), bool(intent.arguments.get("is_full"))
    is_rebased = is_full and not intent.arguments.get("is_scheduled")  # a schedule takes nothing as a new base
    epoch = epoch_of(pipeline, said.incarnation)
    request = request_make(
        pipeline,
        evidence_place("audits", str(intent.id)),
        frontier=frontier_from_row(asked) if asked else None,
        aged=aged,
        is_rebased=is_rebased,
    )
    request = replace(request, is_followed=True, known=None if is_full else known_get(pipeline, epoch))
    with session_open(intent) as session, evidence_read(session, request, report) as found:
        archived = archive_run(pipeline, found, report)
    unneeded = archived.parts if archived else []
    try:
        report(step="recording")
        paths, ends = paths_read(pipeline), ends_look(found)
        with transaction.atomic():
            audit = audit_write(
                pipeline,
                found,
                started_at=started_at,
                is_full=is_rebased,
                paths=paths,
                intent=intent,
                archived=archived,
                ends=ends,
            )
            learned_keep(pipeline, found, epoch)
            another = archive_keep(pipeline, audit, archived, now_get())
        unneeded = another
    finally:
        archive_discard(unneeded)


def _pin_only(intent: Intent, report: Any) -> None:
    """A first scheduled audit has no frontier to judge at: it pins one, and is due again once that is a window old."""
    report(step="pinning the frontier")
    pipeline = intent.pipeline
    with EndSpec(pipeline.source.kind, pipeline.source.options).source().hold_pin() as pinned:
        schedule_pin(intent, pin_of(pinned.lanes, now_get()), now_get())
