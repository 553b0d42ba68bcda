"""Recoveries: followed while they run, steered at their safe points, settled where somebody died."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from recovery_api.domain.errors import BadInput, Refused
from recovery_api.models import Recovery, RecoveryOutcome, RecoveryState, Wanted
from recovery_api.rows import recovery_as_row
from recovery_api.selectors.intents import intent_waiting
from recovery_api.selectors.recoveries import (
    recovery_get,
    recovery_intent,
    recovery_steps,
    recovery_verification,
    timeline,
)
from recovery_api.services import recoveries

SUCCESSES = (RecoveryOutcome.EXACTLY_ONCE, RecoveryOutcome.COMPLETE_WITH_ACKNOWLEDGED)
EVENTS_SHOWN = 200


@require_GET
def recovery_show(request: HttpRequest, recovery_id: UUID) -> HttpResponse:
    template = "recoveries/_live.html" if request.headers.get("HX-Request") else "recoveries/recovery.html"
    return render(request, template, _context(recovery_get(recovery_id)))


@require_POST
def recovery_want(request: HttpRequest, recovery_id: UUID) -> HttpResponse:
    """Ask it to run, pause or stop; it obeys at its next safe point."""
    try:
        recoveries.recovery_want(
            recovery_get(recovery_id),
            request.POST.get("wanted", ""),
            actor=request.user.get_username(),
            now=timezone.now(),
            reason=request.POST.get("reason", ""),
        )
    except (Refused, BadInput) as refusal:
        messages.error(request, str(refusal))
    return redirect("recovery", recovery_id)


@require_POST
def recovery_settle(request: HttpRequest, recovery_id: UUID) -> HttpResponse:
    """Have a worker ask the sink, by locking the claim, what became of it."""
    try:
        recoveries.recovery_settle_request(
            recovery_get(recovery_id), actor=request.user.get_username(), now=timezone.now()
        )
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("recovery", recovery_id)


def _context(recovery: Recovery) -> dict[str, Any]:
    now = timezone.now()
    intent = recovery_intent(recovery)
    verification = recovery_verification(recovery)
    is_finished = recovery.state == RecoveryState.FINISHED
    waiting = intent_waiting(intent, now) if intent else None
    return {
        "recovery": recovery,
        "row": recovery_as_row(recovery),
        "pipeline": recovery.pipeline,
        "plan": recovery.plan,
        "steps": recovery_steps(recovery, verification),
        "intent": intent,
        "waiting": waiting,
        "verification": verification,
        "is_finished": is_finished,
        "is_success": recovery.outcome in SUCCESSES,
        "is_orphan": not is_finished and intent is None,
        "may_settle": (not is_finished and intent is None) or recovery.outcome == RecoveryOutcome.UNKNOWN,
        "is_paused": recovery.wanted == Wanted.PAUSE and not is_finished,
        "is_stopping": recovery.wanted == Wanted.STOP and not is_finished,
        "poll_seconds": 0 if is_finished else 1 if intent and intent.progress else 2,
        "events": list(timeline(recovery=recovery)[:EVENTS_SHOWN]),
    }
