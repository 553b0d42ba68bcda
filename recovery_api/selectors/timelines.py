"""The timeline for a reader: events, and what happened to alerts, in one order, filtered, and turned by keyset so that deep pages
cost what the first one does.

The law: what the pager writes is merged in here and is no event. Each event of a pipeline takes back what was worked out of its
headroom, and an alert that flaps would do so for nothing.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Max, Q, QuerySet

from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.timelines import BY_CHANGE, AlertKind, Place
from recovery_api.models import AlertLine, Event, EventKind, Pipeline

PAGE = 50


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a timeline: an event, or what happened to an alert. `alert`: of which alert it tells.
    `refused_count`: how often its person was refused in that hour; 0 where nobody was."""

    place: Place
    at: datetime
    kind: str
    actor: str
    pipeline: str | None
    says: str
    generation: int | None = None
    plan: UUID | None = None
    recovery: UUID | None = None
    audit: UUID | None = None
    alert: UUID | None = None
    data: dict[str, Any] | None = None
    refused_count: int = 0


@dataclass(frozen=True, slots=True)
class Lines:
    """The two queries whose rows a timeline merges. They need no order: `lines_read` gives them one."""

    events: QuerySet[Event]
    alerts: QuerySet[AlertLine]


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """`older_than`: the place to ask for next; None: nothing older."""

    lines: list[Line]
    older_than: Place | None


def event_data(event: Event) -> dict[str, Any]:
    """What an event holds; of a refusal also how often its person was refused in that hour."""
    counted = getattr(event, "refusals", None) if event.kind == EventKind.ACCESS_DENIED else None
    return event.data | ({"refused_count": counted.count} if counted is not None else {})


def event_newest() -> int:
    """The newest event's number: after it stands what is written now; 0 where there is none."""
    return Event.objects.aggregate(newest=Max("id"))["newest"] or 0


def timeline_page(
    *, pipeline: str = "", kind: str = "", actor: str = "", before: Place | None = None, limit: int = PAGE
) -> TimelinePage:
    """The newest `limit` lines before `before` that match. `pipeline` is a name, retired ones included."""
    found = lines_read(timeline_lines(pipeline=pipeline, kind=kind, actor=actor), before=before, limit=limit + 1)
    return TimelinePage(found[:limit], found[limit - 1].place if len(found) > limit else None)


def timeline_lines(*, pipeline: str = "", kind: str = "", actor: str = "") -> Lines:
    """Everything that matches."""
    events, alerts = Event.objects.all(), AlertLine.objects.filter(change__in=BY_CHANGE)
    if pipeline:
        events = events.filter(pipeline__name=pipeline)
        alerts = alerts.filter(alert_lines_about(Pipeline.objects.filter(name=pipeline)))
    if kind:
        events = events.filter(kind=kind) if kind in set(EventKind) else events.none()
        alerts = alerts.filter(change=AlertKind(kind).change) if kind in set(AlertKind) else alerts.none()
    if actor:
        events, alerts = events.filter(actor=actor), alerts.filter(actor=actor)
    return Lines(events, alerts)


def alert_lines_about(pipelines: Collection[Pipeline] | QuerySet[Pipeline]) -> Q:
    """Lines of alerts about these pipelines, and about their ends while those were theirs."""
    found = list(pipelines)
    sinks = {key for one in found for key in (one.sink_id, one.delivery_id) if key is not None}
    of_pipelines = Q(alert__pipeline__in=found)
    of_ends = Q(alert__sink__in=sinks) | Q(alert__source__in={one.source_id for one in found})
    if not found:
        return of_pipelines
    theirs = Q(at__gte=min(one.created_at for one in found))
    if all(one.retired_at for one in found):
        theirs &= Q(at__lte=max(one.retired_at for one in found if one.retired_at))
    return (of_pipelines | of_ends) & (of_pipelines | theirs)  # ends first: then their indexes are used


def lines_read(
    of: Lines, *, before: Place | None = None, after: Place | None = None, limit: int | None = None, newest: bool = True
) -> list[Line]:
    """At most `limit` of them between two places, in order; `newest`: the newest first. Two queries."""
    events, alerts = of.events, of.alerts
    if before is not None:
        events = events.filter(**{"id__lte" if before.line else "id__lt": before.event})
        alerts = alerts.filter(Q(after_event__lt=before.event) | Q(after_event=before.event, id__lt=before.line))
    if after is not None:
        events = events.filter(id__gt=after.event)
        alerts = alerts.filter(Q(after_event__gt=after.event) | Q(after_event=after.event, id__gt=after.line))
    sign = "-" if newest else ""
    events = events.select_related("pipeline", "refusals").order_by(f"{sign}id")
    alerts = alerts.select_related("alert__pipeline", "alert__sink", "alert__source")
    alerts = alerts.order_by(f"{sign}after_event", f"{sign}id")
    both = map(_of_event, events[:limit]), map(_of_alert, alerts[:limit])
    return list(heapq.merge(*both, key=lambda line: line.place, reverse=newest))[:limit]


def _of_event(event: Event) -> Line:
    data = event_data(event)
    return Line(
        Place(event.id),
        event.at,
        event.kind,
        event.actor,
        event.pipeline.name if event.pipeline else None,
        event.says,
        generation=event.generation,
        plan=event.plan_id,
        recovery=event.recovery_id,
        audit=event.audit_id,
        alert=UUID(data["alert"]) if event.kind == EventKind.ALERT_ACKNOWLEDGED else None,
        data=data,
        refused_count=data.get("refused_count", 0) if event.kind == EventKind.ACCESS_DENIED else 0,
    )


def _of_alert(line: AlertLine) -> Line:
    alert = line.alert
    about = alert.pipeline or alert.sink or alert.source
    of = f" of {about.name}" if about is not None and alert.pipeline is None else ""
    return Line(
        Place(line.after_event, line.pk),
        line.at,
        BY_CHANGE[line.change],
        line.actor,
        alert.pipeline.name if alert.pipeline else None,
        f"{Cause(alert.cause).label}{of}: {line.says}".rstrip(": "),
        audit=_evidence(line, "audit"),
        recovery=_evidence(line, "recovery"),
        alert=alert.pk,
    )


def _evidence(line: AlertLine, what: str) -> UUID | None:
    """What the line rests on, where that is one of these."""
    sort, _, key = line.evidence.partition(":")
    with contextlib.suppress(ValueError):
        return UUID(key) if sort == what else None
    return None
