"""One pipeline: its status with its ground, and what to do next."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from dashboard.access import actor
from dashboard.views.errors import error_page
from recovery_api.domain.errors import FencepostError
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.services.audits import audit_request
from recovery_api.services.plans import plan_request


def pipeline(request: HttpRequest, name: str) -> HttpResponse:
    try:
        found = pipeline_get(name)
    except FencepostError as error:
        return error_page(request, error)
    return render(request, "pipeline.html", {"pipeline": found, "status": pipeline_status(found, timezone.now())})


def audit(request: HttpRequest, name: str) -> HttpResponse:
    """Asks for an audit and goes to its work."""
    try:
        intent = audit_request(
            pipeline_get(name),
            actor=actor(request),
            now=timezone.now(),
            frontier=request.POST.get("frontier", "").strip() or None,
            is_full=True,
        )
    except FencepostError as error:
        return error_page(request, error)
    return redirect(f"/work/{intent.id}/")


def plan(request: HttpRequest, name: str) -> HttpResponse:
    """Asks for a plan and goes to its page, which fills as it is computed."""
    frontier = request.POST.get("frontier", "").strip() or None
    try:
        planned, _ = plan_request(pipeline_get(name), actor=actor(request), now=timezone.now(), frontier=frontier)
    except FencepostError as error:
        return error_page(request, error)
    return redirect(f"/plans/{planned.id}/")
