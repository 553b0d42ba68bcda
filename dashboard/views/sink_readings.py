"""The fence as the sink says now: asked for as a job, shown beside what the control database remembers."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from dashboard.access import actor
from dashboard.views.errors import error_page
from recovery_api.domain.abilities import Ability
from recovery_api.domain.claims import claims_apart
from recovery_api.domain.errors import FencepostError
from recovery_api.domain.kinds import abilities_of
from recovery_api.models import LIVE_STATES, IntentState, Pipeline, Sink
from recovery_api.selectors.ends import sink_get
from recovery_api.selectors.generations import claim_list
from recovery_api.selectors.pairs import pipeline_allows
from recovery_api.selectors.registry import pipeline_of, sink_reading_latest
from recovery_api.services.sink_jobs import sink_read_request


def read(request: HttpRequest, name: str) -> HttpResponse:
    """Asks the sink, through a worker, and goes back to where the answer is shown."""
    try:
        sink = sink_get(name)
        sink_read_request(sink, actor=actor(request), now=timezone.now())
    except FencepostError as error:
        return error_page(request, error)
    pipeline = pipeline_of(sink) if request.POST.get("back") == "pipeline" else None
    page = reverse("pipeline", args=[pipeline.name]) if pipeline else reverse("sink", args=[name])
    return redirect(f"{page}#fence")


def reading(request: HttpRequest, name: str) -> HttpResponse:
    """The region with the newest answer. Asked again while one is on its way."""
    try:
        sink = sink_get(name)
    except FencepostError as error:
        return error_page(request, error)
    return render(request, "ends/_reading.html", reading_context(sink, pipeline_of(sink)))


def reading_context(sink: Sink, pipeline: Pipeline | None) -> dict[str, Any]:
    """What the region shows: the newest reading, whether it is still on its way, and where memory and sink differ."""
    has_fence = Ability.FENCED in abilities_of(sink.kind, sink.options)
    intent = sink_reading_latest(sink) if has_fence else None
    recovery_says = (sink.capability or {}).get("recovery", "")
    if pipeline is not None and pipeline.delivery_id is not None:
        allows = pipeline_allows(pipeline)
        recovery_says = allows.says if allows else ""
    found = intent.result if intent and intent.state == IntentState.DONE else None
    return {
        "sink": sink,
        "has_fence": has_fence,
        "recovery_says": recovery_says,
        "reading": intent,
        "reading_is_live": intent is not None and intent.state in LIVE_STATES,
        "found": found,
        "found_at": parse_datetime(found["read_at"]) if found else None,
        "divergence": divergence(found, pipeline) if found else [],
        "reading_back": "pipeline" if pipeline else "sink",
    }


def divergence(found: dict[str, Any], pipeline: Pipeline | None) -> list[str]:
    """Where what the sink said differs from what was remembered then, each with what it means."""
    said = [
        f"The sink lies behind the memory of it: {reason}. It was restored or replaced." for reason in found["behind"]
    ]
    remembered = found.get("remembered")
    if remembered and not said:
        for word, means in (
            ("counter", "relays or others took generations since; that is normal"),
            ("fence", "a relay started, or another recoverer claimed, since"),
        ):
            if found[word] != remembered[word]:
                said.append(f"Its {word} is {found[word]} and was {remembered[word]} when last seen: {means}.")
    if pipeline is not None:
        remembered = {claim.generation: claim.state for claim in claim_list(pipeline)[:20]}
        states = {int(claim["generation"]): claim["state"] for claim in found["claims"]}
        said += [
            f"Claim {one.generation} is remembered as {one.remembered}; the sink says {one.said}. The sink is right: "
            "settling its recovery brings the memory to it."
            for one in claims_apart(remembered, states)
        ]
    return said
