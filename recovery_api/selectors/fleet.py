"""The state of every pipeline, as far as evidence goes. Unknown is never green, and stale is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import OuterRef, Subquery

from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import Audit, AuditStatus, Pipeline, Recovery, RecoveryOutcome, RecoveryState
from recovery_api.selectors.ends import pipeline_list

RUNNING = "running"
TROUBLED_OUTCOMES = (RecoveryOutcome.UNKNOWN, RecoveryOutcome.INCOMPLETE_ALTERED)


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """One pipeline's status word, why, and what it rests on.

    `status`: exactly_once | owed | hazard | acknowledged | unknown | running. `audit` None: never audited, or void.
    """

    pipeline: Pipeline
    status: str
    says: str
    audit: Audit | None
    recovery: Recovery | None
    is_stale: bool


def fleet_status(now: datetime, pipelines: Sequence[Pipeline] | None = None) -> list[PipelineStatus]:
    """The given pipelines, or every one by name. Three queries at most, each by index, whatever their number.

    The newest audit, and the newest recovery, of each is looked up by pipeline: not all of them are read.
    """
    if pipelines is None:
        pipelines = list(pipeline_list())
    ids = [pipeline.pk for pipeline in pipelines]
    of_one = {"pipeline": OuterRef("pk")}
    newest_audit = Audit.objects.filter(**of_one, void_since__isnull=True).order_by("-finished_at").values("pk")[:1]
    newest_recovery = Recovery.objects.filter(**of_one).order_by("-created_at").values("pk")[:1]
    asked = Pipeline.objects.filter(pk__in=ids)
    audits = {
        audit.pipeline_id: audit
        for audit in Audit.objects.filter(pk__in=asked.values(newest=Subquery(newest_audit))).defer("findings")
    }
    recoveries = {
        recovery.pipeline_id: recovery
        for recovery in Recovery.objects.filter(pk__in=asked.values(newest=Subquery(newest_recovery)))
    }
    return [status_of(one, audits.get(one.pk), recoveries.get(one.pk), now) for one in pipelines]


def pipeline_status(pipeline: Pipeline, now: datetime) -> PipelineStatus:
    audit = Audit.objects.filter(pipeline=pipeline, void_since__isnull=True).order_by("-finished_at").first()
    recovery = Recovery.objects.filter(pipeline=pipeline).order_by("-created_at").first()
    return status_of(pipeline, audit, recovery, now)


def status_of(pipeline: Pipeline, audit: Audit | None, recovery: Recovery | None, now: datetime) -> PipelineStatus:
    """The status from its evidence; the first that holds: restored, running, unsettled, never audited, stale."""
    word, says, is_stale = str(AuditStatus.UNKNOWN), "", False
    if pipeline.sink.restored_at is not None:
        says = pipeline.sink.restored_says
    elif recovery is not None and recovery.state != RecoveryState.FINISHED:
        step = RecoveryState(recovery.state).label.lower()
        word = str(AuditStatus.UNKNOWN) if recovery.problem else RUNNING
        says = f"Recovery {recovery.id} is {step}."
        if recovery.problem:
            says = f"Recovery {recovery.id} stopped at {step} and is to be settled: {recovery.problem['text']}"
    elif recovery is not None and recovery.outcome in TROUBLED_OUTCOMES and _is_newer(recovery, audit):
        says = f"Recovery {recovery.id} ended {RecoveryOutcome(recovery.outcome).label.lower()}: {recovery.says}"
    elif audit is None:
        says = f"Nothing is known: run manage.py audit {pipeline.name}."
    else:
        limit = pipeline_options_parse(pipeline.options)["stale_after_seconds"]
        is_stale = now - audit.finished_at > timedelta(seconds=limit)
        word = str(AuditStatus.UNKNOWN) if is_stale else audit.status
        says = f"Stale, so unknown; when last audited: {audit.says}" if is_stale else audit.says
    return PipelineStatus(pipeline, word, says, audit, recovery, is_stale)


def _is_newer(recovery: Recovery, audit: Audit | None) -> bool:
    return audit is None or recovery.finished_at is None or recovery.finished_at >= audit.finished_at
