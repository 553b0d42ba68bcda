"""The state of every pipeline, as far as evidence goes. Unknown is never green, and stale is unknown.

Rows in, the domain's one function asked (domain.statuses), its decision with the rows it rests on out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, Subquery

from recovery_api.domain.headroom.evidence import EXPIRED
from recovery_api.domain.outcomes import OUTCOMES, Outcome, Status
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.statuses import Decision, RecordReading, RecoveryRun, status_decide
from recovery_api.models import Audit, Pipeline, Recovery, RecoveryState, Schedule
from recovery_api.selectors.audits import audits_standing, reading_of
from recovery_api.selectors.ends import pipeline_list
from recovery_api.selectors.schedules import ScheduleStanding, schedule_standing


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """One pipeline's status word, why, and what it rests on.

    `status`: a word of domain.outcomes.Status. `audit`: the reading that decided; None: never read, or void.
    `is_expired`: an end may have forgotten what that rests on.
    """

    pipeline: Pipeline
    status: str
    says: str
    audit: Audit | None
    recovery: Recovery | None
    is_stale: bool
    schedule: ScheduleStanding
    is_expired: bool = False

    @property
    def word(self) -> str:
        """How it is shown: a row of domain.looks."""
        return EXPIRED if self.is_expired and self.status == Status.UNKNOWN else self.status

    @property
    def exit_code(self) -> int:
        return OUTCOMES[self.status].exit_code


def fleet_status(now: datetime, pipelines: Sequence[Pipeline] | None = None) -> list[PipelineStatus]:
    """The given pipelines, or every one by name. Three queries at most, each by index, whatever their number.

    The audits that stand, and the newest recovery, of each are looked up by pipeline: not all of them are read.
    """
    if pipelines is None:
        pipelines = list(pipeline_list())
    ids = [pipeline.pk for pipeline in pipelines]
    newest_recovery = Recovery.objects.filter(pipeline=OuterRef("pk")).order_by("-created_at").values("pk")[:1]
    asked = Pipeline.objects.filter(pk__in=ids)
    recoveries = {
        recovery.pipeline_id: recovery
        for recovery in Recovery.objects.filter(pk__in=asked.values(newest=Subquery(newest_recovery)))
    }
    audits = audits_by_pipeline(ids, "findings")
    return [status_of(one, audits.get(one.pk, []), recoveries.get(one.pk), now) for one in pipelines]


def pipeline_status(pipeline: Pipeline, now: datetime) -> PipelineStatus:
    audits = list(audits_standing([pipeline.pk]))
    recovery = Recovery.objects.filter(pipeline=pipeline).order_by("-created_at").first()
    return status_of(pipeline, audits, recovery, now)


def audits_by_pipeline(pipeline_ids: Sequence[int], *without: str) -> dict[int, list[Audit]]:
    """The audits that stand, by pipeline, without the columns named. One query."""
    found: dict[int, list[Audit]] = {}
    for audit in audits_standing(pipeline_ids).defer(*without):
        found.setdefault(audit.pipeline_id, []).append(audit)
    return found


def status_of(pipeline: Pipeline, audits: Sequence[Audit], recovery: Recovery | None, now: datetime) -> PipelineStatus:
    """The status from what stands of its readings and its newest recovery."""
    readings = [(reading_of(audit), audit) for audit in audits]
    options = pipeline_options_parse(pipeline.options)
    row: Schedule | None = getattr(pipeline, "schedule", None)
    schedule = schedule_standing(str(pipeline.pk), row, options, [reading for reading, _ in readings], now)
    decided = decide(
        pipeline.name,
        [reading for reading, _ in readings],
        run_of(recovery) if recovery else None,
        options,
        pipeline.sink.restored_says if pipeline.sink.restored_at else None,
        now,
        schedule.overdue_since,
    )
    newest = max(audits, key=lambda audit: audit.record_read_at, default=None)
    audit = next((audit for reading, audit in readings if reading is decided.reading), newest)
    told = (decided.status, decided.says, audit, recovery, decided.is_stale, schedule, decided.is_expired)
    return PipelineStatus(pipeline, *told)


def decide(
    name: str,
    readings: Sequence[RecordReading],
    run: RecoveryRun | None,
    options: Mapping[str, Any],
    restored_says: str | None,
    now: datetime,
    overdue_since: datetime | None,
) -> Decision:
    """The domain's decision for one pipeline, by its options, parsed."""
    return status_decide(
        readings,
        run,
        now=now,
        stale_after=timedelta(seconds=options["stale_after_seconds"]),
        restored=restored_says,
        advice=f"Run manage.py audit {name}.",
        overdue_since=overdue_since,
    )


def run_of(recovery: Recovery) -> RecoveryRun:
    return RecoveryRun(
        name=str(recovery.id),
        step=RecoveryState(recovery.state).label.lower(),
        finished_at=recovery.finished_at,
        outcome=Outcome(recovery.outcome) if recovery.outcome else None,
        says=recovery.says,
        problem=recovery.problem["text"] if recovery.problem else "",
        fired_at=recovery.fired_at,
        landed_count=recovery.landed_count,
        is_void=recovery.certificate_void_since is not None,
    )
