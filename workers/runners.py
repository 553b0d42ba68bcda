"""Running one intent: take it, beat while it moves, do the one thing it asks, record what came of it.

The broker, a person's `--here` and a test call the same function. A task delivered twice runs twice safely: the second
finds the intent taken, or finished, and goes home.

The law: whatever ends an intent leaves no claim open unsaid. A recovery that ends here without its outcome is given up at
the sink first; where the sink cannot be asked, the recovery stays *to be settled*, and the sweep has that tried again.
"""

from __future__ import annotations

import logging
import re
import signal
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from django.db import close_old_connections, connection

from recovery_api.domain.errors import FencepostError, Frozen, Refused, TransientError
from recovery_api.models import Intent, IntentAction
from recovery_api.selectors.clock import now_get
from recovery_api.services import intents
from workers.drills.running import drill_run
from workers.faults import Point, crash_point
from workers.heart import Heart, Report, WorkStopped, intent_give_back
from workers.passing import passing_error
from workers.recovery import (
    archive_importing,
    auditing,
    connections,
    dead_letters,
    giving_up,
    image_values,
    imaging,
    planning,
    reading,
    settling,
    sink_readings,
    strategies,
)

logger = logging.getLogger(__name__)

PROJECT = Path(__file__).resolve().parent.parent
RAISED = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Warning|Interrupt|Exit)\w*)(?:: .*)?$", re.MULTILINE)
"""The kind in the last line of a Python traceback."""


def intent_run(intent_id: str, taken_by: str) -> bool:
    """Whether this call took and ended the intent. False: another has it, or it is over."""
    close_old_connections()
    intent = intents.intent_take(intent_id, taken_by, now_get())
    return intent is not None and _taken_run(intent)


def here_run(intent_id: str, taken_by: str) -> bool:
    """As `intent_run`, in a command of a person: SIGTERM gives the intent back and ends the process, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        return intent_run(intent_id, taken_by)
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        return intent_run(intent_id, taken_by)
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


def next_run(woken_for: str, taken_by: str, end_process: Callable[[], None] | None = None) -> bool:
    """Whether this call took and ended the most urgent intent of the queue that woke it. False: nothing of it is due.

    `end_process`: how the process is ended where work that stands still does not leave it.
    """
    close_old_connections()
    action = Intent.objects.values_list("action", flat=True).filter(id=woken_for).first()
    if action is None:
        return False
    intent = intents.intent_take_next(IntentAction(action).queue, taken_by, now_get())
    return intent is not None and _taken_run(intent, end_process)


def _taken_run(intent: Intent, end_process: Callable[[], None] | None = None) -> bool:
    crash_point(Point.INTENT_TAKEN)
    report = Report(intent)
    try:
        with Heart(report, end_process).beating():
            return _work(intent, report)
    except WorkStopped:
        if not report.is_lost.is_set():
            intent_give_back(intent, None)
        return False
    except (KeyboardInterrupt, SystemExit):
        connection.close()  # it may have been cut off in the middle of a statement
        intent_give_back(intent, None)
        raise


def _work(intent: Intent, report: Report) -> bool:
    try:
        result = _actions()[intent.action](intent, report)
    except FencepostError as error:
        return _ended_by(error, intent, report)
    except Exception as error:  # the outermost edge of a task: recorded, then raised
        connection.close_if_unusable_or_obsolete()
        if (passing := passing_error(error)) is not None:
            return _ended_by(passing, intent, report)
        defect = FencepostError(defect_says(error))
        if not _given_up(intent, report, defect):
            _unless_lost(intents.intent_fail, intent, defect.as_row() | {"code": "internal"})
        raise
    if result is not None:
        _unless_lost(intents.intent_finish, intent, result)
    return True


def defect_says(error: BaseException) -> str:
    """What is kept of an error that nobody mapped: its kind and our line. Its text may quote what an end holds.

    Of an error that crossed Spark as text, the kind is what its task raised, not that of the report around it.

    >>> defect_says(ValueError("boom"))
    'An error that was not foreseen (ValueError). The worker\'s log has it whole.'
    """
    text = str(error).partition("JVM stacktrace:")[0]
    raised = RAISED.findall(text) if "Traceback (most recent call last)" in text else []
    kind = f"{raised[-1]} in a task" if raised else type(error).__name__
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(PROJECT))]
    where = f" at {Path(ours[-1].filename).relative_to(PROJECT)}:{ours[-1].lineno}" if ours else ""
    return f"An error that was not foreseen ({kind}{where}). The worker's log has it whole."


def _ended_by(error: FencepostError, intent: Intent, report: Report) -> bool:
    """The intent, put off after an error that may pass, or ended by it. Whether it was still ours."""
    if report.is_lost.is_set():
        logger.warning("intent %s was taken over: %s", intent.id, error, extra=report.about())
        return False
    if isinstance(error, Frozen):  # no failure: it waits in the queue, whatever its attempts, until that is lifted
        return intents.intent_give_back(intent, error.as_row(), now_get())
    if isinstance(error, TransientError) and not intents.is_last_attempt(intent):
        logger.info("intent %s waits: %s", intent.id, error, extra=report.about())
        _unless_lost(intents.intent_release, intent, error.as_row())
    elif not _given_up(intent, report, error):
        _unless_lost(intents.intent_fail, intent, error.as_row())
    return True


def _given_up(intent: Intent, report: Report, error: FencepostError) -> bool:
    """Whether the intent's recovery was ended with `error`, its claims released at the sink. False: it has none, or the sink
    could not be asked."""
    if not IntentAction(intent.action).is_of_a_recovery or intent.recovery is None:
        return False
    try:
        return giving_up.recovery_give_up(intent, report, error)
    except Exception as failure:  # what ended the work counts; that it could not be tidied up is said beside it
        connection.close_if_unusable_or_obsolete()
        logger.warning("recovery %s stays to be settled: %s", intent.recovery_id, failure)
        return False


def _actions() -> dict[str, Callable[[Intent, Report], dict[str, Any] | None]]:
    """One function an action. None as its result: it ended its intent in the transaction of what it recorded."""
    return {
        IntentAction.CONNECTION_TEST: connections.end_test,
        IntentAction.AUDIT: auditing.audit_run,
        IntentAction.IMAGE: imaging.image_run,
        IntentAction.IMAGE_VALUE: image_values.image_value,
        IntentAction.PLAN: planning.plan_run,
        IntentAction.RECOVER: strategies.recovery_run,
        IntentAction.SETTLE: settling.settle_run,
        IntentAction.EVENT_READ: reading.event_read,
        IntentAction.OMISSION_LOOK_UP: dead_letters.export_look_up,
        IntentAction.ARCHIVE_IMPORT: archive_importing.archive_import,
        IntentAction.SINK_READ: sink_readings.sink_read,
        IntentAction.SINK_INSTALL: sink_readings.sink_install,
        IntentAction.DRILL: drill_run,
    }


def _unless_lost(end: Callable[..., Any], intent: Intent, outcome: dict[str, Any]) -> None:
    try:
        end(intent, outcome, now_get())
    except Refused as lost:
        logger.warning("%s", lost)


def _terminated(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signal.SIGTERM)
