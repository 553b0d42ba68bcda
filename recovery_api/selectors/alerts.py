"""Reads of alerts, mutes, and what keeps an alert silent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Case, Count, IntegerField, Q, QuerySet, Value, When

from recovery_api.domain.alerts.causes import Cause, Scope, Severity
from recovery_api.domain.alerts.quiet import About, Muted, Mutes
from recovery_api.domain.errors import NotFound
from recovery_api.models import Alert, AlertLine, Mute, Pipeline, Sink, Upkeep

EVALUATED = "alerts"
"""The name of the pager's evaluation among the chores."""
EVALUATED_WITHIN = timedelta(seconds=60)
"""An evaluation that is older shows that no pager runs."""
WORST_FIRST = Case(
    *(When(severity=one.value, then=Value(-one.rank)) for one in Severity),
    default=Value(0),
    output_field=IntegerField(),
)


def alert_list(
    *, state: str = "open", cause: str = "", severity: str = "", pipeline: str = "", text: str = ""
) -> QuerySet[Alert]:
    """Worst first, then the newest. `state`: open, resolved, or all."""
    found = Alert.objects.select_related("pipeline", "source", "sink", "group").order_by(
        WORST_FIRST, "-opened_at", "id"
    )
    if state in ("open", "resolved"):
        found = found.filter(resolved_at__isnull=state == "open")
    if cause:
        found = found.filter(cause=cause)
    if severity:
        found = found.filter(severity=severity)
    if pipeline:
        found = found.filter(pipeline__name=pipeline)
    if text:
        found = found.filter(
            Q(pipeline__name__icontains=text)
            | Q(sink__name__icontains=text)
            | Q(source__name__icontains=text)
            | Q(says__icontains=text)
        )
    return found


def alert_get(alert_id: UUID | str) -> Alert:
    """Raises: NotFound."""
    try:
        found = alert_list(state="all").filter(id=alert_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(f"Alert {alert_id}", "the control database", "List them: manage.py alerts list.")
    return found


def alert_lines(alert: Alert) -> QuerySet[AlertLine]:
    """What happened to it, oldest first."""
    return alert.lines.order_by("at", "id")


@dataclass(frozen=True, slots=True)
class OpenCount:
    """How many alerts are open; `critical` of them; `unheard`: nobody acknowledged or muted them."""

    count: int
    critical: int
    unheard: int


def open_count(now: datetime) -> OpenCount:
    """One query."""
    is_quiet = Q(acknowledged_until__gt=now) | Q(muted_until__gt=now)
    row = Alert.objects.filter(resolved_at__isnull=True).aggregate(
        count=Count("pk"),
        critical=Count("pk", filter=Q(severity=Severity.CRITICAL)),
        unheard=Count("pk", filter=~is_quiet | Q(acknowledged_until__isnull=True, muted_until__isnull=True)),
    )
    return OpenCount(**row)


def evaluated_at() -> datetime | None:
    """When alerts were last evaluated whole; None: never, so no pager ever ran."""
    return Upkeep.objects.filter(name=EVALUATED).values_list("done_at", flat=True).first()


def pager_says(now: datetime, last: datetime | None) -> str:
    """That nobody evaluates alerts, in a sentence; "" where somebody does."""
    start = "Start one: manage.py pager."
    if last is None:
        return f"No pager has ever run, so nobody is paged. {start}"
    if now - last > EVALUATED_WITHIN:
        return f"No pager has run since {last:%Y-%m-%d %H:%M:%S} UTC, so nobody is paged. {start}"
    return ""


def mutes_standing(now: datetime) -> QuerySet[Mute]:
    """Those that keep something silent now, the first to end first."""
    return Mute.objects.filter(until__gt=now, ended_at__isnull=True).order_by("until")


def mute_get(mute_id: UUID | str) -> Mute:
    """Raises: NotFound."""
    try:
        found = Mute.objects.filter(id=mute_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(f"Mute {mute_id}", "the control database", "List them: manage.py alerts mutes.")
    return found


def muted_of(mutes: Sequence[Mute]) -> list[Muted]:
    return [Muted(str(one.pk), Mutes(one.by), one.value, one.until, one.cause) for one in mutes]


def abouts_get(subjects: Collection[str] | None = None) -> dict[str, About]:
    """By subject (`pipeline:12`): the names and labels by which its alerts are muted and routed. Of every pipeline and sink in use, or
    of `subjects`. Two queries. What a sink is called by is its pipeline's as well: it serves that one alone."""
    keys = None if subjects is None else [int(one.split(":")[1]) for one in subjects if one.startswith("pipeline:")]
    columns = (
        "pk",
        "name",
        "options",
        "source__name",
        "source_id",
        "sink_id",
        "sink__name",
        "delivery_id",
        "delivery__name",
    )
    found: dict[str, About] = {str(Scope.INSTALLATION): About("")}
    used = Pipeline.objects.filter(retired_at__isnull=True)
    if keys is not None:
        sinks = [int(one.split(":")[1]) for one in subjects or () if one.startswith("sink:")]
        used = Pipeline.objects.filter(Q(pk__in=keys) | Q(sink_id__in=sinks) | Q(delivery_id__in=sinks))
    for row in used.values(*columns):
        names = tuple(row[name] for name in ("sink__name", "delivery__name") if row[name] is not None)
        labels = row["options"].get("labels") or {}
        found[f"pipeline:{row['pk']}"] = About("", row["name"], row["source__name"], names, labels)
        for which in ("sink", "delivery"):
            if row[f"{which}_id"] is not None:
                found[f"sink:{row[f'{which}_id']}"] = About("", row["name"], "", (row[f"{which}__name"],), labels)
    return found


def name_of(alert: Alert) -> str:
    """What a person calls the thing that it is about."""
    about = alert.pipeline or alert.sink or alert.source
    return about.name if about is not None else "Fencepost"


def cause_label(alert: Alert) -> str:
    return Cause(alert.cause).label


def mute_says(mute: Mute) -> str:
    """What it keeps silent."""
    return f"{Cause(mute.cause).label if mute.cause else 'every alert'} of {mute.by} {mute.value}"


def served_by(sink: Sink | None) -> Pipeline | None:
    """The pipeline in use that a sink serves, as its record or as what it delivers into."""
    if sink is None:
        return None
    return Pipeline.objects.filter(Q(sink=sink) | Q(delivery=sink), retired_at__isnull=True).first()
