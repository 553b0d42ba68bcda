"""What audits observed of a pipeline over time: how long each observation counts, how many become one, what is drawn.

Two laws. Thinning keeps the worst: an hour or a day that became one row has the worst status and the worst of each figure
of all its audits. And nothing is interpolated: an observation counts until the next one, or until the pipeline's status
would have turned to unknown for want of one; whatever lies between is *not observed*. All times are the control
database's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.outcomes import WORST_FIRST, Status


class Grain(StrEnum):
    """How much one row stands for."""

    AUDIT = "audit"
    """One audit. Becomes part of its hour once it is older than AUDITS_KEPT."""
    HOUR = "hour"
    """All audits of one hour (UTC). Becomes part of its day once it is older than HOURS_KEPT."""
    DAY = "day"
    """All audits of one day (UTC). Goes once it is older than the history is kept."""


AUDITS_KEPT = timedelta(hours=48)
HOURS_KEPT = timedelta(days=31)
"""A month is drawn from hours, a day or two from audits."""

SPANS: dict[str, tuple[timedelta, timedelta]] = {
    # name -> how far back, and how much one point of the chart and one row of its table stand for
    "24h": (timedelta(hours=24), timedelta(minutes=15)),
    "7d": (timedelta(days=7), timedelta(hours=2)),
    "30d": (timedelta(days=30), timedelta(hours=8)),
    "1y": (timedelta(days=364), timedelta(days=4)),
}
FIRST_SPAN = "24h"


@dataclass(frozen=True, slots=True)
class Observed:
    """One row: from `at` it counts until `until`, exclusive. Of several audits each figure is the worst of them, not of one
    moment, and `observed_seconds` of the time between are covered.

    `status`: the worst that stood of the readings then; a recovery that was running is told by the timeline. `owed`: lost
    and not acknowledged; `lag_events`: these and what was newer and not accepted. `oldest_owed_seconds`: since the commit
    of the oldest; `lag_seconds`: for how long the oldest not accepted was known to wait, at least. `accepted_per_second`:
    since the audit before; the least. `headroom_seconds`: with `headroom` unknown, at most so much. None: not known.
    """

    at: datetime
    until: datetime
    status: Status
    owed: int | None = None
    oldest_owed_seconds: int | None = None
    lag_events: int | None = None
    lag_seconds: int | None = None
    accepted_per_second: float | None = None
    hazards: int | None = None
    headroom: Standing | None = None
    headroom_seconds: int | None = None
    grain: Grain = Grain.AUDIT
    audits: int = 1
    observed_seconds: float | None = None

    @property
    def covered_seconds(self) -> float:
        """How much of it is covered; an audit's own row covers all of its time."""
        whole = (self.until - self.at).total_seconds()
        return whole if self.observed_seconds is None else min(self.observed_seconds, whole)

    @property
    def uncovered_seconds(self) -> float:
        return (self.until - self.at).total_seconds() - self.covered_seconds


@dataclass(frozen=True, slots=True)
class Stretch:
    """Of the strip: one status from `since` until `until`. `status` None: not observed.

    `unobserved_seconds`: of that time nobody looked; more than 0 only where audits became one row.
    """

    since: datetime
    until: datetime
    status: Status | None
    unobserved_seconds: float = 0.0
    audits: int = 0


@dataclass(frozen=True, slots=True)
class Bucket:
    """Of the chart and its table: the worst of what was observed from `since` until `until`. None: nothing was."""

    since: datetime
    until: datetime
    worst: Observed | None

    @property
    def unobserved_seconds(self) -> float:
        whole = (self.until - self.since).total_seconds()
        return max(whole - (self.worst.covered_seconds if self.worst else 0.0), 0.0)


def counts_until(
    at: datetime, stale_after: timedelta, overdue_at: datetime | None, evidence_until: datetime | None = None
) -> datetime:
    """Until when an observation counts if no other follows: as long as the pipeline's status would rest on it.

    `overdue_at`: from when on the status is unknown because its schedule's next audit was not made; `evidence_until`: because
    the verdict's evidence may be gone. None: no such moment is known.
    """
    ends = [one for one in (at + stale_after, overdue_at, evidence_until) if one is not None]
    return max(at, min(ends))


def interval_begin(at: datetime, grain: Grain) -> datetime:
    """Where the hour or the day (UTC) of `at` begins.

    >>> interval_begin(datetime(2026, 3, 1, 9, 59, tzinfo=UTC), Grain.HOUR).isoformat()
    '2026-03-01T09:00:00+00:00'
    """
    begin = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return begin.replace(hour=0) if grain is Grain.DAY else begin


def thin_before(now: datetime, grain: Grain) -> datetime:
    """Rows that began before this become one of `grain`: of whole hours or days alone, so that none is made twice."""
    return interval_begin(now - (AUDITS_KEPT if grain is Grain.HOUR else HOURS_KEPT), grain)


def worst_of(rows: Sequence[Observed], grain: Grain) -> Observed:
    """One row for all of `rows` (at least one), each figure the worst that is known of any."""
    return Observed(
        at=min(one.at for one in rows),
        until=max(one.until for one in rows),
        status=min((one.status for one in rows), key=WORST_FIRST.index),
        owed=_most(one.owed for one in rows),
        oldest_owed_seconds=_most(one.oldest_owed_seconds for one in rows),
        lag_events=_most(one.lag_events for one in rows),
        lag_seconds=_most(one.lag_seconds for one in rows),
        accepted_per_second=min((r for one in rows if (r := one.accepted_per_second) is not None), default=None),
        hazards=_most(one.hazards for one in rows),
        headroom=min((w for one in rows if (w := one.headroom) is not None), key=list(Standing).index, default=None),
        headroom_seconds=min((s for one in rows if (s := one.headroom_seconds) is not None), default=None),
        grain=grain,
        audits=sum(one.audits for one in rows),
        observed_seconds=sum(one.covered_seconds for one in rows),
    )


def buckets(rows: Iterable[Observed], since: datetime, until: datetime, width: timedelta) -> list[Bucket]:
    """The worst of each `width` from `since` to `until`, in order.

    A row counts in every bucket that its time reaches into; its audits count in the one in which they were made.
    """
    edges = _edges(since, until, width)
    held: list[list[Observed]] = [[] for _ in edges]
    for row in rows:
        if row.at >= until or (row.at < since and row.until <= since):
            continue
        first = max(0, (row.at - since) // width)
        for place in range(first, len(edges)):
            low, high = edges[place]
            if place > first and row.until <= low:
                break
            held[place].append(_clipped(row, low, high))
    return [
        Bucket(low, high, worst_of(inside, Grain.AUDIT) if inside else None)
        for (low, high), inside in zip(edges, held, strict=True)
    ]


@dataclass(slots=True)
class Hour:
    """Of a spark line: the worst status, the most that was not accepted, how much nobody looked. `status` None: all of it."""

    status: Status | None
    lag_events: int | None
    unobserved_seconds: float


def hours(rows: Iterable[tuple[float, float, float, Status, int | None]], width: float, count: int) -> list[Hour]:
    """The worst of each of `count` hours, as `buckets` has it, from a few columns: a page of pipelines has many of them.

    `rows`: at and until, in seconds since the first hour began, covered seconds, status, not accepted.
    """
    found = [Hour(None, None, width) for _ in range(count)]
    for at, until, covered, status, lag in rows:
        first = max(0, int(at // width))
        last = max(first, min(count - 1, -int(-until // width) - 1))
        share = min(covered / (until - at), 1.0) if until > at else 0.0
        for place in range(first, last + 1):
            hour = found[place]
            low, high = max(at, place * width), min(until, (place + 1) * width)
            hour.unobserved_seconds = max(hour.unobserved_seconds - max(high - low, 0.0) * share, 0.0)
            if hour.status is None or WORST_FIRST.index(status) < WORST_FIRST.index(hour.status):
                hour.status = status
            if lag is not None and (hour.lag_events is None or lag > hour.lag_events):
                hour.lag_events = lag
    return found


def strip(rows: Iterable[Observed], since: datetime, until: datetime) -> list[Stretch]:
    """Which status held when, from `since` to `until` without a hole: what no row covers is not observed.

    `rows` in order of time. Where two overlap (a clock jumped back), the later one goes on where the earlier ends.
    """
    found: list[Stretch] = []
    reached = since
    for row in rows:
        begin, end = max(row.at, reached), min(row.until, until)
        if end <= begin or begin >= until:
            continue
        if begin > reached:
            found.append(Stretch(reached, begin, None, (begin - reached).total_seconds()))
        part = _clipped(row, begin, end)
        found.append(Stretch(begin, end, row.status, part.uncovered_seconds, row.audits))
        reached = end
    if reached < until:
        found.append(Stretch(reached, until, None, (until - reached).total_seconds()))
    return _joined(found)


def _joined(stretches: Sequence[Stretch]) -> list[Stretch]:
    joined: list[Stretch] = []
    for one in stretches:
        if joined and joined[-1].status is one.status:
            last = joined.pop()
            one = Stretch(
                last.since,
                one.until,
                one.status,
                last.unobserved_seconds + one.unobserved_seconds,
                last.audits + one.audits,
            )
        joined.append(one)
    return joined


def _clipped(row: Observed, low: datetime, high: datetime) -> Observed:
    """The part of a row between two moments; of several audits it covers the same share as the whole."""
    if row.at >= low and row.until <= high:
        return row
    at, until = max(row.at, low), max(min(row.until, high), max(row.at, low))
    whole = (row.until - row.at).total_seconds()
    share = (until - at).total_seconds() / whole if whole else 0.0
    audits = row.audits if row.at >= low else 0
    return replace(row, at=at, until=until, audits=audits, observed_seconds=row.covered_seconds * share)


def _edges(since: datetime, until: datetime, width: timedelta) -> list[tuple[datetime, datetime]]:
    count = -((since - until) // width)
    return [(since + width * place, min(since + width * (place + 1), until)) for place in range(count)]


def _most(numbers: Iterable[int | None]) -> int | None:
    return max((one for one in numbers if one is not None), default=None)
