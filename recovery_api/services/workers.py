"""Workers say that they are there. Told by the control database's clock, as every sign of life is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from recovery_api.models import Worker

FORGOTTEN_AFTER = timedelta(days=1)


def worker_say_present(name: str, queues: Sequence[str], now: datetime, *, is_stopping: bool = False) -> None:
    """The worker's row, as of `now`."""
    said = {"queues": list(queues), "seen_at": now, "stopping_at": now if is_stopping else None}
    Worker.objects.update_or_create(name=name, defaults=said, create_defaults={**said, "started_at": now})


def worker_say_gone(name: str) -> None:
    """The worker ended by itself: it is not missed."""
    Worker.objects.filter(name=name).delete()


def workers_forget(now: datetime) -> int:
    """Takes away the rows of workers that were killed long ago."""
    return Worker.objects.filter(seen_at__lt=now - FORGOTTEN_AFTER).delete()[0]
