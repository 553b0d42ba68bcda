"""From what audits observed to what is drawn and listed of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dashboard.charts.history import NOT_OBSERVED, Spark, history_figure, spark_of, strip_blocks
from recovery_api.domain.errors import BadInput
from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.headroom.says import span_short
from recovery_api.domain.history import FIRST_SPAN, SPANS, Bucket, Hour, Observed, Stretch
from recovery_api.domain.looks import look_of
from recovery_api.domain.outcomes import WORST_FIRST
from recovery_api.models import Pipeline
from recovery_api.selectors.history import fleet_sparks, history_get

NAMES = {"24h": "24 hours", "7d": "7 days", "30d": "30 days", "1y": "a year"}
SPARK_NOTHING = "No audit observed it in the last 24 hours."


@dataclass(frozen=True, slots=True)
class Point:
    """A row of the chart's table: figures as they are written, "" where not known."""

    since: datetime
    worst: Observed | None
    look: str
    rate: str
    oldest: str
    waits: str
    headroom: str
    headroom_look: str
    unobserved: str


def span_read(given: Mapping[str, str]) -> str:
    """The span that a page's address asks for. Raises: BadInput."""
    span = given.get("history", FIRST_SPAN)
    if span not in SPANS:
        raise BadInput("history", f"{span!r} is not one of its values", f"One of: {', '.join(SPANS)}.")
    return span


def history_context(pipeline: Pipeline, span: str, now: datetime) -> dict[str, Any]:
    """What the panel shows: strip and chart, and both as tables."""
    found = history_get(pipeline, span, now)
    return {
        "span": span,
        "spans": [(one, NAMES[one], one == span) for one in SPANS],
        "says": f"The last {NAMES[span]}",
        "since": found.since,
        "until": found.until,
        "is_empty": found.is_empty,
        "strip": strip_blocks(found.stretches, stretch_says),
        "strip_says": strip_says(found.stretches),
        "stretches": [(one, one.status.value if one.status else None, _gap(one)) for one in found.stretches],
        "totals": [(status, span_short(held)) for status, held in totals(found.stretches)],
        "figure": history_figure(found.buckets),
        "width": span_short(found.width),
        "points": [_point(one) for one in found.buckets if one.worst is not None],
    }


def sparks(pipelines: Sequence[Pipeline], now: datetime) -> dict[int, Spark | None]:
    """Of each pipeline of a page its spark line; None: nothing was observed. One query."""
    found = fleet_sparks([one.pk for one in pipelines], now)
    return {
        one.pk: spark_of(found[one.pk], spark_says(found[one.pk]))
        if any(hour.status for hour in found.get(one.pk, []))
        else None
        for one in pipelines
    }


def spark_says(found: Sequence[Hour]) -> str:
    """The spark line in words: the worst status and the most that waited, and for how long nobody looked."""
    worst = min((one.status for one in found if one.status), key=WORST_FIRST.index)
    most = max((one.lag_events for one in found if one.lag_events is not None), default=None)
    waited = "" if most is None else f", at most {most:,} not accepted"
    blind = timedelta(seconds=sum(one.unobserved_seconds for one in found))
    gaps = f", {span_short(blind)} {NOT_OBSERVED}" if blind >= timedelta(minutes=1) else ""
    return f"Last 24 hours: at worst {look_of(worst).says}{waited}{gaps}"


def totals(stretches: Sequence[Stretch]) -> list[tuple[str | None, timedelta]]:
    """How long each status held altogether, worst first; None, last: not observed, inside of what became one row, too."""
    held: dict[str | None, timedelta] = {}
    for one in stretches:
        blind = timedelta(seconds=one.unobserved_seconds)
        if one.status is not None:
            held[one.status.value] = held.get(one.status.value, timedelta()) + (one.until - one.since) - blind
        if blind:
            held[None] = held.get(None, timedelta()) + blind
    order = {status.value: place for place, status in enumerate(WORST_FIRST)}
    return sorted(held.items(), key=lambda pair: order.get(pair[0] or "", len(order)))


def strip_says(stretches: Sequence[Stretch]) -> str:
    """The strip in words, for who does not see it."""
    said = [f"{look_of(word).says if word else NOT_OBSERVED} {span_short(held)}" for word, held in totals(stretches)]
    return f"Which status held when: {', '.join(said)}."


def stretch_says(one: Stretch) -> str:
    word = look_of(one.status).says if one.status else NOT_OBSERVED
    gap = _gap(one)
    return f"{_moment(one.since)} to {_moment(one.until)}: {word}{f', {gap}' if gap else ''}"


def _gap(one: Stretch) -> str:
    if one.status is None or one.unobserved_seconds < 1:
        return ""
    return f"{span_short(timedelta(seconds=one.unobserved_seconds))} of it {NOT_OBSERVED}"


def _point(bucket: Bucket) -> Point:
    worst = bucket.worst
    assert worst is not None
    rate = worst.accepted_per_second
    blind = timedelta(seconds=bucket.unobserved_seconds)
    return Point(
        since=bucket.since,
        worst=worst,
        look=worst.status.value,
        rate="" if rate is None else f"{rate:,.1f}",
        oldest=_span(worst.oldest_owed_seconds),
        waits=_span(worst.lag_seconds),
        headroom=_headroom(worst),
        headroom_look=f"headroom_{worst.headroom.value}" if worst.headroom else "",
        unobserved=span_short(blind) if blind >= timedelta(seconds=1) else "",
    )


def _headroom(worst: Observed) -> str:
    if worst.headroom_seconds is None:
        return ""
    bound = "at most " if worst.headroom is Standing.UNKNOWN else ""
    return f"{bound}{_span(worst.headroom_seconds)}"


def _span(seconds: int | None) -> str:
    return "" if seconds is None else span_short(timedelta(seconds=seconds))


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
