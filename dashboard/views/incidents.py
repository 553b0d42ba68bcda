"""Incidents: opened, led, noted and closed on one page, with everything that happened to its pipelines in one timeline."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard.access import actor
from dashboard.views.errors import errors_shown, refused
from dashboard.views.overtaken import overtaken, version_read
from recovery_api.domain.alerts.causes import Severity
from recovery_api.domain.errors import BadInput, NotFound, Outdated, Refused
from recovery_api.domain.incidents import MOVES, IncidentState
from recovery_api.domain.timelines import place_parse
from recovery_api.domain.words import words
from recovery_api.models import Alert, Incident, Pipeline
from recovery_api.post_mortems import post_mortem_html, post_mortem_markdown
from recovery_api.selectors.alerts import alert_get
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get, pipeline_list
from recovery_api.selectors.incidents import (
    incident_alerts,
    incident_begun,
    incident_figures,
    incident_get,
    incident_list,
    incident_timeline,
)
from recovery_api.selectors.timelines import lines_read
from recovery_api.selectors.versions import version_of
from recovery_api.services.incidents import incident_change, incident_note, incident_open

SHOWN = 50
EVENTS_SHOWN = 200
CHOICES_SHOWN = 200
FIELDS = ("state", "severity", "commander", "cause")
"""What its page changes."""


@require_http_methods(["GET", "HEAD", "POST"])
@errors_shown
def incident_all(request: HttpRequest) -> HttpResponse:
    """The list, newest first, and the form that opens one; `?pipeline=` begins it with that one, `?alert=` with an alert."""
    if request.method != "POST":
        return _list(request)
    try:
        pipelines = [pipeline_get(name) for name in dict.fromkeys(request.POST.getlist("pipeline")) if name]
        alert = _alert(request.POST.get("alert", ""))
        incident = incident_open(
            request.POST.get("title", ""),
            pipelines,
            actor=actor(request),
            now=timezone.now(),
            severity=request.POST.get("severity", ""),
            commander=request.POST.get("commander", ""),
            alert=str(alert.pk) if alert else "",
            noticed_at=alert.first_opened_at if alert else None,
        )
    except (BadInput, NotFound) as error:
        wrong = refused(error) if isinstance(error, BadInput) else {"refusal": str(error)}
        return _list(request, wrong, 400)
    return redirect("incident", incident.id)


@require_http_methods(["GET", "HEAD", "POST"])
@errors_shown
def incident(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """The page, or a change of it: whatever of its form is sent."""
    found = incident_get(incident_id)
    if request.method != "POST":
        return _page(request, found)
    given: dict[str, Any] = {name: request.POST[name] for name in ("title", *FIELDS) if name in request.POST}
    try:
        if "add_pipeline" in request.POST:
            given["pipelines"] = [*found.pipelines.all(), pipeline_get(request.POST["add_pipeline"])]
        incident_change(found, read=version_read(request), actor=actor(request), now=timezone.now(), **given)
    except Outdated:
        now = incident_get(incident_id)
        entered = {name: text for name, text in given.items() if name != "pipelines"}
        return _page(request, now, overtaken(now, {one: getattr(now, one) for one in entered}, entered), 409)
    except (BadInput, Refused, NotFound) as error:
        wrong = refused(error) if isinstance(error, BadInput) else {"refusal": str(error)}
        return _page(request, incident_get(incident_id), wrong, 409 if isinstance(error, Refused) else 400)
    return redirect("incident", incident_id)


@require_POST
@errors_shown
def note(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    found = incident_get(incident_id)
    try:
        incident_note(found, request.POST.get("text", ""), actor=actor(request), now=timezone.now())
    except BadInput as error:
        return _page(request, found, refused(error), 400)
    messages.success(request, "Noted.")
    return redirect("incident", incident_id)


@require_GET
@errors_shown
def post_mortem(request: HttpRequest, incident_id: UUID, form: str) -> HttpResponse:
    """The file, as Markdown or as a page of its own; downloaded, so that it needs no policy of this site's."""
    if form not in ("md", "html"):
        raise NotFound(f"A post-mortem as {form}", "this site", "It is there as md and as html.")
    found = incident_get(incident_id)
    text = post_mortem_markdown(found, now_get())
    body, kind = (post_mortem_html(found, text), "text/html") if form == "html" else (text, "text/markdown")
    name = f"post-mortem-{found.noticed_at:%Y-%m-%d}.{form}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(body, content_type=f"{kind}; charset=utf-8", headers=headers)


def _list(request: HttpRequest, wrong: dict[str, Any] | None = None, status: int = 200) -> HttpResponse:
    alert = _alert(request.POST.get("alert") or request.GET.get("alert", ""))
    begun = incident_begun(alert) if alert else None
    asked = request.POST if request.method == "POST" else request.GET
    chosen = asked.getlist("pipeline") or ([one.name for one in begun.pipelines] if begun else [])
    names = pipeline_list().values_list("name", flat=True)[:CHOICES_SHOWN]
    given = {"title": begun.title, "severity": begun.severity} if begun else {}
    context = {
        "incidents": list(incident_list()[:SHOWN]),
        "severities": words(Severity),
        "choices": list(dict.fromkeys([*chosen, *names])),
        "chosen": chosen,
        "given": request.POST if request.method == "POST" else given,
        "alert": alert,
        **(wrong or {}),
    }
    return render(request, "incidents/list.html", context, status=status)


def _alert(text: str) -> Alert | None:
    """The alert that an incident is opened from. None: by hand. Raises: NotFound."""
    try:
        return alert_get(UUID(text)) if text else None
    except ValueError:
        raise NotFound(f"Alert {text}", "Fencepost", "Open the incident from the alert's page.") from None


def _page(
    request: HttpRequest, found: Incident, wrong: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    pipelines: list[Pipeline] = list(found.pipelines.order_by("name"))
    names = {one.name for one in pipelines}
    others = pipeline_list().exclude(pk__in=[one.pk for one in pipelines]).values_list("name", flat=True)
    state, text = IncidentState(found.state), request.GET.get("before", "")
    before = place_parse(text, "before") if text else None
    shown = lines_read(incident_timeline(found), before=before, limit=EVENTS_SHOWN + 1)
    context = {
        "incident": found,
        "pipelines": pipelines,
        "figures": incident_figures(found, now_get()),
        "alerts": incident_alerts(found),
        "events": shown[:EVENTS_SHOWN],
        "older_than": shown[EVENTS_SHOWN - 1].place if len(shown) > EVENTS_SHOWN else None,
        "is_older": before is not None,
        "means": state.means,
        "version": version_of(found),
        "given": {name: request.POST.get(name, getattr(found, name)) for name in FIELDS},
        "states": [found.state, *sorted(MOVES[state])],
        "severities": words(Severity),
        "others": [name for name in others[:CHOICES_SHOWN] if name not in names],
        **(wrong or {}),
    }
    return render(request, "incidents/incident.html", context, status=status)
