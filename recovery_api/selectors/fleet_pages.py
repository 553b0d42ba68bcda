"""The fleet a page at a time: sorted by trouble, filtered and counted in the database.

The word of each pipeline is that of `fleet.status_of`, said in SQL so that a page of a thousand pipelines costs what a
page of fifty does; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Case,
    CharField,
    Count,
    DateTimeField,
    Exists,
    ExpressionWrapper,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce

from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import Audit, AuditStatus, Pipeline, Plan, PlanState, Recovery, RecoveryState
from recovery_api.selectors.ends import pipeline_list
from recovery_api.selectors.fleet import RUNNING, TROUBLED_OUTCOMES, PipelineStatus, status_of

TROUBLE = (
    str(AuditStatus.HAZARD),
    str(AuditStatus.OWED),
    str(AuditStatus.UNKNOWN),
    RUNNING,
    str(AuditStatus.ACKNOWLEDGED),
    str(AuditStatus.EXACTLY_ONCE),
)
"""Status words, worst first: what is wrong, what is missing, what nobody knows, what goes on, what is well."""

AUDIT_COLUMNS_LEFT_OUT = ("findings", "lanes", "weaknesses", "verified")
RECOVERY_COLUMNS_LEFT_OUT = ("certificate", "attestations", "progress")


@dataclass(frozen=True, slots=True)
class FleetCounts:
    """How many pipelines have each status word, and how many have a plan that waits for an approval."""

    total: int
    by_status: dict[str, int]
    awaiting_approval: int


def fleet_counts(now: datetime) -> FleetCounts:
    """Counted over every pipeline in use. Two queries."""
    rows = _with_word(now).order_by().values("word").annotate(number=Count("pk")).values_list("word", "number")
    by_status = dict.fromkeys(TROUBLE, 0) | dict(rows)
    ready = Plan.objects.filter(state=PlanState.READY, pipeline__retired_at__isnull=True)
    return FleetCounts(sum(by_status.values()), by_status, ready.count())


def fleet_select(
    now: datetime, *, status: str | None = None, text: str = "", is_awaiting_approval: bool = False
) -> QuerySet[Pipeline]:
    """Pipelines in use, worst first, then by name; `text` is looked for in their names and those of their ends."""
    found = _with_word(now)
    if status is not None:
        found = found.filter(word=status)
    if text:
        found = found.filter(Q(name__icontains=text) | Q(source__name__icontains=text) | Q(sink__name__icontains=text))
    if is_awaiting_approval:
        found = found.filter(Exists(Plan.objects.filter(pipeline=OuterRef("pk"), state=PlanState.READY)))
    rank = Case(*(When(word=word, then=Value(place)) for place, word in enumerate(TROUBLE)), default=Value(9))
    return found.annotate(rank=rank).order_by("rank", "name")


def statuses_of(pipelines: Sequence[Pipeline], now: datetime) -> list[PipelineStatus]:
    """The whole status of these few pipelines, in their order. Two queries, without the columns no list shows."""
    audits = _newest(Audit.objects.filter(void_since__isnull=True).defer(*AUDIT_COLUMNS_LEFT_OUT), "finished_at")
    recoveries = _newest(Recovery.objects.defer(*RECOVERY_COLUMNS_LEFT_OUT), "created_at")
    keys = [pipeline.pk for pipeline in pipelines]
    audit_of = {one.pipeline_id: one for one in audits.filter(pipeline_id__in=keys)}
    recovery_of = {one.pipeline_id: one for one in recoveries.filter(pipeline_id__in=keys)}
    return [status_of(one, audit_of.get(one.pk), recovery_of.get(one.pk), now) for one in pipelines]


def ready_plans_of(pipelines: Sequence[Pipeline]) -> dict[int, Plan]:
    """The plan of each pipeline that waits for an approval or for being applied. One query."""
    keys = [pipeline.pk for pipeline in pipelines]
    waiting = Plan.objects.filter(pipeline_id__in=keys, state__in=[PlanState.READY, PlanState.APPROVED])
    return {plan.pipeline_id: plan for plan in waiting.only("id", "pipeline_id", "state", "batch_count")}


def _newest(found: QuerySet[Any], moment: str) -> QuerySet[Any]:
    """The newest row of each pipeline, by way of the index that begins with the pipeline."""
    newest = found.model._default_manager.filter(pipeline=OuterRef("pipeline"))
    if found.model is Audit:
        newest = newest.filter(void_since__isnull=True)
    return found.filter(pk=Subquery(newest.order_by(f"-{moment}").values("pk")[:1]))


def _with_word(now: datetime) -> QuerySet[Pipeline]:
    """Every pipeline in use with its status `word`: the first that holds, in `fleet.status_of`'s order."""
    audit = Audit.objects.filter(pipeline=OuterRef("pk"), void_since__isnull=True).order_by("-finished_at")
    recovery = Recovery.objects.filter(pipeline=OuterRef("pk")).order_by("-created_at")
    default_seconds = pipeline_options_parse({})["stale_after_seconds"]
    stale_after = Coalesce(
        Cast(KeyTextTransform("stale_after_seconds", "options"), IntegerField()), Value(default_seconds)
    )
    unknown, running = Value(str(AuditStatus.UNKNOWN)), Value(RUNNING)
    is_unfinished = Q(recovery_state__isnull=False) & ~Q(recovery_state=RecoveryState.FINISHED)
    is_newer = Q(audited_at__isnull=True) | Q(recovered_at__isnull=True) | Q(recovered_at__gte=F("audited_at"))
    return (
        pipeline_list()
        .annotate(
            audit_status=Subquery(audit.values("status")[:1]),
            audited_at=Subquery(audit.values("finished_at")[:1]),
            recovery_state=Subquery(recovery.values("state")[:1]),
            recovery_outcome=Subquery(recovery.values("outcome")[:1]),
            recovery_problem=Subquery(recovery.values("problem")[:1]),
            recovered_at=Subquery(recovery.values("finished_at")[:1]),
            fresh_since=ExpressionWrapper(
                Value(now) - stale_after * Value(timedelta(seconds=1)), output_field=DateTimeField()
            ),
        )
        .annotate(
            word=Case(
                When(sink__restored_at__isnull=False, then=unknown),
                When(is_unfinished & Q(recovery_problem__isnull=False), then=unknown),
                When(is_unfinished, then=running),
                When(Q(recovery_outcome__in=TROUBLED_OUTCOMES) & is_newer, then=unknown),
                When(audited_at__isnull=True, then=unknown),
                When(audited_at__lt=F("fresh_since"), then=unknown),
                default=F("audit_status"),
                output_field=CharField(),
            )
        )
    )
