"""Audits: asked for as an intent, recorded whole: verdict, positions, counts and evidence in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from recovery_api.domain.errors import BadInput
from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.outcomes import Status
from recovery_api.domain.schedules import Pin, PinnedLane
from recovery_api.domain.statuses import readings_standing
from recovery_api.models import Audit, AuditStatus, EventKind, Intent, IntentAction, IntentState, Pipeline, Recovery
from recovery_api.selectors.audits import audit_readings
from recovery_api.selectors.evidence import verdict_evidence
from recovery_api.selectors.headroom import Anchored, PipelineHeadroom, anchor_of, pipeline_headroom
from recovery_api.selectors.headroom_figures import events_newest
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.events import event_append
from recovery_api.services.evidence_places import evidence_keep
from recovery_api.services.findings import ListedFinding, audit_listing_record
from recovery_api.services.frontiers import frontier_check
from recovery_api.services.headroom import headroom_keep
from recovery_api.services.history import observation_record
from recovery_api.services.intents import intent_create, intent_finish
from recovery_api.services.ledger import Learnt, ledger_merge
from recovery_api.services.schedules import schedule_record

FINDINGS_PAGE = 200


def audit_request(
    pipeline: Pipeline,
    *,
    actor: str,
    now: datetime,
    frontier: str | None = None,
    is_full: bool = False,
    wake: bool = True,
) -> Intent:
    """An intent to judge `pipeline` at `frontier` (None: at its safe frontier).

    Where an equal audit is queued and nobody has taken it, this request joins it (`is_joined`): it has not read anything
    yet, so its answer is as fresh as a second one's.
    Raises: BadCoordinate, BadInput.
    """
    arguments = {"frontier": frontier_check(pipeline, frontier), "is_full": is_full}
    asked = f"Audit{' in full' if is_full else ''} at {frontier or 'the safe frontier'} asked for"
    with transaction.atomic():
        Pipeline.objects.select_for_update(no_key=True).get(id=pipeline.id)  # orders two equal requests
        queued = (
            Intent.objects.select_for_update(of=("self",), skip_locked=True)  # a locked one is being taken
            .filter(pipeline=pipeline, action=IntentAction.AUDIT, state=IntentState.QUEUED, arguments=arguments)
            .order_by("created_at")
            .first()
        )
        if queued is not None:
            says = f"{asked} again: it joined {queued.created_by}'s, which no worker has taken yet."
            data = {"intent": str(queued.id), "is_again": True}
            event_append(EventKind.AUDIT_REQUESTED, actor=actor, now=now, says=says, pipeline=pipeline, data=data)
            queued.is_joined = True
            return queued
        event_append(EventKind.AUDIT_REQUESTED, actor=actor, now=now, says=f"{asked}.", pipeline=pipeline)
        return intent_create(
            IntentAction.AUDIT, actor=actor, now=now, pipeline=pipeline, arguments=arguments, wake=wake
        )


def audit_record(
    pipeline: Pipeline,
    *,
    status: str,
    exit_code: int,
    now: datetime,
    started_at: datetime,
    is_full: bool,
    says: str,
    record_read_at: datetime | None = None,
    pin: Pin | None = None,
    waiting: Mapping[str, PinnedLane] | None = None,
    intent: Intent | None = None,
    recovery: Recovery | None = None,
    generation: int | None = None,
    findings: list[dict[str, Any]] | None = None,
    listing: Iterable[ListedFinding] = (),
    learnt: Learnt | None = None,
    evidence: Stored | None = None,
    **fields: Any,
) -> Audit:
    """The audit, recorded; an audit intent ends with it. `fields` are further columns of Audit.

    `findings` is the first page as rows, `listing` all of them in the order of lane and coordinate. `record_read_at`
    None: taken to be as old as `started_at`. `pin`, `waiting`: what the next scheduled audit goes by.

    `learnt`: what the ledger learns of it, and `evidence`: what was written of it, in the same transaction. With `recovery` it is that recovery's verification, and its intent goes on.
    Raises: Refused where the intent is no longer ours, or its audit is already recorded; LedgerMoved where another
    audit's knowledge came in since this one began to read: it is read again, and nothing is recorded.
    """
    if status not in AuditStatus.values:
        raise BadInput("audit.status", f"{status!r} is no status", f"One of: {', '.join(AuditStatus.values)}.")
    is_scheduled = bool(intent and intent.arguments.get("is_scheduled"))
    actor = intent.taken_by if intent else (recovery.requested_by if recovery else "worker")
    with constraints_mapped("recording the audit"), transaction.atomic():
        Pipeline.objects.select_for_update(no_key=True).get(pk=pipeline.pk)  # two readings that end at once: one order
        before = anchor_of(pipeline)
        audit = Audit.objects.create(
            pipeline=pipeline,
            intent=intent,
            recovery=recovery,
            status=status,
            exit_code=exit_code,
            is_full=is_full,
            is_scheduled=is_scheduled,
            says=says,
            record_read_at=record_read_at or started_at,
            started_at=started_at,
            finished_at=now,
            evidence_uri=evidence.uri if evidence is not None else fields.pop("evidence_uri", ""),
            findings=(findings or [])[:FINDINGS_PAGE],
            **fields,
        )
        if evidence is not None:
            evidence_keep(evidence, now)
        _standing_settle(pipeline)
        schedule_record(audit, pin, waiting)
        if learnt is not None:
            ledger_merge(pipeline, audit, learnt)
        observation_record(audit)
        audit_listing_record(audit, listing)
        found = _evidence_settle(audit, before, now)
        data: Mapping[str, Any] = {
            "status": status,
            "lost": str(audit.lost_count),
            "premature": str(audit.premature_count),
            "duplicates": str(audit.duplicate_count),
            "frontier": audit.frontier,
            "evidence_digest": audit.evidence_digest,
        }
        if not is_scheduled or _is_news(audit):
            event_append(
                EventKind.AUDIT_RECORDED,
                actor=actor,
                now=now,
                says=says,
                audit=audit,
                recovery=recovery,
                generation=generation,
                data=data,
            )
        headroom_keep([(pipeline, found)], events_newest([pipeline.pk]))
        if intent is not None and intent.action == IntentAction.AUDIT:
            intent_finish(intent, {"audit": str(audit.id), "status": status, "exit_code": exit_code}, now)
    return audit


def _evidence_settle(audit: Audit, before: Anchored, now: datetime) -> PipelineHeadroom:
    """Fix until when its evidence lasts, from what is declared now: who declares something else later changes no verdict."""
    found = pipeline_headroom(audit.pipeline, now)
    after = Anchored(found.anchor, found.clocks)
    lasts = verdict_evidence(audit.pipeline, Status(audit.status), before, after, now)
    audit.evidence_until, audit.evidence_says = lasts.until, lasts.says
    audit.save(update_fields=["evidence_until", "evidence_says"])
    return found


def _is_news(audit: Audit) -> bool:
    """Whether it found something else than the audit before it. The timeline cannot be shortened: what a schedule finds
    again and again is told once."""
    found = ("status", "lost_count", "premature_count", "duplicate_count")
    before = Audit.objects.filter(pipeline=audit.pipeline).exclude(pk=audit.pk).order_by("-finished_at")
    return before.values_list(*found).first() != tuple(getattr(audit, name) for name in found)


def _standing_settle(pipeline: Pipeline) -> None:
    """Of the pipeline's audits that stand, let go those that another supersedes, whichever of them ended last."""
    readings = audit_readings([pipeline.pk])
    standing = readings_standing([reading for _, reading in readings])
    gone = [key for key, reading in readings if reading not in standing]
    if gone:
        Audit.objects.filter(pk__in=gone).update(is_standing=False)
