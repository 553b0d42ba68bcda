"""Runbooks, shown filled in with a pipeline's own values, and printable."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard.views.errors import errors_shown
from recovery_api.domain.runbooks import runbook_names
from recovery_api.runbooks import runbook_get, section_html, team_html, team_text
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.selectors.runbooks import runbook_values


@require_GET
@errors_shown
def runbook_list(request: HttpRequest) -> HttpResponse:
    books = [runbook_get(name) for name in runbook_names()]
    return render(request, "runbooks/list.html", {"books": books})


@require_GET
@errors_shown
def runbook(request: HttpRequest, book: str, name: str = "") -> HttpResponse:
    """One page; `name`: the pipeline that it is filled in for."""
    found = pipeline_get(name) if name else None
    status = pipeline_status(found, now_get()) if found else None
    values = runbook_values(found, status) if found and status else {}
    parsed, team = runbook_get(book), team_text(book)
    context = {
        "book": parsed,
        "sections": [(heading, section_html(text, values)) for heading, text in parsed.sections.items()],
        "team": team_html(team) if team else "",
        "pipeline": found,
        "status": status,
        "owner": values.get("OWNER", ""),
    }
    return render(request, "runbooks/runbook.html", context)
