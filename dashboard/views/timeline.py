"""The timeline pages: what was done or refused, by whom, when and at which generation, and what happened to alerts."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.views.errors import error_page
from dashboard.views.filters import filters_read, query_of
from recovery_api.domain.errors import FencepostError, NotFound
from recovery_api.domain.events import REFUSALS
from recovery_api.domain.timelines import AlertKind, Place, place_parse
from recovery_api.domain.words import words
from recovery_api.models import EventKind, Pipeline
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.registry import retired_get
from recovery_api.selectors.timelines import timeline_page

KINDS = [*words(EventKind), *words(AlertKind)]


def timeline(request: HttpRequest) -> HttpResponse:
    """All of it, filtered by pipeline, kind and person in the address."""
    return _show(request, {"pipeline": (), "kind": KINDS, "actor": (), "before": ()}, {})


def pipeline_timeline(request: HttpRequest, name: str) -> HttpResponse:
    """One pipeline's; a retired one's too."""
    found: Pipeline | None
    try:
        found = pipeline_get(name)
    except NotFound as error:
        found = retired_get(Pipeline, name)
        if found is None:
            return error_page(request, error)
    return _show(request, {"kind": KINDS, "actor": (), "before": ()}, {"pipeline": found})


def _show(request: HttpRequest, known: dict[str, Any], about: dict[str, Any]) -> HttpResponse:
    try:
        given = filters_read(request, known)
        before = _before(given)
    except FencepostError as error:
        return error_page(request, error, back=request.path)
    of_one = about.get("pipeline")
    page = timeline_page(
        pipeline=of_one.name if of_one else given.get("pipeline", ""),
        kind=given.get("kind", ""),
        actor=given.get("actor", ""),
        before=before,
    )
    context = {
        **about,
        "given": given,
        "events": [(line, line.kind in REFUSALS) for line in page.lines],
        "older_than": page.older_than,
        "query": query_of(given, "before"),
        "kinds": KINDS,
        "has_filters": bool(set(given) - {"before"}),
    }
    return render(request, "timeline.html", context)


def _before(given: dict[str, str]) -> Place | None:
    text = given.get("before")
    return None if text is None else place_parse(text, "filter.before")
