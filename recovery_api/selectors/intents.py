"""Reads of intents."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from recovery_api.domain.errors import NotFound
from recovery_api.models import LIVE_STATES, Intent


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
    found = Intent.objects.select_related("pipeline").order_by("-created_at")
    return found.filter(state__in=LIVE_STATES) if is_live else found
