"""The first screen: is anything owed, doubled, unverifiable, or running?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from recovery_api.selectors.fleet import fleet_status


def overview(request: HttpRequest) -> HttpResponse:
    return render(request, "overview.html", {"statuses": fleet_status(timezone.now())})
