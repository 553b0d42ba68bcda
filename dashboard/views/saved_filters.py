"""Filters of the overview that a person keeps by name, and what changed since they last looked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from dashboard.views.errors import errors_shown
from recovery_api.domain.errors import BadInput
from recovery_api.domain.saved_filters import filter_query_of, filter_query_parse
from recovery_api.models import Pipeline
from recovery_api.selectors.looking import Changes, changes_since, saved_filters
from recovery_api.services import looking


@require_POST
@errors_shown
def filter_save(request: HttpRequest) -> HttpResponse:
    """Keeps the filters in use under a name, and goes back to them."""
    query = request.POST.get("query", "")
    kept = looking.filter_save(request.user, request.POST.get("name", ""), query, timezone.now())
    return redirect(f"{reverse('overview')}?{kept.query}#filters")


@require_POST
@errors_shown
def filter_delete(request: HttpRequest, filter_id: UUID) -> HttpResponse:
    looking.filter_delete(request.user, filter_id)
    try:
        query = f"?{filter_query_parse(request.POST.get('query', ''))}"
    except BadInput:
        query = ""
    return redirect(f"{reverse('overview')}{query}#filters")


def filters_kept(request: HttpRequest, given: Mapping[str, str]) -> dict[str, Any]:
    """The saved filters as chips, and what would be saved now; "" where nothing is filtered."""
    here = filter_query_of(given)
    chips = [
        {"id": kept.pk, "name": kept.name, "query": kept.query, "is_here": kept.query == here}
        for kept in saved_filters(request.user)
    ]
    return {"chips": chips, "query": here, "is_saved": any(chip["is_here"] for chip in chips)}


def changes_seen(request: HttpRequest, pipeline: Pipeline | None = None) -> Changes | None:
    """What changed since whoever looks looked last, before this visit. None: it is their first one."""
    before = looking.look(request.user, pipeline)
    return changes_since(before, pipeline) if before is not None else None
