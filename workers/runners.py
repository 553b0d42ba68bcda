"""Running one intent: take it, beat while it runs, do the one thing it asks, record what came of it.

The broker, a person's `--here` and a test call the same function. A task delivered twice runs twice safely: the second
finds the intent taken, or finished, and goes home.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import close_old_connections, connection

from recovery_api.domain.errors import FencepostError, Refused, TransientError
from recovery_api.models import Intent, IntentAction
from recovery_api.models.intents import QUEUES
from recovery_api.selectors.clock import now_get
from recovery_api.services import intents
from workers.drills.running import drill_run
from workers.faults import Point, crash_point
from workers.recovery import auditing, connections, planning, protocol, reading, settling, sink_readings

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0
PROJECT = Path(__file__).resolve().parent.parent


class Report:
    """Says in the intent's row how far the work is. Raises Refused once the intent belongs to somebody else."""

    def __init__(self, intent: Intent) -> None:
        self.intent = intent
        self._began = time.monotonic()
        self._step = ""
        self.is_lost = threading.Event()

    def __call__(self, step: str, done: int | None = None, total: int | None = None, **more: Any) -> None:
        if step != self._step:
            self._step, self._began = step, time.monotonic()
        passed = time.monotonic() - self._began
        rate = done / passed if done and passed > 0.001 else None
        row = {"step": step, "done": done, "total": total, "rate_per_second": rate and round(rate, 1), **more}
        if not intents.intent_progress(self.intent, row, now_get()):
            self.is_lost.set()
        self.check()

    def check(self) -> None:
        if self.is_lost.is_set():
            raise Refused(
                str(self.intent),
                "it went without a heartbeat and was offered to another worker",
                "Nothing more is written here; the successor settles from the sink.",
            )


def intent_run(intent_id: str, taken_by: str) -> bool:
    """Whether this call took and ended the intent. False: another has it, or it is over."""
    close_old_connections()
    intent = intents.intent_take(intent_id, taken_by, now_get())
    return intent is not None and _taken_run(intent)


def next_run(woken_for: str, taken_by: str) -> bool:
    """Whether this call took and ended the most urgent intent of the queue that woke it. False: nothing of it is due."""
    close_old_connections()
    action = Intent.objects.values_list("action", flat=True).filter(id=woken_for).first()
    if action is None:
        return False
    intent = intents.intent_take_next(QUEUES[IntentAction(action)], taken_by, now_get())
    return intent is not None and _taken_run(intent)


def _taken_run(intent: Intent) -> bool:
    crash_point(Point.INTENT_TAKEN)
    report = Report(intent)
    with _heart(report):
        try:
            result = _actions()[intent.action](intent, report)
        except TransientError as error:
            logger.info("intent %s waits: %s", intent.id, error)
            _unless_lost(intents.intent_release, intent, error.as_row())
            return True
        except FencepostError as error:
            if report.is_lost.is_set():
                logger.warning("intent %s was taken over: %s", intent.id, error)
                return False
            _unless_lost(intents.intent_fail, intent, error.as_row())
            return True
        except Exception as error:  # the outermost edge of a task: recorded, then raised
            row = FencepostError(_unforeseen(error)).as_row() | {"code": "internal"}
            _unless_lost(intents.intent_fail, intent, row)
            raise
        if result is not None:
            _unless_lost(intents.intent_finish, intent, result)
    return True


def _unforeseen(error: Exception) -> str:
    """What is kept of an error that nobody mapped: its kind and our line. Its text may quote what an end holds."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(PROJECT))]
    where = f" at {Path(ours[-1].filename).relative_to(PROJECT)}:{ours[-1].lineno}" if ours else ""
    return f"An error that was not foreseen ({type(error).__name__}{where}). The worker's log has it whole."


def _actions() -> dict[str, Callable[[Intent, Report], dict[str, Any] | None]]:
    """One function an action. None as its result: it ended its intent in the transaction of what it recorded."""
    return {
        IntentAction.CONNECTION_TEST: connections.end_test,
        IntentAction.AUDIT: auditing.audit_run,
        IntentAction.PLAN: planning.plan_run,
        IntentAction.RECOVER: protocol.recovery_run,
        IntentAction.SETTLE: settling.settle_run,
        IntentAction.EVENT_READ: reading.event_read,
        IntentAction.SINK_READ: sink_readings.sink_read,
        IntentAction.SINK_INSTALL: sink_readings.sink_install,
        IntentAction.DRILL: drill_run,
    }


def _unless_lost(end: Callable[..., Any], intent: Intent, outcome: dict[str, Any]) -> None:
    try:
        end(intent, outcome, now_get())
    except Refused as lost:
        logger.warning("%s", lost)


class _heart:
    """Beats in a thread of its own, with its own database connection, until the work ends."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heart-{report.intent.id}", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        try:
            while not self._stop.wait(HEARTBEAT_SECONDS):
                try:
                    if not intents.intent_heartbeat(self._report.intent, now_get()):
                        self._report.is_lost.set()
                        return
                except Exception as error:  # a beat that fails is a beat missed: the sweep's business
                    logger.warning("no heartbeat for %s: %s", self._report.intent.id, error)
                    connection.close()
        finally:
            connection.close()
