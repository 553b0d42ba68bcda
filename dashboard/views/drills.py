"""A sink's drills: asked for, followed while they run, and their history with the evidence."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from dashboard.access import actor
from dashboard.views.errors import error_page
from recovery_api.domain.errors import FencepostError
from recovery_api.models import DrillState, Sink
from recovery_api.selectors.drills import drill_list, passed_at
from recovery_api.selectors.ends import sink_get
from recovery_api.services.drills import drill_request

SHOWN = 5


def drill(request: HttpRequest, name: str) -> HttpResponse:
    """Asks the sink to prove what its recoveries rest on, through a worker, and goes back to where the answer is shown."""
    try:
        drill_request(sink_get(name), actor=actor(request), now=timezone.now())
    except FencepostError as error:
        return error_page(request, error)
    return redirect(f"{reverse('sink', args=[name])}#drills")


def drills(request: HttpRequest, name: str) -> HttpResponse:
    """The region with the newest runs. Asked for again while one is on its way."""
    try:
        sink = sink_get(name)
    except FencepostError as error:
        return error_page(request, error)
    return render(request, "ends/_drills.html", drills_context(sink))


def drills_context(sink: Sink) -> dict[str, Any]:
    """The newest runs, the newest one's results, and when every drill that applies last passed."""
    runs = list(drill_list(sink)[:SHOWN])
    return {
        "sink": sink,
        "drills": runs,
        "drill_is_live": bool(runs) and runs[0].state == DrillState.REQUESTED,
        "drilled": next((run for run in runs if run.state != DrillState.REQUESTED), None),
        "drill_passed_at": passed_at(sink),
    }
