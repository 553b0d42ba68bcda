"""Recoveries: followed while they run, steered at their safe points, settled where somebody died."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from dashboard.access import actor
from dashboard.views.errors import errors_shown, said
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.frontiers import frontier_format
from recovery_api.domain.headroom.evidence import expired_says, word_read
from recovery_api.models import Recovery, RecoveryOutcome, RecoveryState, Wanted
from recovery_api.rows import recovery_as_row
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.intents import intent_waiting
from recovery_api.selectors.recoveries import (
    plan_strategy,
    recovery_attested,
    recovery_get,
    recovery_intent,
    recovery_steering,
    recovery_steps,
    recovery_verification,
    timeline,
)
from recovery_api.services import recoveries

NEXT = {
    RecoveryOutcome.EXACTLY_ONCE_GIVEN: "Audit again later: nothing can prove what was attested.",
    RecoveryOutcome.COMPLETE_HAND_OVER_UNVERIFIED: "Before the relay starts, look where it will begin.",
    RecoveryOutcome.INCOMPLETE: "Plan again: the next plan carries what is still lost.",
    RecoveryOutcome.INCOMPLETE_ALTERED: "Look at the altered findings in its audit, and decide for each coordinate.",
    RecoveryOutcome.HAZARD: "Look at the hazards in its audit: a recovery takes none away.",
    RecoveryOutcome.FENCED: "Audit again, then plan: whoever passed it may have delivered what was owed.",
    RecoveryOutcome.REFUSED: "Plan again, and have that approved.",
    RecoveryOutcome.STOPPED: "Plan again when it may go on.",
    RecoveryOutcome.UNKNOWN: "Settle it: nothing may be concluded until the sink has answered.",
}
"""What to do next, by outcome."""
RELAY_NEXT = (
    RecoveryOutcome.EXACTLY_ONCE,
    RecoveryOutcome.EXACTLY_ONCE_GIVEN,
    RecoveryOutcome.COMPLETE_WITH_ACKNOWLEDGED,
)
"""The outcomes after which the relay goes on, as the strategy says."""
EVENTS_SHOWN = 200


@require_GET
@errors_shown
def recovery_show(request: HttpRequest, recovery_id: UUID) -> HttpResponse:
    """The page, or what of it moves. Where its controls change, the page that polls is told to load itself again."""
    context = _context(recovery_get(recovery_id))
    if request.htmx and request.GET.get("phase") != context["phase"]:
        return HttpResponse(headers={"HX-Refresh": "true"})
    return render(request, "recoveries/_live.html" if request.htmx else "recoveries/recovery.html", context)


@require_POST
@errors_shown
def recovery_want(request: HttpRequest, recovery_id: UUID) -> HttpResponse:
    """Ask it to run, pause or stop; it obeys at its next safe point."""
    try:
        recoveries.recovery_want(
            recovery_get(recovery_id),
            request.POST.get("wanted", ""),
            actor=actor(request),
            now=timezone.now(),
            reason=request.POST.get("reason", ""),
        )
    except (Refused, BadInput) as refusal:
        messages.error(request, f"Nothing was asked of it. {said(refusal)}")
    return redirect("recovery", recovery_id)


@require_POST
@errors_shown
def recovery_settle(request: HttpRequest, recovery_id: UUID) -> HttpResponse:
    """Have a worker ask the sink, by locking the claim, what became of it."""
    try:
        recoveries.recovery_settle_request(recovery_get(recovery_id), actor=actor(request), now=timezone.now())
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("recovery", recovery_id)


def next_says(recovery: Recovery) -> str:
    """What a person does next, now that the recovery has this outcome. Empty while it has none."""
    relay = plan_strategy(recovery.plan).relay_next if recovery.outcome in RELAY_NEXT else ""
    return f"{relay} {NEXT.get(recovery.outcome or '', '')}".strip()


def _context(recovery: Recovery) -> dict[str, Any]:
    now = timezone.now()
    intent = recovery_intent(recovery)
    verification = recovery_verification(recovery)
    is_finished = recovery.state == RecoveryState.FINISHED
    waiting = intent_waiting(intent, now) if intent else None
    is_orphan = not is_finished and intent is None
    told = now_get()
    row = recovery_as_row(recovery, told)
    until = recovery.certificate_evidence_until
    steered = recovery_steering(recovery)
    return {
        "recovery": recovery,
        "row": row,
        "word": word_read(recovery.outcome or "", until, told),
        "expired_says": expired_says(until, recovery.says) if until else "",
        "attested": recovery_attested(recovery),
        "has_claim": RecoveryState.CLAIMING in plan_strategy(recovery.plan).moves,
        "phase": "-".join(
            [
                "finished" if is_finished else recovery.wanted,
                *(["held"] if steered.is_paused else []),
                *(["troubled"] if recovery.problem else []),
                *(["alone"] if is_orphan else []),
            ]
        ),
        "pipeline": recovery.pipeline,
        "plan": recovery.plan,
        "strategy": plan_strategy(recovery.plan),
        "steps": recovery_steps(recovery, verification),
        "intent": intent,
        "waiting": waiting,
        "verification": verification,
        "is_finished": is_finished,
        "is_orphan": is_orphan,
        "may_settle": is_orphan or recovery.outcome == RecoveryOutcome.UNKNOWN,
        "next_says": next_says(recovery),
        "start_says": frontier_format(recovery.start, source_spelling(recovery.pipeline.source))
        if recovery.start
        else "",
        "steered": steered,
        "is_pause_asked": recovery.wanted == Wanted.PAUSE and not is_finished,
        "is_stopping": recovery.wanted == Wanted.STOP and not is_finished,
        "poll_seconds": 0 if is_finished else 1 if intent and intent.progress else 2,
        "events": list(timeline(recovery=recovery).reverse()[:EVENTS_SHOWN]),
    }
