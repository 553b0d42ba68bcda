"""The timeline for a reader: newest first, filtered, turned by keyset so that deep pages cost what the first one does."""

from __future__ import annotations

from dataclasses import dataclass

from recovery_api.models import Event

PAGE = 50


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """`older_than`: the id to ask for next; None: nothing older."""

    events: list[Event]
    older_than: int | None


def timeline_page(
    *, pipeline: str = "", kind: str = "", actor: str = "", before: int | None = None, limit: int = PAGE
) -> TimelinePage:
    """The newest `limit` events below id `before` that match. `pipeline` is a name, retired ones included."""
    found = Event.objects.select_related("pipeline").order_by("-id")
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
