"""Refusals: the first of a person in an hour stands in the timeline, the others are counted beside it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from recovery_api.models import EventKind, RefusalCount
from recovery_api.services.events import event_append


def refusal_record(*, actor: str, says: str, data: Mapping[str, Any], now: datetime) -> None:
    """Counts that `actor` was refused; the first of the hour is an event. Pages and REST count together."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    counted = RefusalCount.objects.filter(actor=actor, hour=hour)
    step = {"count": F("count") + 1, "last_at": now, "last_says": says}
    if counted.update(**step):
        return
    try:
        with transaction.atomic():
            event = event_append(EventKind.ACCESS_DENIED, actor=actor, now=now, says=says, data=data)
            RefusalCount.objects.create(actor=actor, hour=hour, event=event, last_at=now, last_says=says)
    except IntegrityError:  # another request was first
        counted.update(**step)
