"""Acknowledged omissions of a pipeline: the list, one coordinate, and previews of more that are confirmed as shown."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from dashboard.access import actor
from dashboard.views.errors import errors_shown
from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format, coordinate_parse
from recovery_api.domain.errors import BadInput
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.moments import moment_read
from recovery_api.domain.omissions import Word
from recovery_api.models import LIVE_STATES, AcknowledgedOmission, Intent, IntentAction, OmissionPreview
from recovery_api.selectors.ends import pipeline_get, source_spelling
from recovery_api.selectors.findings import FindingFilter
from recovery_api.selectors.intents import intent_waiting
from recovery_api.selectors.omissions import audit_deciding, omission_list, preview_get
from recovery_api.services.omission_previews import export_preview, omissions_preview, preview_confirm, preview_says
from recovery_api.services.omissions import omission_acknowledge, omission_withdraw, omissions_withdraw

PAGE = 200
FILTERS = ("finding", "cause", "lane", "from", "to")


@require_GET
@errors_shown
def omissions(request: HttpRequest, name: str) -> HttpResponse:
    """The acknowledged omissions of a pipeline, and the forms that acknowledge more."""
    pipeline = pipeline_get(name)
    found = list(omission_list(pipeline)[_offset(request) : _offset(request) + PAGE + 1])
    has_more, spelling = len(found) > PAGE, source_spelling(pipeline.source)
    return render(
        request,
        "omissions/list.html",
        {
            "pipeline": pipeline,
            "audit": audit_deciding(pipeline),
            "rows": [_shown(one, spelling) for one in found[:PAGE]],
            "following": f"?{urlencode({'after': _offset(request) + PAGE})}" if has_more else "",
            "is_later": _offset(request) > 0,
        },
    )


@require_POST
@errors_shown
def acknowledge(request: HttpRequest, name: str) -> HttpResponse:
    """One coordinate, from its event's page or by hand."""
    pipeline = pipeline_get(name)
    omission_acknowledge(
        pipeline,
        request.POST.get("coordinate", "").strip(),
        lane=request.POST.get("lane", "").strip() or SINGLE_LANE,
        **_why(request),
    )
    messages.info(request, "Acknowledged. It stays lost, is listed apart, and is never sent.")
    return redirect("omissions", name)


@require_POST
@errors_shown
def withdraw(request: HttpRequest, name: str) -> HttpResponse:
    """One coordinate, or everything of one act, is owed again."""
    pipeline, by = pipeline_get(name), {"actor": actor(request), "now": timezone.now()}
    if act := request.POST.get("act", ""):
        count = omissions_withdraw(pipeline, act, **by)
        says = f"{count:,} withdrawn: {'it is' if count == 1 else 'they are'} owed again."
    else:
        lane = request.POST.get("lane", "") or SINGLE_LANE
        omission_withdraw(pipeline, request.POST.get("coordinate", ""), lane=lane, **by)
        says = "Withdrawn: it is owed again."
    messages.info(request, says)
    return redirect("omissions", name)


@require_POST
@errors_shown
def preview_make(request: HttpRequest, name: str) -> HttpResponse:
    """What acknowledging the lost findings of a filter would do."""
    pipeline = pipeline_get(name)
    spelling = source_spelling(pipeline.source)
    given = {one: request.POST.get(one, "").strip() for one in FILTERS}
    low, high = (coordinate_parse(given[one], spelling, one) if given[one] else None for one in ("from", "to"))
    if low is not None and high is not None and low > high:
        raise BadInput("from", f"{given['from']} lies above {given['to']}", "Give the lower coordinate first.")
    asked = FindingFilter(given["finding"], given["cause"], given["lane"], low, high)
    audit_id = request.POST.get("audit", "").strip() or None
    made = omissions_preview(pipeline, asked, audit_id=audit_id, actor=actor(request), now=timezone.now())
    return redirect("omission-preview", name, made.pk)


@require_POST
@errors_shown
def export_import(request: HttpRequest, name: str) -> HttpResponse:
    """What acknowledging a dead-letter export would do: a worker looks its events up first."""
    pipeline = pipeline_get(name)
    upload = request.FILES.get("export")
    if upload is None:
        raise BadInput("export", "is missing", "Choose a CSV file with a header line, or JSON lines.")
    limit = settings.FENCEPOST_API_BODY_LIMIT_BYTES
    if (upload.size or 0) > limit:
        remedy = "Import it by command: manage.py omissions import."
        raise BadInput("export", f"is larger than {limit // 2**20} MiB", remedy)
    try:
        text = upload.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("export", f"is not UTF-8: byte {error.start}", "Write it as UTF-8.") from error
    made, _ = export_preview(pipeline, text, actor=actor(request), now=timezone.now())
    return redirect("omission-preview", name, made.pk)


@require_GET
@errors_shown
def preview(request: HttpRequest, name: str, preview_id: UUID) -> HttpResponse:
    """What a preview would acknowledge, and the form that confirms it."""
    pipeline = pipeline_get(name)
    found = preview_get(pipeline, preview_id)
    counts = found.counts or {}
    intent = None
    if found.counts is None:
        by_preview = {"action": IntentAction.OMISSION_LOOK_UP, "arguments": {"preview": str(found.pk)}}
        intent = Intent.objects.filter(pipeline=pipeline, **by_preview).order_by("-created_at").first()
    is_live = intent is not None and intent.state in LIVE_STATES
    if request.htmx:  # the page asks again while a worker is at it
        return HttpResponse(status=204) if is_live else HttpResponse(headers={"HX-Refresh": "true"})
    return render(
        request,
        "omissions/preview.html",
        {
            "pipeline": pipeline,
            "preview": found,
            "says": preview_says(found),
            "owed_count": int(counts.get(Word.OWED, 0)),
            "alone_count": int(counts.get(Word.BY_CONTENT, 0)),
            "counts": [(word.many, counts[word]) for word in Word if word in counts],
            "asked": _asked(found),
            "intent": intent,
            "is_live": is_live,
            "waiting": intent_waiting(intent, timezone.now()) if intent else None,
        },
    )


@require_POST
@errors_shown
def confirm(request: HttpRequest, name: str, preview_id: UUID) -> HttpResponse:
    """Acknowledges what the preview showed, and nothing else."""
    with_content = "with_content" in request.POST
    count = preview_confirm(pipeline_get(name), preview_id, with_content=with_content, **_why(request))
    messages.info(request, f"{count:,} acknowledged. They stay lost, are listed apart, and are never sent.")
    return redirect("omissions", name)


def _why(request: HttpRequest) -> dict[str, Any]:
    """Reason, reference, end, who and when, as the form has them. Raises: BadInput."""
    return {
        "reason": request.POST.get("reason", ""),
        "reference": request.POST.get("reference", ""),
        "until": moment_read(request.POST.get("until"), "until"),
        "actor": actor(request),
        "now": timezone.now(),
    }


def _asked(found: OmissionPreview) -> list[tuple[str, str]]:
    """The filter, a row a member; empty for an export, whose sentence says how it was read."""
    if "lines_read" in found.asked:
        return []
    order = ("finding", "cause", "lane", "from", "to")  # the database keeps none
    named = sorted(found.asked, key=lambda name: order.index(name) if name in order else len(order))
    return [(name, str(found.asked[name])) for name in named] or [("filter", "every lost finding")]


def _shown(one: AcknowledgedOmission, spelling: Spelling) -> dict[str, Any]:
    return {"omission": one, "coordinate": coordinate_format(Coordinate(one.position, one.ordinal), spelling)}


def _offset(request: HttpRequest) -> int:
    """Raises: BadInput."""
    text = request.GET.get("after", "") or "0"
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise BadInput("after", f"{text[:40]!r} is not a row's number", "Follow the page's own link.")
    return int(text)
