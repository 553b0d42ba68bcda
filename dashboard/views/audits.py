"""Audits: asked for, and shown with the ground they stand on."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from recovery_api.selectors.audits import audit_get
from recovery_api.selectors.ends import pipeline_get
from recovery_api.services import audits


@require_POST
def audit_request(request: HttpRequest) -> HttpResponse:
    """Ask for a verdict of the pipeline named in the form, at its safe frontier or at the one given."""
    intent = audits.audit_request(
        pipeline_get(request.POST.get("pipeline", "")),
        actor=request.user.get_username(),
        now=timezone.now(),
        frontier=request.POST.get("frontier", "").strip() or None,
        is_full=True,
    )
    return redirect("work", intent.id)


@require_GET
def audit_show(request: HttpRequest, audit_id: UUID) -> HttpResponse:
    audit = audit_get(audit_id)
    return render(
        request,
        "audits/audit.html",
        {
            "audit": audit,
            "pipeline": audit.pipeline,
            "lanes": sorted(audit.lanes.items()),
            "groups": audit.groups,
            "unlisted_count": max(audit.evidence_rows - audit.listed_count, 0),
        },
    )
