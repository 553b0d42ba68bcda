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
    """Takes the intent and does it. Failures of the work itself are recorded in the row by the runner."""
    from workers.runners import intent_run as run

    run(intent_id, taken_by=taken_by(self.request.id))


@shared_task(name="workers.tasks.intents_sweep")
def intents_sweep() -> None:
    """Offers again every intent that waits without a wake-up or whose worker went silent; lapses old approvals.

    Contents that somebody read go when their time is over; drills that are due are asked for.
    """
    from recovery_api.selectors.clock import now_get
    from recovery_api.services.drills import drills_sweep
    from recovery_api.services.event_reads import event_contents_purge
    from recovery_api.services.intents import intents_sweep as sweep
    from recovery_api.services.plans import plans_sweep

    now = now_get()
    sweep(now)
    plans_sweep(now)
    event_contents_purge(now)
    drills_sweep(now)


def taken_by(task_id: str | None) -> str:
    """Who works: host, process and delivery. A redelivery of the same task is another taker."""
    return f"{socket.gethostname()}/{os.getpid()}/{task_id or 'by hand'}"
