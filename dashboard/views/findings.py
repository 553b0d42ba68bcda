"""Findings: groups by cause and range, the listing page by page, and one event at both ends."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format, coordinate_parse
from recovery_api.domain.errors import BadInput
from recovery_api.models import LIVE_STATES, Audit, Finding
from recovery_api.rows import finding_as_row
from recovery_api.selectors.audits import audit_get
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.findings import (
    FindingFilter,
    event_content_get,
    event_content_start,
    event_read_latest,
    finding_at,
    finding_page,
)
from recovery_api.selectors.intents import intent_waiting
from recovery_api.services.event_reads import event_content_downloaded, event_read_request

PAGE = 200
SHOWN_BYTES = 16_384
"""Of a content on a page. The rest comes by download."""
FILTERS = ("finding", "cause", "lane", "from", "to", "after")


@require_GET
def finding_list(request: HttpRequest, audit_id: UUID) -> HttpResponse:
    """Groups first; then the listing, filtered by what the address says and turned by keyset."""
    audit = audit_get(audit_id)
    spelling = source_spelling(audit.pipeline.source)
    asked, after = _filter_read(request, spelling)
    rows = finding_page(audit, asked, after=after, limit=PAGE + 1)
    query = {name: value for name in FILTERS if name != "after" and (value := request.GET.get(name, ""))}
    following = f"?{urlencode({**query, 'after': rows[PAGE - 1].number})}" if len(rows) > PAGE else ""
    return render(
        request,
        "findings/list.html",
        {
            "audit": audit,
            "pipeline": audit.pipeline,
            "groups": _groups(audit),
            "rows": [_row(audit, row, spelling) for row in rows[:PAGE]],
            "query": query,
            "is_first": after < 0,
            "following": following,
            "unlisted_count": max(audit.evidence_rows - audit.listed_count, 0),
        },
    )


@require_GET
def finding_show(request: HttpRequest, audit_id: UUID, lane: str, coordinate: str) -> HttpResponse:
    """One event: what the audit found there, and what both ends say now once somebody asked."""
    audit = audit_get(audit_id)
    spelling = source_spelling(audit.pipeline.source)
    held = coordinate_parse(coordinate, spelling)
    intent = event_read_latest(audit.pipeline, lane, held)
    is_live = intent is not None and intent.state in LIVE_STATES
    context: dict[str, Any] = {
        "audit": audit,
        "pipeline": audit.pipeline,
        "lane": lane,
        "coordinate": coordinate_format(held, spelling),
        "findings": [finding_as_row(audit.pipeline, row) for row in finding_at(audit, lane, held)],
        "intent": intent,
        "is_live": is_live,
        "waiting": intent_waiting(intent, timezone.now()) if intent else None,
    }
    if request.headers.get("HX-Request") and not is_live:
        return HttpResponse(headers={"HX-Refresh": "true"})
    if intent is not None and intent.result and may_read_content(request):
        context |= _content(event_content_start(intent, SHOWN_BYTES))
    template = "findings/_waiting.html" if request.headers.get("HX-Request") else "findings/event.html"
    return render(request, template, context)


@require_POST
def event_read(request: HttpRequest, audit_id: UUID, lane: str, coordinate: str) -> HttpResponse:
    """Ask a worker to read this event at both ends."""
    audit = audit_get(audit_id)
    held = coordinate_parse(coordinate, source_spelling(audit.pipeline.source))
    event_read_request(audit.pipeline, lane, held, actor=request.user.get_username(), now=timezone.now())
    return redirect("finding", audit_id, lane, coordinate)


@require_GET
def event_content(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """The content as the source printed it, to keep. The download is logged before it starts."""
    content = event_content_get(intent_id)
    event_content_downloaded(content, actor=request.user.get_username(), now=timezone.now())
    return HttpResponse(
        bytes(content.body),
        content_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="event-{intent_id}.bin"', "Cache-Control": "no-store"},
    )


def _filter_read(request: HttpRequest, spelling: Spelling) -> tuple[FindingFilter, int]:
    """What the address asks for. Raises: BadInput for a filter that is unknown or cannot be read."""
    for name in request.GET:
        if name not in FILTERS:
            raise BadInput(name, "is no filter of findings", f"Known: {', '.join(FILTERS)}.")
    given = {name: request.GET.get(name, "").strip() for name in FILTERS}
    after = given["after"] or "-1"
    if not after.removeprefix("-").isascii() or not after.removeprefix("-").isdigit() or len(after) > 15:
        raise BadInput("after", f"{after!r} is not a row's number", "Follow the page's own link.")

    def place(name: str) -> Coordinate | None:
        return coordinate_parse(given[name], spelling, name) if given[name] else None

    asked = FindingFilter(given["finding"], given["cause"], given["lane"], place("from"), place("to"))
    return asked, int(after)


def _groups(audit: Audit) -> list[dict[str, Any]]:
    """Each group with the address that lists it, and each of its runs with its own."""
    page = reverse("findings", args=[audit.id])
    shown = []
    for group in audit.groups:
        query = {name: group[name] for name in ("finding", "cause", "lane") if group[name]}
        runs = [
            {**run, "url": f"{page}?{urlencode({**query, 'from': run['first_says'], 'to': run['last_says']})}#listing"}
            for run in group["runs"]
        ]
        shown.append({**group, "url": f"{page}?{urlencode(query)}#listing", "runs": runs})
    return shown


def _row(audit: Audit, row: Finding, spelling: Spelling) -> dict[str, Any]:
    shown = finding_as_row(audit.pipeline, row)
    return {**shown, "url": reverse("finding", args=[audit.id, row.lane, shown["coordinate"]])}


def _content(found: tuple[bytes, int] | None) -> dict[str, Any]:
    if found is None:
        return {"content_is_gone": True}
    start, size = found
    text = start.decode("utf-8", "replace").replace("\x00", "␀")
    return {"content": text, "content_bytes": size, "content_is_cut": size > len(start)}
