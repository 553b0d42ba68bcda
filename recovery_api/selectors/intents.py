"""Reads of intents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from recovery_api.domain.actors import by, process_says
from recovery_api.domain.errors import Frozen, NotFound
from recovery_api.models import LIVE_STATES, Intent, IntentAction, IntentState
from recovery_api.selectors.workers import START_A_WORKER, Presence, presence_once, since_says

NOBODY_AFTER_SECONDS = 10.0
"""Queued for so long, work is not merely waiting its turn: a person should look whether there is a worker."""


def intent_get(intent_id: UUID | str) -> Intent:
    """Raises: NotFound."""
    try:
        found = (
            Intent.objects.select_related("pipeline__source", "pipeline__sink", "source", "sink", "plan", "recovery")
            .filter(id=intent_id)
            .first()
        )
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(f"Intent {intent_id}", "the control database", "")
    return found


def intent_list(*, is_live: bool) -> QuerySet[Intent]:
    """Newest first; with `is_live` only those queued or taken."""
    found = Intent.objects.select_related("pipeline", "source", "sink").order_by("-created_at")
    return found.filter(state__in=LIVE_STATES) if is_live else found


@dataclass(frozen=True, slots=True)
class Waiting:
    """How a live intent stands with its workers. `is_alone`: nobody comes, or whoever came has fallen silent."""

    says: str
    remedy: str
    is_alone: bool


def intent_waiting(intent: Intent, now: datetime, presence: Callable[[], Presence] | None = None) -> Waiting | None:
    """What to say of a live intent while it gives no answer. None: it is over.

    `presence`: who is there, asked once where the caller lists many (`presence_once`).
    """
    who = presence or presence_once(now)
    if intent.state == IntentState.QUEUED and (intent.error or {}).get("code") == Frozen.code:
        return Waiting(intent.error["text"], "", False)
    if intent.state == IntentState.QUEUED:
        since = max(intent.created_at, intent.not_before or intent.created_at)
        waited = now - since
        problem = f" The last attempt ended with: {intent.error['text']}" if intent.error else ""
        if intent.not_before is not None and intent.not_before > now:
            return Waiting(f"It is tried again shortly, attempt {intent.attempts + 1}.{problem}", "", False)
        missing = who().says(now, IntentAction(intent.action).queue)
        if waited.total_seconds() < NOBODY_AFTER_SECONDS:
            if missing:
                return Waiting(f"Queued; no worker has taken it yet. {missing}", START_A_WORKER, False)
            return Waiting("Queued; a worker takes it in a moment.", "", False)
        says = f"Queued for {since_says(waited)}; no worker has taken it. Nothing is lost.{problem}"
        if missing:
            return Waiting(f"{says} {missing}", START_A_WORKER, True)
        return Waiting(says, "The workers are busy with other work; start another: make worker.", True)
    if intent.state == IntentState.TAKEN:
        silent = now - (intent.heartbeat_at or intent.created_at)
        if silent.total_seconds() > 2 * NOBODY_AFTER_SECONDS:
            who_has_it = process_says(intent.taken_by) or f"worker {intent.taken_by}"
            says = f"Its {who_has_it.removeprefix('a ')} has been silent for {since_says(silent)}."
            if missing := who().says(now):
                return Waiting(f"{says} {missing} Nobody goes on with it until one is there.", START_A_WORKER, True)
            return Waiting(says, "After 30 s it is offered to another worker; nothing is lost.", True)
        return Waiting(f"Taken {by(intent.taken_by)}, attempt {intent.attempts}.", "", False)
    return None
