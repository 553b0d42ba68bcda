"""How long each pipeline's recovery may still wait, from what the control database knows. No end is asked.

The law: what nobody declared and nobody saw is *unknown*. Times that ends told count only within the error that was declared
of the clocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from recovery_api.domain.headroom import declared
from recovery_api.domain.headroom.design import DesignCheck, Step, catch_up, design_check
from recovery_api.domain.headroom.live import Headroom, Pace, headroom, holds_until, pace_in_parts
from recovery_api.domain.headroom.observed import (
    Arrivals,
    AuditSeen,
    arrivals_of,
    certified_to,
    end_growth,
    end_latest,
    overhead_of,
    redrive_rate,
    slot_was_there,
)
from recovery_api.domain.headroom.seen import Clocks, EndSeen, clocks_of, slot_terms
from recovery_api.domain.headroom.terms import Part, Reach, Term, anchor, span
from recovery_api.models import Pipeline
from recovery_api.selectors.declarations import Declarations, declarations_of
from recovery_api.selectors.headroom_seen import Owed, Seen, audits_seen, owed_of, part_begins, seen_of

ENDS = ("source", "record", "delivery")


@dataclass(frozen=True, slots=True)
class PipelineHeadroom:
    """One pipeline's headroom, and what it rests on. `as_of`: when the record was last read; None: never.

    `oldest_owed_at`, `certified_to`: as told, None where not known. `is_hypothetical`: nothing is owed, and what is said holds if the relay stopped
    now. `growth_peak`, `growth_recent`: arrivals. `declared_check`, `measured_check`: the design, by the declared and
    by the seen rate of a re-drive. `ends`: source, record and delivery, as they were last looked at.
    `kept_since`: what the source may have deleted already was committed before, as declared; None: not declared. `holds_until`: until then the word stays as it is while nothing happens.
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
    ends: Mapping[str, EndSeen]
    clocks: Clocks
    holds_until: datetime
    kept_since: datetime | None


def pipeline_headroom(pipeline: Pipeline, now: datetime) -> PipelineHeadroom:
    return fleet_headroom([pipeline], now)[pipeline.pk]


def fleet_headroom(pipelines: Sequence[Pipeline], now: datetime) -> dict[int, PipelineHeadroom]:
    """By primary key. Six queries, whatever their number, but for recoveries that would be split; `pipelines` with their ends."""
    seen = seen_of(pipelines, now)
    return {one.pk: _headroom(one, seen[one.pk], now) for one in pipelines}


def _headroom(pipeline: Pipeline, seen: Seen, now: datetime) -> PipelineHeadroom:
    said, audits, owed = declarations_of(pipeline), seen.audits, seen.owed
    options = said.options
    newest = next((one for one in audits if one.tells), None)
    is_current = newest is not None and (now - newest.read_at) <= timedelta(seconds=options["stale_after_seconds"])
    arrivals = arrivals_of(audits) if is_current else _stopped(arrivals_of(audits))
    certified = certified_to(audits, newest.frontier) if newest else None
    ends = {name: look for name in ENDS if (look := end_latest(audits, name)) is not None}
    clocks = _clocks(said, ends)
    since = _since(newest, owed, certified, clocks)
    is_hypothetical = newest is not None and newest.owed == 0 and owed.count == 0
    whole = _pace(options, newest, arrivals, seen, since, now)
    archived = min(owed.gone_count, newest.archived) if newest else 0
    terms = _terms(said, audits, ends, clocks, since, (owed.gone_count - archived, archived), now)
    terms += declared.own_terms(archived, seen.approved_until)
    pace = pace_in_parts(terms, whole, now, said.most)
    if since is not None and owed.count > said.most and not archived:
        terms = _in_parts(pipeline, terms, whole, owed, said, clocks, since)
    shortest = declared.shortest_horizon(said.source, said.retention, said.record, said.into, *said.keeps)
    found = headroom(terms, pace, now)
    stale_at = [newest.read_at + timedelta(seconds=options["stale_after_seconds"])] if newest else []
    changes = [*stale_at, *seen.forgotten_at]
    by_word, by_sight = options["replay_per_second"], pace.rate_per_second
    return PipelineHeadroom(
        name=pipeline.name,
        now=now,
        as_of=newest.read_at if newest else None,
        found=found,
        pace=pace,
        arrivals=arrivals,
        anchor=since,
        oldest_owed_at=owed.oldest_at,
        certified_to=certified,
        is_hypothetical=is_hypothetical,
        declared_check=_design(options, *shortest, arrivals, by_word, whole.overhead),
        measured_check=_design(options, *shortest, arrivals, by_sight, whole.overhead),
        ends=ends,
        clocks=clocks,
        holds_until=holds_until(found, pace, changes, now),
        kept_since=now - purges if (purges := _seconds(said.source.get("purges_after_seconds"))) else None,
    )


def _terms(
    said: Declarations,
    audits: Sequence[AuditSeen],
    ends: Mapping[str, EndSeen],
    clocks: Clocks,
    since: datetime | None,
    gone: tuple[int, int],
    now: datetime,
) -> list[Term]:
    """`gone`: how many owed events are gone at the source, without those that the archive holds, and those that it holds."""
    table = end_growth(audits, "source", "table_bytes")
    terms = [
        *declared.source_terms(said.source, said.retention, since, clocks.source, *gone, now, table),
        *declared.record_terms(said.record, said.keeps[0], since, clocks.record, now),
        *declared.memory_terms(said.into, said.keeps[1], since, clocks.into, now, is_record=said.is_record),
    ]
    if name := said.source.get("slot"):
        growths = (end_growth(audits, "source", "wal_position"), said.source.get("disk_growth_bytes_per_hour"))
        grows = max((one for one in growths if one is not None), default=None)
        was_there, disk = slot_was_there(audits, name), said.source.get("disk_free_bytes")
        terms += slot_terms(name, ends.get("source"), was_there, grows, disk, now)
    return terms


def _in_parts(
    pipeline: Pipeline,
    terms: Sequence[Term],
    pace: Pace,
    owed: Owed,
    said: Declarations,
    clocks: Clocks,
    since: datetime,
) -> list[Term]:
    """The terms by age with an end for each part of the recovery, where what each part begins with is known.

    Only where nothing is owed but what the ledger has dated: what grows until the start, or is suspected, has no date yet.
    `pace`: with the overhead of one part.
    """
    if pace.growth_per_second != 0 or pace.owed != owed.count or not pace.rate_per_second or pace.overhead is None:
        return list(terms)
    count = math.ceil(owed.count / said.most)
    begins = [clocks.brought_over(one) for one in part_begins(pipeline, said.most, count)]
    if len(begins) != count:
        return list(terms)
    sizes = [min(said.most, owed.count - number * said.most) for number in range(count)]
    takes = [pace.overhead + span(size / pace.rate_per_second) for size in sizes]
    begun = [since, *(one for one in begins[1:] if one is not None)]
    return [
        replace(one, parts=tuple(Part(one.expires_at + (at - since), c) for at, c in zip(begun, takes, strict=True)))
        if one.forgets in declared.BY_AGE and one.reach is Reach.KNOWN and one.expires_at is not None
        else one
        for one in terms
    ]


def _clocks(said: Declarations, ends: Mapping[str, EndSeen]) -> Clocks:
    record = ends.get("record")
    return clocks_of(ends.get("source"), record, record if said.is_record else ends.get("delivery"), said.clock)


def _since(newest: AuditSeen | None, owed: Owed, certified: datetime | None, clocks: Clocks) -> datetime | None:
    """From when on evidence is needed. None: something that is owed is not dated, or nothing is certified."""
    if newest is None or certified is None or not owed.is_whole:
        return None
    is_dated = owed.remembered >= newest.lost and (owed.count == 0 or owed.oldest_at is not None)
    return anchor(clocks.brought_over(owed.oldest_at), certified) if is_dated else None


@dataclass(frozen=True, slots=True)
class Anchored:
    """From when on a recovery, or the next reading, needs evidence, as of what is recorded; None: not known."""

    since: datetime | None
    clocks: Clocks


def anchor_of(pipeline: Pipeline) -> Anchored:
    """`pipeline` with its ends."""
    audits = audits_seen([pipeline]).get(pipeline.pk, [])
    newest = next((one for one in audits if one.tells), None)
    certified = certified_to(audits, newest.frontier) if newest else None
    ends = {name: look for name in ENDS if (look := end_latest(audits, name)) is not None}
    clocks = _clocks(declarations_of(pipeline), ends)
    return Anchored(_since(newest, owed_of([pipeline.pk]).get(pipeline.pk, Owed()), certified, clocks), clocks)


def _pace(
    options: Mapping[str, Any],
    newest: AuditSeen | None,
    arrivals: Arrivals,
    seen: Seen,
    since: datetime | None,
    now: datetime,
) -> Pace:
    """B and a. Where nothing is owed they are what they would be if the relay stopped now; where the relay is seen to
    deliver, B does not grow; else everything that came in since the last audit is owed, too."""
    peak = arrivals.peak_per_second
    count = max(newest.owed if newest else 0, seen.owed.count)
    overhead = overhead_of(seen.runs)
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
        rate_per_second=redrive_rate(seen.runs),
        overhead=seen.drilled if overhead is None else overhead,
        margin=_seconds(options["margin_seconds"]),
        operator_delay=_seconds(options["operator_delay_seconds"]),
        is_overhead_drilled=overhead is None and seen.drilled is not None,
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


def _seconds(number: int | None) -> timedelta | None:
    return None if number is None else timedelta(seconds=number)
