"""Waking a worker. A courtesy, never a duty: the row is the obligation, and the sweep finds what was not delivered.

One wake-up is worth one piece of work of its queue: who is woken takes the most urgent row, not the one it was woken for.
So the broker needs as many messages as rows are due, and the sweep tops them up to that, never beyond.
"""

from __future__ import annotations

import functools
import logging

from celery import Celery
from django.conf import settings
from django.db import transaction

from recovery_api.models import Intent, IntentAction

logger = logging.getLogger(__name__)

TASK_NAME = "workers.tasks.intent_run"
TIMEOUT_SECONDS = 1.0


def intent_wake_after_commit(intent: Intent) -> None:
    """Wakes a worker for `intent` once the surrounding transaction has committed."""
    transaction.on_commit(functools.partial(intent_wake, str(intent.id), intent.action))


def intent_wake(intent_id: str, action: str) -> bool:
    """Whether the broker took the message. False costs at most about a second and is only logged."""
    if not settings.REDIS_URL:
        return False
    try:
        _producer(settings.REDIS_URL).send_task(
            TASK_NAME, args=[intent_id], queue=IntentAction(action).queue, retry=False, ignore_result=True
        )
    except Exception as error:  # the outermost edge of a courtesy: recorded, and the sweep wakes again
        logger.warning("no worker woken for intent %s (%s); the sweep will", intent_id, type(error).__name__)
        return False
    return True


def wakeups_waiting(queue: str) -> int | None:
    """How many wake-ups lie at the broker for `queue`. None: the broker does not answer."""
    if not settings.REDIS_URL:
        return None
    try:
        with _producer(settings.REDIS_URL).connection_for_write() as connection, connection.channel() as channel:
            return int(channel._size(queue))  # as its own queue_declare counts, which refuses an empty queue
    except Exception as error:  # the outermost edge of a courtesy, as in `intent_wake`
        logger.warning("the broker does not say how many wake-ups wait (%s)", type(error).__name__)
        return None


@functools.lru_cache(maxsize=4)
def _producer(url: str) -> Celery:
    app = Celery("fencepost.wakeups", broker=url, set_as_current=False)
    app.conf.update(
        broker_connection_timeout=TIMEOUT_SECONDS,
        broker_connection_retry=False,
        broker_transport_options={
            "socket_timeout": TIMEOUT_SECONDS,
            "socket_connect_timeout": TIMEOUT_SECONDS,
            "retry_on_timeout": False,
            "max_retries": 0,
        },
        task_ignore_result=True,
        task_serializer="json",
    )
    return app
