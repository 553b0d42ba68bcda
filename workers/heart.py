"""The heart of one piece of work: it beats while the work moves, and stops when it does not.

The law: a heartbeat tells progress, not mere life. A process that waits for a silent network is alive and does nothing;
kept by its heartbeat, its intent would be nobody else's for good. So what counts is a step moved, rows read, a Spark
task ended. Work that stands still longer than its step may, or that was told to stop and does not come to its next step,
is given back to the queue first and interrupted then; its successor settles from the sink before it does anything.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from django.db import connection

from recovery_api.domain.errors import Refused, StoodStill
from recovery_api.logs import about_line
from recovery_api.models import Intent
from recovery_api.selectors.clock import now_get
from recovery_api.services import intents
from workers.connectors.progress import progress_heard
from workers.stopping import is_stop_asked

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0
LOOK_SECONDS = 0.5
STOP_GRACE_SECONDS = 5.0
"""How long work that was told to stop may take to its next step, before it is interrupted in the middle of one."""
LAST_SECONDS = 10.0
"""How long interrupted work may take to unwind, before its process is ended."""
DEADLINE_SECONDS = 180.0
DEADLINES_SECONDS = {"reading both ends": 900.0, "staging": 900.0, "firing": 600.0}
"""How long a step may go without any progress. Where a Spark task's end is the progress, one task may be long."""
INTERRUPT = signal.SIGUSR2


class WorkStopped(BaseException):
    """The work ends here, unfinished, because its process was told to stop or it stood still. No failure of the work.

    Not an Exception: nothing on the way may take it for an error that it can handle.
    """


class Report:
    """Says in the intent's row how far the work is. Raises Refused once the intent belongs to somebody else.

    A call is a point between two steps: there, work that was told to stop ends (WorkStopped).
    """

    def __init__(self, intent: Intent) -> None:
        self.intent = intent
        self.step = ""
        self.beats = 0
        """Grows with every sign that the work moves."""
        self._began = time.monotonic()
        self.is_lost = threading.Event()

    def beat(self) -> None:
        """The work has moved. Called often: by whatever brings rows."""
        self.beats += 1

    def __call__(self, step: str, done: int | None = None, total: int | None = None, **more: Any) -> None:
        if step != self.step:
            self.step, self._began = step, time.monotonic()
            logger.info("%s: %s", self.intent.action, step, extra=self.about())
        self.beat()
        passed = time.monotonic() - self._began
        rate = done / passed if done and passed > 0.001 else None
        row = {"step": step, "done": done, "total": total, "rate_per_second": rate and round(rate, 1), **more}
        if not intents.intent_progress(self.intent, row, now_get()):
            self.is_lost.set()
        self.check()

    def about(self) -> dict[str, Any]:
        """What a line of the log is about."""
        intent = self.intent
        about = {
            "intent": intent.id,
            "attempt": intent.attempts,
            "recovery": intent.recovery_id,
            "plan": intent.plan_id,
        }
        return about_line({"pipeline": intent.pipeline.name if intent.pipeline else None, **about})

    def check(self) -> None:
        """A point at which the work may end. Raises: Refused, WorkStopped."""
        self.check_held()
        if is_stop_asked():
            raise WorkStopped

    def check_held(self) -> None:
        """For what must be written down before anything else: only the loss of the intent keeps from it."""
        self.beat()
        if self.is_lost.is_set():
            raise Refused(
                str(self.intent),
                "it went without a heartbeat and was offered to another worker",
                "Nothing more is written here; the successor settles from the sink.",
            )


class Heart:
    """Beats in a thread of its own, with its own database connection, until the work ends.

    `end_process` is called where interrupted work does not unwind: whoever waits in C is not reached by an exception.
    None: nobody may end this process.
    """

    def __init__(self, report: Report, end_process: Callable[[], None] | None = None) -> None:
        self._report, self._end_process = report, end_process
        self._over = threading.Event()
        self._is_interrupted = self._is_reached = False
        self._thread = threading.Thread(target=self._run, name=f"heart-{report.intent.id}", daemon=True)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """While the work runs. Where it is interrupted, WorkStopped is raised in it."""
        with self._interruptible(), progress_heard(self._report.beat):
            self._thread.start()
            try:
                yield
            finally:
                self._over.set()
                self._thread.join()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # signals reach the main thread alone
            return
        before = signal.signal(INTERRUPT, self._interrupted)
        self._is_reached = True
        try:
            yield
        finally:
            signal.signal(INTERRUPT, before if before is not None else signal.SIG_DFL)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self._is_interrupted and not self._over.is_set():
            self._is_interrupted = False  # once
            raise WorkStopped

    def _run(self) -> None:
        try:
            reason = self._beat_until_standing_still()
            if reason is not None:
                self._give_back(reason)
        finally:
            connection.close()

    def _beat_until_standing_still(self) -> StoodStill | str | None:
        """Why the work does not go on: it stood still, or it was told to stop. None: it is over, or somebody else's.

        Time is added up from glance to glance, and a long gap between two counts as one: a process that was suspended,
        or a laptop that slept, did not stand still meanwhile.
        """
        beats, silent, stopping, since_beat = self._report.beats, 0.0, 0.0, 0.0
        last = time.monotonic()
        while not self._over.wait(LOOK_SECONDS):
            now = time.monotonic()
            passed, last = min(now - last, 2 * LOOK_SECONDS), now
            silent = 0.0 if self._report.beats != beats else silent + passed
            beats = self._report.beats
            stopping = stopping + passed if is_stop_asked() else 0.0
            if stopping > STOP_GRACE_SECONDS:
                return "told to stop"
            if silent > (limit := DEADLINES_SECONDS.get(self._report.step, DEADLINE_SECONDS)):
                return StoodStill(self._report.step or "beginning", round(limit))
            since_beat += passed
            if since_beat >= HEARTBEAT_SECONDS:
                since_beat = 0.0
                if not self._beat():
                    return None
        return None

    def _beat(self) -> bool:
        """Whether the intent is still ours, as far as is known."""
        try:
            if intents.intent_heartbeat(self._report.intent, now_get()):
                return True
        except Exception as error:  # a beat that fails is a beat missed: the sweep's business
            logger.warning("no heartbeat for %s: %s", self._report.intent.id, type(error).__name__)
            connection.close()
            return True
        self._report.is_lost.set()
        return False

    def _give_back(self, reason: StoodStill | str) -> None:
        """To the queue first, so that others may take it at once; then the work is interrupted where it stands."""
        error_row = reason.as_row() if isinstance(reason, StoodStill) else None
        logger.warning("intent %s is given back in step %r: %s", self._report.intent.id, self._report.step, reason)
        try:
            intent_give_back(self._report.intent, error_row)
        except Exception as error:  # without the control database the sweep offers it, for it beats no more
            logger.warning("intent %s could not be given back: %s", self._report.intent.id, type(error).__name__)
        self._report.is_lost.set()
        self._is_interrupted = True
        if self._is_reached:
            signal.pthread_kill(threading.main_thread().ident or 0, INTERRUPT)
        if not self._over.wait(LAST_SECONDS) and self._end_process is not None:
            logger.warning("process %s does not leave its work and is ended", os.getpid())
            self._end_process()


def intent_give_back(intent: Intent, error_row: dict[str, Any] | None) -> bool:
    """Queued again, with a wake-up for whoever takes it. Whether it was still ours."""
    given = intents.intent_give_back(intent, error_row, now_get())
    if given:
        intents.intent_wake(str(intent.id), intent.action)
    return given
