"""What headroom is worked out from, read from the control database: audits, recoveries, drills, and what is owed.

Few queries, whatever the number of pipelines; each by pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Min, Q, Window
from django.db.models.functions import RowNumber

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_parse
from recovery_api.domain.errors import BadCoordinate
from recovery_api.domain.frontiers import frontier_from_row
from recovery_api.domain.headroom.observed import AuditSeen, RunSeen
from recovery_api.domain.headroom.seen import end_seen_from_row
from recovery_api.domain.ledger.words import ItemWord
from recovery_api.domain.outcomes import Status
from recovery_api.models import (
    Audit,
    Drill,
    DrillState,
    LedgerItem,
    LedgerLane,
    Pipeline,
    Plan,
    PlanState,
    Recovery,
    RecoveryState,
)
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.lanes import lanes_asked
from recovery_api.selectors.plans import approval_until

AUDITS_LOOKED_AT = 50
"""Of each pipeline, the newest: rates are those between them."""
RUNS_LOOKED_AT = 20
RECENT = timedelta(days=90)
"""A re-drive that is longer ago tells nothing of today's rate."""
MOST_PARTS = 100
"""A recovery of more parts is reckoned as one, with an overhead for each: no part's own memory is looked up."""


@dataclass(frozen=True, slots=True)
class Owed:
    """The open lost events that are `remembered`; `count`: those that nobody acknowledged. `oldest_at` None: of one of these no
    commit time is known, or there is none.
    """

    remembered: int = 0
    count: int = 0
    oldest_at: datetime | None = None
    gone_count: int = 0
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one pipeline. `audits` and `runs` newest first; `drilled`: the longest passed run of drills of the sink that is
    fired into, None: none in 90 days; `drilled_at`: when it ended. `approved_until`: of the plan that waits for its recovery."""

    audits: Sequence[AuditSeen]
    runs: Sequence[RunSeen]
    owed: Owed
    drilled: timedelta | None = None
    drilled_at: datetime | None = None
    approved_until: datetime | None = None

    @property
    def forgotten_at(self) -> list[datetime]:
        """When a recovery, drill or approval that counts now counts no more."""
        told = [one.finished_at for one in self.runs]
        counted = [at + RECENT for at in (*told, self.drilled_at) if at is not None]
        return [*counted, *([self.approved_until] if self.approved_until else [])]


def seen_of(pipelines: Sequence[Pipeline], now: datetime) -> dict[int, Seen]:
    """By primary key. Six queries, whatever their number; `pipelines` with their ends."""
    keys = [one.pk for one in pipelines]
    audits, approved = audits_seen(pipelines), _approved(keys, now)
    runs, owed, drilled = _runs(keys, now), owed_of(keys), _drilled({one.fired_into.pk for one in pipelines}, now)
    return {
        one.pk: Seen(
            audits.get(one.pk, []),
            runs.get(one.pk, []),
            owed.get(one.pk, Owed()),
            drilled.get(one.fired_into.pk, (None, None))[0],
            drilled.get(one.fired_into.pk, (None, None))[1],
            approved.get(one.pk),
        )
        for one in pipelines
    }


def audits_seen(pipelines: Sequence[Pipeline]) -> dict[int, list[AuditSeen]]:
    """Those that are not void, newest reading first."""
    spellings = {one.pk: source_spelling(one.source) for one in pipelines}
    columns = ("pipeline_id", "started_at", "record_read_at", "is_scheduled", "status", "obligation_count")
    more = ("accepted_count", "lost_count", "frontier", "asked", "ends_seen")
    rank = Window(RowNumber(), partition_by=F("pipeline_id"), order_by=F("record_read_at").desc())
    ranked = Audit.objects.filter(pipeline_id__in=list(spellings), void_since__isnull=True).exclude(frontier={})
    newest = ranked.annotate(rank=rank).filter(rank__lte=AUDITS_LOOKED_AT).values("pk")
    asked = lanes_asked("above_frontier_owed", "lost_archived", "head_says")
    rows = Audit.objects.filter(pk__in=newest).annotate(asked=asked).order_by("-record_read_at")
    found: dict[int, list[AuditSeen]] = {}
    for row in rows.values(*columns, *more):
        found.setdefault(row["pipeline_id"], []).append(_audit(row, spellings[row["pipeline_id"]]))
    return found


def owed_of(keys: Sequence[int]) -> dict[int, Owed]:
    """By primary key; a pipeline of which nothing is remembered is left out."""
    still = Q(is_acknowledged=False)
    rows = (
        LedgerItem.objects.filter(pipeline_id__in=keys, settled_at__isnull=True, word=ItemWord.LOST)
        .order_by()
        .values("pipeline_id")
        .annotate(
            remembered=Count("pk"),
            count=Count("pk", filter=still),
            oldest=Min("committed_at", filter=still),
            undated=Count("pk", filter=still & Q(committed_at__isnull=True)),
            gone=Count("pk", filter=still & Q(is_content_gone=True)),
        )
    )
    partial = set(
        LedgerLane.objects.filter(pipeline_id__in=keys, void_since__isnull=True, is_whole=False).values_list(
            "pipeline_id", flat=True
        )
    )
    found = {key: Owed(is_whole=False) for key in partial}
    for row in rows:
        oldest = None if row["undated"] else row["oldest"]
        key = row["pipeline_id"]
        found[key] = Owed(row["remembered"], row["count"], oldest, row["gone"], key not in partial)
    return found


def part_begins(pipeline: Pipeline, most: int, parts: int) -> list[datetime]:
    """The earliest commit of each part of a recovery of what is owed, `most` events each, in the order they are sent.

    Empty where there are too many parts to look up. For pipelines of which every owed event is dated.
    """
    if parts > MOST_PARTS:
        return []
    still = LedgerItem.objects.filter(
        pipeline=pipeline, settled_at__isnull=True, word=ItemWord.LOST, is_acknowledged=False
    )
    number = Window(RowNumber(), order_by=[F("position").asc(), F("ordinal").asc()])
    numbered = still.annotate(number=number)
    begins = [
        numbered.filter(number__gt=first, number__lte=first + most).aggregate(least=Min("committed_at"))["least"]
        for first in range(0, parts * most, most)
    ]
    return [one for one in begins if one is not None]


def _audit(row: Mapping[str, Any], spelling: Spelling) -> AuditSeen:
    lanes: Mapping[str, Mapping[str, Any]] = row["asked"]
    above = sum(int(one.get("above_frontier_owed") or 0) for one in lanes.values())
    looked = {name: end_seen_from_row(one) for name, one in row["ends_seen"].items()}
    return AuditSeen(
        started_at=row["started_at"],
        read_at=row["record_read_at"],
        is_scheduled=row["is_scheduled"],
        tells=row["status"] != Status.UNKNOWN,
        obligations=row["obligation_count"],
        accepted=row["accepted_count"],
        lost=row["lost_count"],
        owed=above + (0 if row["status"] == Status.ACKNOWLEDGED else row["lost_count"]),
        frontier=frontier_from_row(row["frontier"]),
        heads=_heads(lanes, spelling),
        archived=sum(int(one.get("lost_archived") or 0) for one in lanes.values()),
        ends={name: one for name, one in looked.items() if one is not None},
    )


def _heads(lanes: Mapping[str, Mapping[str, Any]], spelling: Spelling) -> dict[str, Coordinate | None]:
    """Empty where one cannot be told: in another spelling than the source's of today, or not kept."""
    try:
        return {
            lane: coordinate_parse(one["head_says"], spelling) if one["head_says"] else None
            for lane, one in lanes.items()
        }
    except (KeyError, BadCoordinate):
        return {}


def _runs(keys: Sequence[int], now: datetime) -> dict[int, list[RunSeen]]:
    """Finished recoveries of one part that fired, newest first."""
    rank = Window(RowNumber(), partition_by=F("pipeline_id"), order_by=F("finished_at").desc())
    finished = Recovery.objects.filter(
        pipeline_id__in=keys,
        state=RecoveryState.FINISHED,
        finished_at__gte=now - RECENT,
        batches=1,
        claimed_at__isnull=False,
        fired_at__isnull=False,
        landed_count__gt=0,
    )
    columns = ("pipeline_id", "created_at", "claimed_at", "fired_at", "finished_at", "landed_count")
    found: dict[int, list[RunSeen]] = {}
    for key, *row in finished.annotate(rank=rank).filter(rank__lte=RUNS_LOOKED_AT).values_list(*columns):
        found.setdefault(key, []).append(RunSeen(*row))
    return found


def _drilled(sinks: set[int], now: datetime) -> dict[int, tuple[timedelta, datetime]]:
    """By sink: how long its longest passed run of every drill took, from the request to its end, and when that was."""
    passed = Drill.objects.filter(sink_id__in=sinks, state=DrillState.PASSED, finished_at__gte=now - RECENT, names=[])
    found: dict[int, tuple[timedelta, datetime]] = {}
    for key, requested_at, finished_at in passed.values_list("sink_id", "requested_at", "finished_at"):
        took = (finished_at - requested_at, finished_at)
        found[key] = max(found.get(key, took), took)
    return found


def _approved(keys: Sequence[int], now: datetime) -> dict[int, datetime]:
    """By pipeline: until when the approval holds that waits for its recovery."""
    plans = Plan.objects.filter(pipeline_id__in=keys, state=PlanState.APPROVED).select_related("pipeline")
    until = {plan.pipeline_id: approval_until(plan) for plan in plans.order_by("approved_at")}
    return {key: at for key, at in until.items() if at is not None and at >= now}
