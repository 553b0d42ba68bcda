"""Everything that was done, by whom, when, at which generation; what was refused, too."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from recovery_api.models import Event


def timeline(request: HttpRequest) -> HttpResponse:
    return render(request, "timeline.html", {"events": Event.objects.order_by("-id")[:50]})


def pipeline_timeline(request: HttpRequest, name: str) -> HttpResponse:
    return timeline(request)
