"""The fleet a page at a time: sorted by trouble, filtered and counted over a few columns of every pipeline.

The word of each pipeline is that of `fleet.status_of`; a test holds the two together. Whole rows, with their evidence,
are read for one page only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import Audit, AuditStatus, Plan, PlanState, Recovery, RecoveryState
from recovery_api.selectors.ends import pipeline_list
from recovery_api.selectors.fleet import RUNNING, TROUBLED_OUTCOMES, PipelineStatus, status_of

UNKNOWN = str(AuditStatus.UNKNOWN)
TROUBLE = (
    str(AuditStatus.HAZARD),
    str(AuditStatus.OWED),
    UNKNOWN,
    RUNNING,
    str(AuditStatus.ACKNOWLEDGED),
    str(AuditStatus.EXACTLY_ONCE),
)
"""Status words, worst first: what is wrong, what is missing, what nobody knows, what goes on, what is well."""

AUDIT_COLUMNS_LEFT_OUT = ("findings", "groups", "lanes", "weaknesses", "verified")
RECOVERY_COLUMNS_LEFT_OUT = ("certificate", "attestations", "progress")


@dataclass(frozen=True, slots=True)
class FleetEntry:
    """One pipeline in use. `names`: its own and its ends', folded, to be searched."""

    pk: int
    name: str
    word: str
    names: str
    is_awaiting_approval: bool


def fleet_entries(now: datetime) -> list[FleetEntry]:
    """Every pipeline in use, worst first, then by name. Two queries, a few columns a pipeline."""
    awaiting = set(Plan.objects.filter(state=PlanState.READY).values_list("pipeline_id", flat=True))
    audit = Audit.objects.filter(pipeline=OuterRef("pk"), void_since__isnull=True).order_by("-finished_at")
    recovery = Recovery.objects.filter(pipeline=OuterRef("pk")).order_by("-created_at")
    rows = (
        pipeline_list()
        .order_by("name")
        .annotate(
            audit_status=Subquery(audit.values("status")[:1]),
            audited_at=Subquery(audit.values("finished_at")[:1]),
            recovery_state=Subquery(recovery.values("state")[:1]),
            recovery_outcome=Subquery(recovery.values("outcome")[:1]),
            recovery_problem=Subquery(recovery.values("problem")[:1]),
            recovered_at=Subquery(recovery.values("finished_at")[:1]),
        )
        .values(
            "pk",
            "name",
            "options",
            "source__name",
            "sink__name",
            "sink__restored_at",
            "audit_status",
            "audited_at",
            "recovery_state",
            "recovery_outcome",
            "recovery_problem",
            "recovered_at",
        )
    )
    default = pipeline_options_parse({})["stale_after_seconds"]
    entries = [
        FleetEntry(
            row["pk"],
            row["name"],
            _word(row, default, now),
            "\n".join((row["name"], row["source__name"], row["sink__name"])).casefold(),
            row["pk"] in awaiting,
        )
        for row in rows
    ]
    return sorted(entries, key=lambda entry: TROUBLE.index(entry.word))


def fleet_select(
    entries: Sequence[FleetEntry], *, status: str | None = None, text: str = "", is_awaiting_approval: bool = False
) -> list[FleetEntry]:
    """Those with this status word, with `text` in their name or an end's, and with a plan to approve where asked."""
    wanted = text.casefold()
    return [
        entry
        for entry in entries
        if (status is None or entry.word == status)
        and wanted in entry.names
        and (entry.is_awaiting_approval or not is_awaiting_approval)
    ]


def statuses_of(entries: Sequence[FleetEntry], now: datetime) -> list[PipelineStatus]:
    """The whole status of these few, in their order. Three queries, without the columns no list shows."""
    keys = [entry.pk for entry in entries]
    pipelines = {one.pk: one for one in pipeline_list().filter(pk__in=keys)}
    audits = _newest(Audit.objects.filter(void_since__isnull=True).defer(*AUDIT_COLUMNS_LEFT_OUT), "finished_at")
    recoveries = _newest(Recovery.objects.defer(*RECOVERY_COLUMNS_LEFT_OUT), "created_at")
    audit_of = {one.pipeline_id: one for one in audits.filter(pipeline_id__in=keys)}
    recovery_of = {one.pipeline_id: one for one in recoveries.filter(pipeline_id__in=keys)}
    return [status_of(pipelines[key], audit_of.get(key), recovery_of.get(key), now) for key in keys if key in pipelines]


def ready_plans_of(entries: Sequence[FleetEntry]) -> dict[int, Plan]:
    """The plan of each pipeline that waits for an approval or for being applied. One query."""
    keys = [entry.pk for entry in entries]
    waiting = Plan.objects.filter(pipeline_id__in=keys, state__in=[PlanState.READY, PlanState.APPROVED])
    return {plan.pipeline_id: plan for plan in waiting.only("id", "pipeline_id", "state", "batch_count")}


def _newest(found: QuerySet[Any], moment: str) -> QuerySet[Any]:
    """The newest row of each pipeline asked for: the rows that follow stay few, as the pipelines are."""
    return found.order_by("pipeline_id", f"-{moment}").distinct("pipeline_id")


def _word(row: dict[str, Any], stale_after_default: int, now: datetime) -> str:
    """The first that holds, in the order of `fleet.status_of`."""
    is_unfinished = row["recovery_state"] not in (None, RecoveryState.FINISHED)
    if row["sink__restored_at"] is not None:
        return UNKNOWN
    if is_unfinished:
        return UNKNOWN if row["recovery_problem"] else RUNNING
    audited_at, recovered_at = row["audited_at"], row["recovered_at"]
    is_newer = audited_at is None or recovered_at is None or recovered_at >= audited_at
    if row["recovery_outcome"] in TROUBLED_OUTCOMES and is_newer:
        return UNKNOWN
    seconds = row["options"].get("stale_after_seconds", stale_after_default)
    if audited_at is None or now - audited_at > timedelta(seconds=seconds):
        return UNKNOWN
    return str(row["audit_status"])
