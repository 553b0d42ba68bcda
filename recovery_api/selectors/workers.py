"""Whether any worker is there: what pages and commands say where work waits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recovery_api.models import Worker

HEARD_WITHIN = timedelta(seconds=35)
"""A worker says every ten seconds that it is there; one that missed three times is not counted on."""
START_A_WORKER = "Start one: make worker (celery -A workers.celery worker --queues spark,default)."


@dataclass(frozen=True, slots=True)
class Presence:
    """Which workers are there. `last_seen_at`: when the last one was heard of, None: none in the last day, or ever.

    `queues`: what those that are there take; a stopping worker takes nothing more.
    """

    count: int
    last_seen_at: datetime | None
    queues: frozenset[str]

    @property
    def is_missing(self) -> bool:
        """Whether nobody is there to take any work."""
        return self.count == 0

    def says(self, now: datetime, queue: str | None = None) -> str:
        """What is missing, in a sentence; empty where a worker is there (for `queue`, where one is named)."""
        if self.is_missing:
            if self.last_seen_at is None:
                return "No worker has been heard of."
            return f"No worker is running: the last one was heard of {since_says(now - self.last_seen_at)} ago."
        if queue is not None and queue not in self.queues:
            return f"No worker that is running takes the queue {queue}."
        return ""


def worker_presence(now: datetime) -> Presence:
    """Who is there now. `seen_at` is the control database's time; a clock that jumped counts as silence."""
    return presence_of(
        list(Worker.objects.order_by("-seen_at").values_list("queues", "seen_at", "stopping_at")[:200]), now
    )


def presence_of(rows: Sequence[tuple[list[str], datetime, datetime | None]], now: datetime) -> Presence:
    """Who is there, of rows of queues, seen_at and stopping_at, the last seen first."""
    there = [queues for queues, seen_at, stopping in rows if abs(now - seen_at) <= HEARD_WITHIN and stopping is None]
    return Presence(len(there), rows[0][1] if rows else None, frozenset(_flat(there)))


def presence_once(now: datetime) -> Callable[[], Presence]:
    """`worker_presence`, asked of the database when first wanted, and once: for a page that lists many rows."""
    return functools.cache(lambda: worker_presence(now))


def since_says(passed: timedelta) -> str:
    """A duration in its largest unit.

    >>> since_says(timedelta(seconds=42)), since_says(timedelta(seconds=185)), since_says(timedelta(hours=2))
    ('42 s', '3 min', '2 h')
    """
    seconds = max(0.0, passed.total_seconds())
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.0f} h"


def _flat(lists: Iterable[list[str]]) -> Iterable[str]:
    return (one for many in lists for one in many)
