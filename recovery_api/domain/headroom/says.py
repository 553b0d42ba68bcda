"""Headroom in sentences, for somebody who has not looked at it for a month. UTC, to the minute, never rounded up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta

from recovery_api.domain.headroom.live import Headroom, Pace, Standing
from recovery_api.domain.headroom.observed import Arrivals
from recovery_api.domain.headroom.seen import EndSeen
from recovery_api.domain.headroom.terms import FAR, Forgets

FORGETS_SAYS: Mapping[Forgets, str] = {
    Forgets.SOURCE_PURGE: "the source deletes the rows",
    Forgets.SOURCE_DISK: "the source's disk is full",
    Forgets.SLOT: "the slot loses its WAL",
    Forgets.SLOT_IDLE: "the server invalidates the slot",
    Forgets.SINK_MEMORY: "the sink no longer knows what it accepted",
    Forgets.SINK_MEMORY_ENTRIES: "the sink no longer knows what it accepted",
    Forgets.RECORD: "the record has deleted the entries",
    Forgets.SINK_DISK: "the sink's disk is full",
}
"""After which a recovery cannot be made safely."""

MISSING_SAYS: Mapping[str, str] = {
    "growth_per_second": "how many events come in (two audits show it)",
    "rate_per_second": "how fast a recovery sends (no recovery of 1,000 events or more ended in the last 90 days)",
    "overhead": "how long a recovery takes besides sending (none ended in the last 90 days)",
    "margin": "the margin (declare margin_seconds at the pipeline)",
    "operator_delay": "how long a person takes to start one (declare operator_delay_seconds at the pipeline)",
}


DRILLED = "No recovery showed how long one takes besides sending: a whole run of drills counts, which audits less."


def span_short(span: timedelta) -> str:
    """Whole minutes, rounded down; what is shorter in seconds.

    >>> span_short(timedelta(hours=9, minutes=36, seconds=59)), span_short(timedelta(seconds=59)), span_short(timedelta(days=2))
    ('9 h 36 min', '59 s', '2 d')
    >>> span_short(timedelta(milliseconds=600))
    'under 1 s'
    """
    if span < timedelta(0):
        return f"-{span_short(-span)}"
    if span >= FAR / 2:
        return "more than 50 years"
    if timedelta(0) < span < timedelta(seconds=1):
        return "under 1 s"
    seconds = int(span.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    days, rest = divmod(seconds // 60, 24 * 60)
    hours, minutes = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes if days < 2 else 0, "min")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def at_says(moment: datetime, now: datetime) -> str:
    """A moment, with its day where that is another than today's."""
    if moment - now >= FAR / 2:
        return "in more than 50 years"
    return f"{moment:%H:%M} UTC" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M} UTC"


def headroom_says(found: Headroom, pace: Pace, now: datetime, *, is_hypothetical: bool, is_read: bool) -> str:
    """The first sentences: what is so, and by when to do what."""
    if not is_read:
        return "How long a recovery may wait is not known: no audit has told what is owed."
    if found.standing is Standing.GONE:
        return _gone(found, is_hypothetical)
    bound = _bound(found, now)
    if found.standing is Standing.UNKNOWN:
        missing = [MISSING_SAYS[one] for one in pace.missing]
        because = f" Not known: {'; '.join(missing)}." if missing else ""
        return f"How long a recovery may still wait is not known{bound}.{because}"
    if found.decide_by is None or found.last_start is None or found.binds is None:
        return "Nothing limits how long a recovery may wait."
    if is_hypothetical:
        when = f"Nothing is owed. If the relay stopped now, a recovery would have to start by {at_says(found.last_start, now)}"
    else:
        events = "one event" if pace.owed == 1 else f"about {pace.owed:,} events"
        when = f"A recovery of {events} must start by {at_says(found.last_start, now)}"
    decide = f"decide by {at_says(found.decide_by, now)}"
    if found.standing is Standing.LOW and is_hypothetical:
        return f"{when}: sooner than a person may take to see it and to decide."
    if found.standing is Standing.LOW:
        return f"{when}. Start it now: since {at_says(found.decide_by, now)} there is no time left to decide."
    return f"{when}; {decide}, in {span_short(found.decide_by - now)}. If it starts later, it may still be sending when {FORGETS_SAYS[found.binds]}."


def headroom_short(found: Headroom, now: datetime) -> str:
    """One line for a table: the number, and by when to decide."""
    if found.standing is Standing.GONE:
        return "too late to be safe"
    if found.left is None:
        return "no limit" if found.standing is Standing.OK else "nothing is known"
    left = f"{'at most ' if found.is_left_bound else ''}{span_short(found.left)} left"
    if found.decide_by is None:
        return left
    return f"{left}; decide by {'at most ' if found.is_bound else ''}{at_says(found.decide_by, now)}"


def pace_says(pace: Pace, arrivals: Arrivals) -> list[str]:
    """What the countdown is reckoned with: the peak, with what is so lately beside it. What is not known is left out."""
    says = []
    if arrivals.peak_per_second is not None:
        lately = "" if arrivals.recent_per_second is None else f", lately {arrivals.recent_per_second:,.1f}"
        says.append(f"Up to {arrivals.peak_per_second:,.1f} events a second come in{lately}.")
    if pace.rate_per_second is not None:
        says.append(f"The slowest recent recovery sent {pace.rate_per_second:,.1f} events a second.")
    if pace.overhead is not None:
        says.append(f"A recovery takes {span_short(pace.overhead)} besides sending.")
    return [*says, DRILLED] if pace.is_overhead_drilled else says


def end_says(seen: EndSeen) -> str:
    """What an audit saw of an end: its clock, its error rounded up, and how large its table is."""
    if seen.clock is None:
        return seen.problem or "Its clock was not measured."
    ahead, error = seen.clock.ahead.total_seconds(), seen.clock.error.total_seconds()
    says = f"Its clock is {abs(ahead):.3f} s {'ahead' if ahead >= 0 else 'behind'}, give or take {math.ceil(error * 1000) / 1000:.3f} s."
    return says if seen.table_bytes is None else f"{says} Its table takes {seen.table_bytes:,} bytes."


def _gone(found: Headroom, is_hypothetical: bool) -> str:
    lost = [one for one in found.terms if one.standing is Standing.GONE]
    if found.is_expired:
        says = "Some of what a recovery needs may be gone already."
    else:
        says = "A recovery that starts now may end too late."
    because = " ".join(dict.fromkeys(one.term.says for one in lost))
    if is_hypothetical:
        return f"Nothing is owed. If the relay stopped now, even a recovery at once might end too late. {because}"
    return f"{says} {because} Look at both ends before you send anything again."


def _bound(found: Headroom, now: datetime) -> str:
    """What an unknown headroom is at most."""
    if found.left is None:
        return ""
    start = f"; start by {at_says(found.last_start, now)} at the latest" if found.last_start else ""
    return f": at most {span_short(found.left)}{start}"
