"""The timeline for a reader: newest first, filtered, turned by keyset so that deep pages cost what the first one does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recovery_api.models import Event, EventKind

PAGE = 50


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """`older_than`: the id to ask for next; None: nothing older."""

    events: list[Event]
    older_than: int | None


def event_data(event: Event) -> dict[str, Any]:
    """What an event holds; of a refusal also how often its person was refused in that hour."""
    counted = getattr(event, "refusals", None) if event.kind == EventKind.ACCESS_DENIED else None
    return event.data | ({"refused_count": counted.count} if counted is not None else {})


def timeline_page(
    *, pipeline: str = "", kind: str = "", actor: str = "", before: int | None = None, limit: int = PAGE
) -> TimelinePage:
    """The newest `limit` events below id `before` that match. `pipeline` is a name, retired ones included."""
    found = Event.objects.select_related("pipeline", "refusals").order_by("-id")
    if pipeline:
        found = found.filter(pipeline__name=pipeline)
    if kind:
        found = found.filter(kind=kind)
    if actor:
        found = found.filter(actor=actor)
    if before is not None:
        found = found.filter(id__lt=before)
    events = list(found[: limit + 1])
    return TimelinePage(events[:limit], events[limit - 1].id if len(events) > limit else None)
