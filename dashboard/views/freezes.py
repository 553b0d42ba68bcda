"""The freeze switch, of one pipeline or of everything: what stands, who set it and why, and the two buttons."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.access import actor
from dashboard.views.errors import errors_shown, refused
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.models import Freeze, Pipeline, Recovery, RecoveryState
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.freezes import freeze_of, freezes_standing
from recovery_api.services.freezes import freeze_lift, freeze_set

SHOWN = 20


@require_http_methods(["GET", "HEAD", "POST"])
@errors_shown
def freeze(request: HttpRequest, name: str = "") -> HttpResponse:
    """The page, or the freeze itself. Without a name: of every pipeline."""
    found = pipeline_get(name) if name else None
    if request.method != "POST":
        return _page(request, found)
    try:
        freeze_set(found, request.POST.get("reason", ""), actor=actor(request), now=timezone.now())
    except (BadInput, Refused) as error:
        return _page(request, found, refused(error), 400 if isinstance(error, BadInput) else 409)
    messages.success(request, "Frozen. Audits go on; nothing is sent until somebody lifts it.")
    return redirect("pipeline-freeze", name) if name else redirect("freeze")


@require_POST
@errors_shown
def unfreeze(request: HttpRequest, name: str = "") -> HttpResponse:
    found = pipeline_get(name) if name else None
    try:
        freeze_lift(found, request.POST.get("reason", ""), actor=actor(request), now=timezone.now())
    except (BadInput, Refused) as error:
        return _page(request, found, refused(error), 400 if isinstance(error, BadInput) else 409)
    messages.success(request, "Lifted. What held goes on by itself, and asks the sink first.")
    return redirect("pipeline-freeze", name) if name else redirect("freeze")


def _page(
    request: HttpRequest, pipeline: Pipeline | None, wrong: dict[str, object] | None = None, status: int = 200
) -> HttpResponse:
    running = Recovery.objects.exclude(state=RecoveryState.FINISHED).select_related("pipeline")
    about = Freeze.objects.select_related("pipeline")
    context = {
        "pipeline": pipeline,
        "standing": freezes_standing().filter(pipeline=pipeline).first(),
        "whole": freeze_of(None) if pipeline else None,
        "others": [] if pipeline else list(freezes_standing().filter(pipeline__isnull=False)[:SHOWN]),
        "running": list((running.filter(pipeline=pipeline) if pipeline else running)[:SHOWN]),
        "before": list((about.filter(pipeline=pipeline) if pipeline else about).exclude(lifted_at=None)[:SHOWN]),
        **(wrong or {}),
    }
    return render(request, "freeze.html", context, status=status)
