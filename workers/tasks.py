"""The tasks. Each loads by id, makes one call and returns nothing: what happened is in the row.

Delivered twice, a task finds the intent taken and does nothing; lost, the sweep offers the intent again.
"""

from __future__ import annotations

import logging
import os
import signal
import socket

from billiard.process import current_process
from celery import Task, shared_task

logger = logging.getLogger(__name__)


@shared_task(bind=True, name="workers.tasks.intent_run")
def intent_run(self: Task, intent_id: str) -> None:
    """Does the most urgent work of the queue that `intent_id` belongs to; that intent itself is only who woke us.

    Failures of the work itself are recorded in the row by the runner.
    """
    from workers.runners import next_run

    end_process = process_end if current_process().name != "MainProcess" else None
    try:
        next_run(intent_id, taken_by(self.request.id), end_process)
    except Exception:  # recorded in the row; Celery would pickle it, and log another error where that cannot be done
        logger.exception("work that was woken for intent %s ended by a defect", intent_id)


def process_end() -> None:
    """Ends this process of the pool as a death by SIGKILL would: the pool starts another, the broker offers its task."""
    os.kill(os.getpid(), signal.SIGKILL)


@shared_task(name="workers.tasks.intents_sweep")
def intents_sweep() -> None:
    """As every worker's main process does by itself (workers.presence). Kept for a beat of an earlier version."""
    from recovery_api.selectors.clock import now_get
    from workers.presence import sweep

    sweep(now_get())


def taken_by(task_id: str | None) -> str:
    """Who works: host, process and delivery. A redelivery of the same task is another taker."""
    return f"{socket.gethostname()}/{os.getpid()}/{task_id or 'by hand'}"
