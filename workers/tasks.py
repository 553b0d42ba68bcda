"""The tasks. Each loads by id, makes one call and returns nothing: what happened is in the row.

Delivered twice, a task finds the intent taken and does nothing; lost, the sweep offers the intent again.
"""

from __future__ import annotations

import logging
import os
import socket

from celery import Task, shared_task

logger = logging.getLogger(__name__)


@shared_task(bind=True, name="workers.tasks.intent_run")
def intent_run(self: Task, intent_id: str) -> None:
    """Does the most urgent work of the queue that `intent_id` belongs to; that intent itself is only who woke us.

    Failures of the work itself are recorded in the row by the runner.
    """
    from workers.runners import next_run

    next_run(intent_id, taken_by=taken_by(self.request.id))


@shared_task(name="workers.tasks.intents_sweep")
def intents_sweep() -> None:
    """As every worker's main process does by itself (workers.presence). Kept for a beat of an earlier version."""
    from recovery_api.selectors.clock import now_get
    from workers.presence import sweep

    sweep(now_get())


def taken_by(task_id: str | None) -> str:
    """Who works: host, process and delivery. A redelivery of the same task is another taker."""
    return f"{socket.gethostname()}/{os.getpid()}/{task_id or 'by hand'}"
