"""Reads of incidents: the list, one timeline of everything that happened to its pipelines, and the figures."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet, Sum

from recovery_api.domain.actors import actor_name
from recovery_api.domain.errors import NotFound
from recovery_api.domain.incidents import Done, Figures, Line, Reading, Told, pipeline_figures
from recovery_api.domain.outcomes import Status
from recovery_api.domain.timelines import BY_CHANGE
from recovery_api.models import Alert, AlertLine, Audit, Event, EventKind, Incident, Pipeline, Plan, Recovery
from recovery_api.selectors.alerts import cause_label, name_of, served_by
from recovery_api.selectors.timelines import Lines, alert_lines_about, lines_read

LOOKS_BACK = timedelta(days=7)
"""How long before it was noticed an incident may have begun: so far readings are looked at."""
LINES = 2000
"""So many lines of the timeline a post-mortem holds; the rest is in the timeline itself."""
ACTIONS = (
    EventKind.AUDIT_REQUESTED,
    EventKind.PLAN_REQUESTED,
    EventKind.PLAN_APPROVED,
    EventKind.RECOVERY_REQUESTED,
    EventKind.WANTED,
    EventKind.FROZEN,
    EventKind.UNFROZEN,
    EventKind.OMISSION_ACKNOWLEDGED,
    EventKind.LEDGER_DECIDED,
)
"""What counts as doing something about it."""
BY_ITSELF = ("schedule", "sweep", "worker", "connection test", "redrive")


@dataclass(frozen=True, slots=True)
class Begun:
    """With what an incident begins that is opened from an alert."""

    alert: str
    title: str
    severity: str
    noticed_at: datetime
    pipelines: tuple[Pipeline, ...]


def incident_begun(alert: Alert) -> Begun:
    """Of an alert about a sink its pipeline's; of one about the installation nobody's."""
    of = alert.pipeline or served_by(alert.sink)
    title = f"{cause_label(alert)}: {of.name if of else name_of(alert)}"
    return Begun(str(alert.pk), title[:200], alert.severity, alert.first_opened_at, (of,) if of else ())


def incident_get(incident_id: UUID | str) -> Incident:
    """Raises: NotFound."""
    try:
        found = incident_list().filter(id=incident_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(
            f"Incident {incident_id}", "the control database", "See which there are: manage.py incident list."
        )
    return found


def incident_list(*, is_live: bool = False) -> QuerySet[Incident]:
    """Newest first; with `is_live` only those that are not closed."""
    found = Incident.objects.prefetch_related("pipelines").order_by("-opened_at", "-id")
    return found.filter(closed_at__isnull=True) if is_live else found


def incident_alerts(incident: Incident) -> list[Alert]:
    """The alerts that it was opened from or that were added to it, as far as they are kept; a tool may name others."""
    keys = []
    for text in incident.alerts:
        with contextlib.suppress(ValueError):
            keys.append(UUID(text))
    return list(Alert.objects.filter(pk__in=keys).order_by("first_opened_at"))


def incident_timeline(incident: Incident) -> Lines:
    """What happened to it, to its pipelines and to their alerts: from when it was noticed, or the last clean reading before,
    until it was closed. Of the alerts that it names everything until then."""
    begin, named = _begin(incident), Q(alert__in=incident_alerts(incident))
    about = alert_lines_about(incident.pipelines.all()) & Q(at__gte=begin)
    alerts = AlertLine.objects.filter(named | about, change__in=BY_CHANGE)
    if incident.closed_at is not None:
        alerts = alerts.filter(at__lte=incident.closed_at)
    return Lines(incident_events(incident), alerts)


def incident_events(incident: Incident) -> QuerySet[Event]:
    """Its timeline without what the pager wrote."""
    of_incidents = [EventKind.INCIDENT_OPENED, EventKind.INCIDENT_CHANGED, EventKind.INCIDENT_NOTED]
    mine = Q(kind__in=of_incidents, data__incident=str(incident.id))
    begin = _begin(incident)
    about = Q(pipeline__in=incident.pipelines.all(), at__gte=begin) | Q(
        pipeline__isnull=True, kind__in=[EventKind.FROZEN, EventKind.UNFROZEN], at__gte=begin
    )
    about |= Q(kind=EventKind.ALERT_ACKNOWLEDGED, data__alert__in=incident.alerts)
    if incident.closed_at is not None:
        about &= Q(at__lte=incident.closed_at)
    return Event.objects.filter(mine | about)


def incident_figures(incident: Incident, now: datetime) -> Figures:
    """The incident's figures, from its pipelines' audits, plans and recoveries. `now` decides which evidence has expired. The number
    of queries does not grow with them."""
    pipelines = list(incident.pipelines.order_by("name"))
    readings = _readings(incident)
    begin, end = _begin(incident), incident.closed_at
    window = Q(created_at__gte=begin) & (Q(created_at__lte=end) if end else Q())
    recoveries = Recovery.objects.filter(window, pipeline__in=pipelines)
    sums = recoveries.aggregate(
        landed=Sum("landed_count"), absorbed=Sum("absorbed_count"), altered=Sum("altered_count")
    )
    approved = Q(approved_at__gte=begin) & (Q(approved_at__lte=end) if end else Q())
    plans = Plan.objects.filter(approved, pipeline__in=pipelines)
    approvers = sorted({actor_name(one) for one in plans.values_list("approved_by", flat=True) if one})
    return Figures(
        pipelines=tuple(pipeline_figures(one.name, readings, incident.noticed_at, now) for one in pipelines),
        noticed_at=incident.noticed_at,
        first_action=_first_action(incident),
        delivered=sums["landed"] or 0,
        already_present=sums["absorbed"] or 0,
        altered=sums["altered"] or 0,
        approvers=tuple(approvers),
    )


def incident_told(incident: Incident, now: datetime) -> Told:
    """What its post-mortem is made of."""
    found = lines_read(incident_timeline(incident), limit=LINES, newest=False)
    lines = [Line(one.at, one.pipeline or "", one.kind, one.actor, one.says) for one in found]
    return Told(
        title=incident.title,
        state=incident.state,
        severity=incident.severity,
        commander=incident.commander,
        opened_by=incident.opened_by,
        opened_at=incident.opened_at,
        closed_at=incident.closed_at,
        cause=incident.cause,
        figures=incident_figures(incident, now),
        timeline=lines,
    )


def _readings(incident: Incident) -> list[Reading]:
    found = Audit.objects.filter(
        pipeline__in=incident.pipelines.all(), record_read_at__gte=incident.noticed_at - LOOKS_BACK
    )
    if incident.closed_at is not None:
        found = found.filter(record_read_at__lte=incident.closed_at)
    columns = ("pipeline__name", "record_read_at", "status", "lost_count", "acknowledged_count")
    rows = found.values_list(*columns, "premature_count", "duplicate_count", "evidence_until")
    return [
        Reading(name, at, Status(status), lost - acknowledged, premature + duplicate, until)
        for name, at, status, lost, acknowledged, premature, duplicate, until in rows
    ]


def _begin(incident: Incident) -> datetime:
    """From when on what happened belongs to it: the first reading that showed something, or when it was noticed."""
    readings = _readings(incident)
    names = {one.pipeline for one in readings}
    noticed = incident.noticed_at
    first = [pipeline_figures(name, readings, noticed, noticed).first_owed_at for name in names]
    return min([at for at in first if at is not None] + [incident.noticed_at])


def _first_action(incident: Incident) -> Done | None:
    """What a person did first, from when it was noticed."""
    did = incident_events(incident).filter(kind__in=ACTIONS, at__gte=incident.noticed_at).exclude(actor__in=BY_ITSELF)
    found = did.order_by("at", "id").first()
    return None if found is None else Done(found.at, found.actor, found.says)
