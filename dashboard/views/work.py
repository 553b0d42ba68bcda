"""Work: what runs and what waits, who holds it, and what to do when nobody comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from dashboard.access import actor, refused, roles
from dashboard.access import refusal as refusal_says
from dashboard.views.errors import errors_shown
from recovery_api.domain.access import permissions_of, withdrawing_needs
from recovery_api.domain.errors import Refused
from recovery_api.models import LIVE_STATES, Intent, IntentAction, IntentState
from recovery_api.selectors.intents import intent_get, intent_list, intent_waiting
from recovery_api.selectors.workers import Presence, presence_once
from recovery_api.services.intents import intent_withdraw

ENDED_SHOWN = 30
LIVE_SHOWN = 200


@require_GET
@errors_shown
def work_list(request: HttpRequest) -> HttpResponse:
    """Live work with who holds it, and the last that ended."""
    now = timezone.now()
    presence = presence_once(now)
    live = [_shown(intent, now, presence) for intent in intent_list(is_live=True).order_by("created_at")[:LIVE_SHOWN]]
    ended = intent_list(is_live=False).exclude(state__in=LIVE_STATES)
    context = {
        "live": live,
        "is_alone": any(row["waiting"] and row["waiting"].is_alone for row in live),
        "ended": [_shown(intent, now, presence) for intent in ended[:ENDED_SHOWN]],
    }
    return render(request, "work/_live.html" if request.htmx else "work/list.html", context)


@require_GET
@errors_shown
def work_show(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """One piece of work. What it brought has a page of its own, and a person who waits here is taken there."""
    intent = intent_get(intent_id)
    shown = _shown(intent, timezone.now())
    if request.htmx:
        if intent.state in LIVE_STATES:
            return render(request, "work/_one.html", shown)
        return HttpResponse(headers={"HX-Redirect": shown["url"] or reverse("work", args=[intent.id])})
    held = roles(request) or frozenset()
    shown["unless"] = "" if shown["needs"] in permissions_of(held) else refusal_says(shown["needs"], held)
    return render(request, "work/one.html", shown)


@require_POST
@errors_shown
def work_cancel(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """Withdraw work that nobody has taken yet."""
    intent = intent_get(intent_id)
    if (needed := withdrawing_needs(intent.action)) not in permissions_of(held := roles(request) or frozenset()):
        return refused(request, "work-cancel", refusal_says(needed, held))
    try:
        intent_withdraw(intent, actor=actor(request), now=timezone.now())
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("work", intent_id)


def _shown(intent: Intent, now: Any, presence: Callable[[], Presence] | None = None) -> dict[str, Any]:
    return {
        "intent": intent,
        "action": IntentAction(intent.action).label,
        "about": intent.pipeline or intent.source or intent.sink or "",
        "waiting": intent_waiting(intent, now, presence),
        "is_live": intent.state in LIVE_STATES,
        "is_cancellable": intent.state == IntentState.QUEUED and not IntentAction(intent.action).is_of_a_recovery,
        "needs": withdrawing_needs(intent.action),
        "has_values": "image_value" in (intent.result or {}),
        "url": _result_url(intent),
    }


def _result_url(intent: Intent) -> str:
    """Where what it is for is shown. Empty: nowhere but here."""
    result = intent.result or {}
    if intent.recovery_id:
        return reverse("recovery", args=[intent.recovery_id])
    if intent.plan_id:
        return reverse("plan", args=[intent.plan_id])
    if "audit" in result:
        return reverse("audit", args=[result["audit"]])
    if "image" in result and intent.pipeline is not None:
        return f"{reverse('pipeline', args=[intent.pipeline.name])}#image"
    if (preview := intent.arguments.get("preview")) and intent.pipeline is not None:
        return reverse("omission-preview", args=[intent.pipeline.name, preview])
    return ""
