"""One event: what an audit or a plan found at its coordinate, and what both ends say now, once somebody asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from dashboard.access import actor, may
from dashboard.views.errors import errors_shown
from recovery_api.domain.coordinates import Coordinate, coordinate_format, coordinate_parse
from recovery_api.domain.errors import BadInput
from recovery_api.domain.findings import FindingWord
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.models import LIVE_STATES, Audit, Plan
from recovery_api.rows import finding_as_row
from recovery_api.selectors.audits import audit_get
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.findings import (
    event_content_start,
    event_contents_asked,
    event_read_latest,
    event_sink_contents,
    finding_at,
    source_content_get,
)
from recovery_api.selectors.findings_named import finding_notes, findings_shown
from recovery_api.selectors.intents import intent_waiting
from recovery_api.selectors.plans import plan_get
from recovery_api.services.event_reads import event_content_downloaded, event_content_look, event_read_request
from recovery_api.services.findings_left import finding_leave as left_as_it_is

SHOWN_BYTES = 16_384
"""Of a content on a page. The rest comes by download."""


@require_GET
@errors_shown
def event_show(request: HttpRequest) -> HttpResponse:
    """The findings at one coordinate, and, where it was read, the event at both ends."""
    of, lane, held = _place_read(request.GET)
    pipeline = of.pipeline
    spelling = source_spelling(pipeline.source)
    intent = event_read_latest(pipeline, lane, held)
    is_live = intent is not None and intent.state in LIVE_STATES
    if request.htmx and not is_live:
        return HttpResponse(headers={"HX-Refresh": "true"})
    found = finding_at(of, lane, held)
    is_lost = any(row.finding == FindingWord.LOST and not row.is_acknowledged for row in found)
    context: dict[str, Any] = {
        "is_lost": is_lost and pipeline.retired_at is None,
        "acknowledge_url": reverse("omission-acknowledge", args=[pipeline.name]),
        "audit": of if isinstance(of, Audit) else None,
        "plan": of if isinstance(of, Plan) else None,
        "pipeline": pipeline,
        "lane": lane,
        "coordinate": coordinate_format(held, spelling),
        "findings": [finding_as_row(spelling, one) for one in findings_shown(pipeline, found)],
        "left": finding_notes(pipeline, lane, held),
        "intent": intent,
        "is_live": is_live,
        "waiting": intent_waiting(intent, timezone.now()) if intent else None,
    }
    if intent is not None and intent.result and may(request, "event-read", "POST"):
        context["is_asked"] = event_contents_asked(intent, actor(request))
        if context["is_asked"]:
            context |= _content(event_content_start(intent, SHOWN_BYTES)) | _sink_contents(event_sink_contents(intent))
    return render(request, "findings/_reading.html" if request.htmx else "findings/event.html", context)


@require_POST
@errors_shown
def event_read(request: HttpRequest) -> HttpResponse:
    """Ask a worker to read this event at both ends."""
    of, lane, held = _place_read(request.POST)
    event_read_request(of.pipeline, lane, held, actor=actor(request), now=timezone.now())
    return redirect(_back(of, lane, held) + "#now")


@require_POST
@errors_shown
def event_look(request: HttpRequest) -> HttpResponse:
    """Show a content that was read before. That this person looks at it is recorded in the timeline before it is shown."""
    of, lane, held = _place_read(request.POST)
    if (intent := event_read_latest(of.pipeline, lane, held)) is None:
        raise BadInput("at", "was not read", "Read the event at both ends.")
    event_content_look(intent, actor=actor(request), now=timezone.now())
    return redirect(_back(of, lane, held) + "#now")


@require_POST
@errors_shown
def finding_leave(request: HttpRequest) -> HttpResponse:
    """Leave what was found here as it is, with a reason."""
    of, lane, held = _place_read(request.POST)
    coordinate = coordinate_format(held, source_spelling(of.pipeline.source))
    given = {"reason": request.POST.get("reason", ""), "actor": actor(request), "now": timezone.now()}
    left_as_it_is(of.pipeline, coordinate, lane=lane, **given)
    messages.info(request, "Left as it is, with your reason. It changes no verdict, and what is owed stays owed.")
    return redirect(_back(of, lane, held) + "#leave")


@require_GET
@errors_shown
def event_content(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """The content as the source printed it, to keep. The download is logged before it starts."""
    content = source_content_get(intent_id)
    event_content_downloaded(content, actor=actor(request), now=timezone.now())
    return HttpResponse(
        bytes(content.body),
        content_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="event-{intent_id}.bin"', "Cache-Control": "no-store"},
    )


def event_url(of: Mapping[str, str], lane: str, coordinate: str) -> str:
    """The address of one event. `of`: the audit or the plan it was found in. A query, for a lane may hold a slash."""
    return f"{reverse('finding')}?{urlencode({**of, 'lane': lane, 'at': coordinate})}"


def _back(of: Audit | Plan, lane: str, held: Coordinate) -> str:
    kind = "audit" if isinstance(of, Audit) else "plan"
    return event_url({kind: str(of.id)}, lane, coordinate_format(held, source_spelling(of.pipeline.source)))


def _place_read(given: Mapping[str, str]) -> tuple[Audit | Plan, str, Coordinate]:
    """Audit or plan, lane and coordinate, as address or form have them. Raises: NotFound, BadInput, BadCoordinate."""
    if audit_id := given.get("audit"):
        of: Audit | Plan = audit_get(audit_id)
    elif plan_id := given.get("plan"):
        of = plan_get(plan_id)
    else:
        raise BadInput("audit", "is missing", "Follow a link from an audit's findings or from a plan.")
    spelling = source_spelling(of.pipeline.source)
    return of, given.get("lane") or SINGLE_LANE, coordinate_parse(given.get("at", ""), spelling, "at")


def _content(found: tuple[bytes, int] | None) -> dict[str, Any]:
    if found is None:
        return {"content_is_gone": True}
    start, size = found
    text = start.decode("utf-8", "replace").replace("\x00", "␀")
    return {"content": text, "content_bytes": size, "content_is_cut": size > len(start)}


def _sink_contents(found: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Each content cut to what a page shows. None: it brought none, or they were purged."""
    if found is None:
        return {"sink_contents": [], "sink_is_gone": True}
    return {"sink_contents": [_cut(row) for row in found]}


def _cut(row: dict[str, Any]) -> dict[str, Any]:
    text = row["content"]
    is_cut = row["is_cut"] or (text is not None and len(text) > SHOWN_BYTES)
    return {**row, "content": None if text is None else text[:SHOWN_BYTES], "is_cut": is_cut}
