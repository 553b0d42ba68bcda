"""Alerts: what is wrong, since when, who has it; taken over, given back, muted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_GET, require_POST

from dashboard.access import actor
from dashboard.views.errors import errors_shown
from dashboard.views.filters import filters_read, page_read, query_of
from recovery_api.alert_rows import alert_state, delivery_title, observed_says
from recovery_api.domain.alerts.causes import Cause, Severity
from recovery_api.domain.alerts.quiet import Mutes
from recovery_api.domain.errors import BadInput
from recovery_api.domain.moments import moment_read
from recovery_api.domain.words import words
from recovery_api.models import Alert, Delivery
from recovery_api.selectors import alerts as selected
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.destinations import delivery_list, route_list
from recovery_api.services import alert_quiet as services

PAGE = 50
DELIVERIES_SHOWN = 30
STATES = ("open", "resolved", "all")
SPANS = (("1", "for an hour"), ("4", "for 4 hours"), ("12", "for 12 hours"), ("24", "for a day"), ("168", "for a week"))
FILTERS = {
    "state": STATES,
    "cause": words(Cause),
    "severity": words(Severity),
    "pipeline": (),
    "q": (),
    "page": (),
}


@require_GET
@errors_shown
def alert_list(request: HttpRequest) -> HttpResponse:
    """Open alerts, worst first; what is muted; whether anybody evaluates them and whom they are told."""
    given, now = filters_read(request, FILTERS), now_get()
    found = selected.alert_list(
        state=given.get("state", "open"),
        cause=given.get("cause", ""),
        severity=given.get("severity", ""),
        pipeline=given.get("pipeline", ""),
        text=given.get("q", ""),
    )
    page = Paginator(found, PAGE).get_page(page_read(given))
    context = {
        "page": page,
        "rows": [_shown(alert, now) for alert in page.object_list],
        "count": selected.open_count(now),
        "given": given,
        "query": query_of(given, "page"),
        "states": STATES,
        "severities": words(Severity),
        "causes": [(one.value, one.label) for one in Cause],
        "mutes": [(mute, services.mute_says(mute)) for mute in selected.mutes_standing(now)],
        "mute_by": words(Mutes),
        "spans": SPANS,
        "pager_says": selected.pager_says(now, selected.evaluated_at()),
        "has_route": route_list().exists(),
    }
    return render(request, "alerts/list.html", context)


@require_GET
@errors_shown
def alert_show(request: HttpRequest, alert_id: UUID) -> HttpResponse:
    """One alert: what it means, what to look at, everything that happened to it, what was sent of it."""
    alert, now = selected.alert_get(alert_id), now_get()
    context = {
        **_shown(alert, now),
        "lines": selected.alert_lines(alert),
        "deliveries": deliveries_shown(list(delivery_list(alert=alert)[:DELIVERIES_SHOWN])),
        "spans": SPANS,
        "evidence_url": evidence_url(alert),
        "runbook_url": _runbook_url(alert),
    }
    return render(request, "alerts/alert.html", context)


@require_POST
@errors_shown
def alert_acknowledge(request: HttpRequest, alert_id: UUID) -> HttpResponse:
    now = now_get()
    alert = services.alert_acknowledge(
        selected.alert_get(alert_id),
        note=request.POST.get("note", ""),
        until=_until(request, now),
        actor=actor(request),
        now=now,
    )
    messages.success(
        request, f"It is yours until {alert.acknowledged_until:%Y-%m-%d %H:%M} UTC. Then it comes back by itself."
    )
    return redirect("alert", alert_id)


@require_POST
@errors_shown
def alert_give_back(request: HttpRequest, alert_id: UUID) -> HttpResponse:
    services.alert_give_back(selected.alert_get(alert_id), actor=actor(request), now=now_get())
    messages.success(request, "It comes back at the next evaluation.")
    return redirect("alert", alert_id)


@require_POST
@errors_shown
def mute_add(request: HttpRequest) -> HttpResponse:
    """Something is told to nobody until a moment."""
    now, given = now_get(), request.POST
    mute = services.mute_add(
        given.get("by", ""),
        given.get("value", "").strip(),
        cause=given.get("cause", ""),
        note=given.get("note", ""),
        until=_until(request, now),
        actor=actor(request),
        now=now,
    )
    messages.success(request, f"Muted until {mute.until:%Y-%m-%d %H:%M} UTC: {services.mute_says(mute)}.")
    return redirect("alert-list")


@require_POST
@errors_shown
def mute_end(request: HttpRequest, mute_id: UUID) -> HttpResponse:
    mute = services.mute_end(selected.mute_get(mute_id), actor=actor(request), now=now_get())
    messages.success(request, f"No longer muted: {services.mute_says(mute)}.")
    return redirect("alert-list")


def deliveries_shown(deliveries: list[Delivery]) -> list[dict[str, Any]]:
    """Each with its title and its last answer."""
    return [
        {
            "delivery": one,
            "title": delivery_title(one.message),
            "word": f"delivery_{one.state}",
            "answer": one.answers[-1] if one.answers else None,
            "is_repeatable": one.state not in ("superseded", "sending"),
        }
        for one in deliveries
    ]


def evidence_url(alert: Alert) -> str:
    """The page of what it rests on; "" where there is none."""
    what, _, key = alert.evidence.partition(":")
    if what in ("audit", "recovery"):
        return reverse(what, args=[key])
    return reverse("sink", args=[alert.sink.name]) if alert.sink else ""


def _runbook_url(alert: Alert) -> str:
    """The runbook of its cause, filled in where it is about a pipeline; "" where this installation has none."""
    try:
        if alert.pipeline is not None:
            return reverse("pipeline-runbook", args=[alert.pipeline.name, alert.cause])
        return reverse("runbook", args=[alert.cause])
    except NoReverseMatch:
        return ""


def _shown(alert: Alert, now: datetime) -> dict[str, Any]:
    state = alert_state(alert, now)
    return {
        "alert": alert,
        "cause": Cause(alert.cause),
        "name": selected.name_of(alert),
        "state": state,
        "state_word": f"alert_{state}",
        "observed_says": observed_says(alert, now),
        "url": reverse("pipeline", args=[alert.pipeline.name])
        if alert.pipeline
        else reverse("sink", args=[alert.sink.name])
        if alert.sink
        else "",
        "is_known_elsewhere": bool(settings.FENCEPOST_URL),
    }


def _until(request: HttpRequest, now: datetime) -> datetime | None:
    """The end that was typed, else the span that was chosen; None: neither, which the service refuses."""
    if (typed := moment_read(request.POST.get("until"), "until")) is not None:
        return typed
    hours = request.POST.get("for", "")
    if hours and hours not in dict(SPANS):
        raise BadInput("for", f"{hours!r} is not one of its values", f"One of: {', '.join(dict(SPANS))} hours.")
    return now + timedelta(hours=int(hours)) if hours else None
