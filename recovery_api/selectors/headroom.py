"""How long each pipeline's recovery may still wait, from what the control database knows. No end is asked.

The law: what nobody declared and nobody saw is *unknown*. Times that ends told count only within the error that was declared
of the clocks.
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
from recovery_api.domain.headroom import declared
from recovery_api.domain.headroom.design import DesignCheck, Step, catch_up, design_check
from recovery_api.domain.headroom.live import Headroom, Pace, headroom, pace_in_parts
from recovery_api.domain.headroom.observed import (
    Arrivals,
    AuditSeen,
    RunSeen,
    arrivals_of,
    certified_to,
    overhead_of,
    redrive_rate,
)
from recovery_api.domain.headroom.terms import Clock, anchor
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.ledger.words import ItemWord
from recovery_api.domain.outcomes import Status
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import Audit, LedgerItem, LedgerLane, Pipeline, Recovery, RecoveryState
from recovery_api.selectors.ends import source_spelling

AUDITS_LOOKED_AT = 50
"""Of each pipeline, the newest: rates are those between them."""
RUNS_LOOKED_AT = 20
RECENT = timedelta(days=90)
"""A re-drive that is longer ago tells nothing of today's rate."""


@dataclass(frozen=True, slots=True)
class PipelineHeadroom:
    """One pipeline's headroom, and what it rests on. `as_of`: when the record was last read; None: never.

    `oldest_owed_at`, `certified_to`: as told, None where not known. `is_hypothetical`: nothing is owed, and what is said holds if the relay stopped
    now. `growth_peak`, `growth_recent`: arrivals. `declared_check`, `measured_check`: the design, by the declared and
    by the seen rate of a re-drive.
    """

    name: str
    now: datetime
    as_of: datetime | None
    found: Headroom
    pace: Pace
    arrivals: Arrivals
    anchor: datetime | None
    oldest_owed_at: datetime | None
    certified_to: datetime | None
    is_hypothetical: bool
    declared_check: DesignCheck
    measured_check: DesignCheck


@dataclass(frozen=True, slots=True)
class _Owed:
    """The open lost events that are `remembered`; `count`: those that nobody acknowledged. `oldest_at` None: of one of these no
    commit time is known, or there is none.
    """

    remembered: int = 0
    count: int = 0
    oldest_at: datetime | None = None
    gone_count: int = 0
    is_whole: bool = True


def pipeline_headroom(pipeline: Pipeline, now: datetime) -> PipelineHeadroom:
    return fleet_headroom([pipeline], now)[pipeline.pk]


def fleet_headroom(pipelines: Sequence[Pipeline], now: datetime) -> dict[int, PipelineHeadroom]:
    """By primary key. Four queries, whatever their number; `pipelines` with their ends."""
    keys = [one.pk for one in pipelines]
    spellings = {one.pk: source_spelling(one.source) for one in pipelines}
    audits, runs, owed = _audits(keys, spellings), _runs(keys, now), _owed(keys)
    return {
        one.pk: _headroom(one, audits.get(one.pk, []), runs.get(one.pk, []), owed.get(one.pk, _Owed()), now)
        for one in pipelines
    }


def _headroom(
    pipeline: Pipeline, audits: Sequence[AuditSeen], runs: Sequence[RunSeen], owed: _Owed, now: datetime
) -> PipelineHeadroom:
    options = pipeline_options_parse(pipeline.options)
    newest = next((one for one in audits if one.tells), None)
    is_current = newest is not None and (now - newest.read_at) <= timedelta(seconds=options["stale_after_seconds"])
    arrivals = arrivals_of(audits) if is_current else _stopped(arrivals_of(audits))
    certified = certified_to(audits, newest.frontier) if newest else None
    is_dated = newest is not None and owed.remembered >= newest.lost and (owed.count == 0 or owed.oldest_at is not None)
    since = anchor(owed.oldest_at, certified) if is_dated and owed.is_whole and certified else None
    is_hypothetical = newest is not None and newest.owed == 0 and owed.count == 0
    pace = _pace(options, newest, arrivals, runs, owed, since, now)
    error = options["clock_error_seconds"]
    clock = None if error is None else Clock(error=timedelta(seconds=error))
    source = options_parse(kind_get(pipeline.source.kind), pipeline.source.options)
    record = options_parse(kind_get(pipeline.sink.kind), pipeline.sink.options)
    fired = pipeline.fired_into
    into = record if fired.pk == pipeline.sink_id else options_parse(kind_get(fired.kind), fired.options)
    retention = kind_get(pipeline.source.kind).retention(source)
    keeps = (_keeps(pipeline.sink.kind, record), _keeps(fired.kind, into))
    archived = min(owed.gone_count, newest.archived) if newest else 0
    terms = [
        *declared.source_terms(source, retention, since, clock, owed.gone_count - archived, archived, now),
        *declared.record_terms(record, keeps[0], since, clock, now),
        *declared.memory_terms(into, keeps[1], since, clock, now, is_record=fired.pk == pipeline.sink_id),
    ]
    most = min(options["batch_limit"], into.get("batch_limit") or options["batch_limit"])
    whole = pace
    pace = pace_in_parts(terms, whole, now, most)
    shortest = declared.shortest_horizon(source, retention, record, into, *keeps)
    by_word, by_sight = options["replay_per_second"], pace.rate_per_second
    return PipelineHeadroom(
        name=pipeline.name,
        now=now,
        as_of=newest.read_at if newest else None,
        found=headroom(terms, pace, now),
        pace=pace,
        arrivals=arrivals,
        anchor=since,
        oldest_owed_at=owed.oldest_at,
        certified_to=certified,
        is_hypothetical=is_hypothetical,
        declared_check=_design(options, *shortest, arrivals, by_word, whole.overhead),
        measured_check=_design(options, *shortest, arrivals, by_sight, whole.overhead),
    )


def _pace(
    options: Mapping[str, Any],
    newest: AuditSeen | None,
    arrivals: Arrivals,
    runs: Sequence[RunSeen],
    owed: _Owed,
    since: datetime | None,
    now: datetime,
) -> Pace:
    """B and a. Where nothing is owed they are what they would be if the relay stopped now; where the relay is seen to
    deliver, B does not grow; else everything that came in since the last audit is owed, too."""
    peak = arrivals.peak_per_second
    count = max(newest.owed if newest else 0, owed.count)
    if count and arrivals.is_delivering:
        growth: float | None = 0.0
    else:
        growth = peak
        counted_to = (newest.read_at if count else since) if newest else None
        if peak is not None and counted_to is not None:
            count += round(peak * max((now - counted_to).total_seconds(), 0.0))
    return Pace(
        owed=count,
        growth_per_second=growth if newest else None,
        rate_per_second=redrive_rate(runs),
        overhead=overhead_of(runs),
        margin=_seconds(options["margin_seconds"]),
        operator_delay=_seconds(options["operator_delay_seconds"]),
    )


def _design(
    options: Mapping[str, Any],
    horizon: timedelta | None,
    is_whole: bool,
    arrivals: Arrivals,
    rate: float | None,
    overhead: timedelta | None,
) -> DesignCheck:
    outage, delay = _seconds(options["max_outage_seconds"]), _seconds(options["operator_delay_seconds"])
    steps = [
        Step("max_outage", outage),
        Step("operator_delay", delay),
        Step("replay_catchup", catch_up(arrivals.peak_per_second, outage, delay, rate, overhead)),
        Step("margin", _seconds(options["margin_seconds"])),
    ]
    return design_check(horizon, steps, is_whole=is_whole)


def _stopped(arrivals: Arrivals) -> Arrivals:
    """As of a look that is too old to show that anything is delivered."""
    return Arrivals(arrivals.peak_per_second, arrivals.recent_per_second, False)


def _keeps(kind_name: str, options: Mapping[str, Any]) -> bool:
    return declared.keeps_for_good(kind_get(kind_name).declares(options))


def _seconds(number: int | None) -> timedelta | None:
    return None if number is None else timedelta(seconds=number)


def _audits(keys: Sequence[int], spellings: Mapping[int, Spelling]) -> dict[int, list[AuditSeen]]:
    """Those that are not void, newest reading first."""
    columns = ("pipeline_id", "started_at", "record_read_at", "is_scheduled", "status", "obligation_count")
    more = ("accepted_count", "lost_count", "frontier", "lanes")
    rank = Window(RowNumber(), partition_by=F("pipeline_id"), order_by=F("record_read_at").desc())
    ranked = Audit.objects.filter(pipeline_id__in=keys, void_since__isnull=True).exclude(frontier={})
    rows = ranked.annotate(rank=rank).filter(rank__lte=AUDITS_LOOKED_AT).order_by("-record_read_at")
    found: dict[int, list[AuditSeen]] = {}
    for row in rows.values(*columns, *more):
        found.setdefault(row["pipeline_id"], []).append(_seen(row, spellings[row["pipeline_id"]]))
    return found


def _seen(row: Mapping[str, Any], spelling: Spelling) -> AuditSeen:
    lanes: Mapping[str, Mapping[str, Any]] = row["lanes"]
    heads = _heads(lanes, spelling)
    above = sum(int(one.get("above_frontier_owed") or 0) for one in lanes.values())
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
        heads=heads,
        archived=sum(int(one.get("lost_archived") or 0) for one in lanes.values()),
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


def _owed(keys: Sequence[int]) -> dict[int, _Owed]:
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
    found = {key: _Owed(is_whole=False) for key in partial}
    for row in rows:
        oldest = None if row["undated"] else row["oldest"]
        key = row["pipeline_id"]
        found[key] = _Owed(row["remembered"], row["count"], oldest, row["gone"], key not in partial)
    return found
