"""The pager: evaluates, delivers, and says to an outside monitor that it did. It needs the control database and nothing else.

The law: a heartbeat leaves only after a whole evaluation was committed and while no page is older than a bound, so that its
absence tells of everything that could keep a page from leaving: this process, the database, a destination that takes nothing.
A monitor that hangs keeps no page from leaving.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from recovery_api.domain.alerts.addresses import url_check
from recovery_api.domain.errors import FencepostError
from recovery_api.selectors.alerts import evaluated_at
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.destinations import deliveries_due, deliveries_overdue
from recovery_api.selectors.timelines import event_newest
from recovery_api.services.alerts import Evaluated, alerts_evaluate, alerts_forget
from recovery_api.services.health import parts_reached
from workers.alerts.delivering import Deliverer, resolved
from workers.alerts.reaching import reached_get
from workers.alerts.sending import Sender
from workers.connectors.sinks.kit import KIT_VERSION

logger = logging.getLogger(__name__)

TURN_SECONDS = 1.0
EVALUATED_EVERY_SECONDS = 15.0
"""So often at least; sooner whenever the timeline has something new."""
REACHED_EVERY_SECONDS = 15.0
RESTS_TIMES, RESTS_MOST_SECONDS = 3.0, 3.0
"""After an evaluation it rests three times as long as that took: a large fleet brings something new every second."""
HEARTBEAT_EVERY_SECONDS = 30.0
EVALUATION_BOUND = timedelta(seconds=60)
PAGE_BOUND = timedelta(seconds=120)
FAILED_WAIT_SECONDS = 5.0
FORGOTTEN_EVERY_SECONDS = 3600.0


@dataclass(slots=True)
class Beat:
    """Whether the monitor was told. `says`: why not, or what it answered."""

    was_sent: bool
    says: str


class Pager:
    """One process. Several may run: one of them evaluates at a time, and each delivery is taken by one."""

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()}/{os.getpid()}"
        self.deliverer = Deliverer(self.name)
        self._stop = threading.Event()
        self._evaluated_at = self._reached_at = self._beat_at = self._forgot_at = float("-inf")
        self._reached = {}  # type: ignore[var-annotated]
        self._newest_event = -1
        self._rests_seconds = 0.0
        self._beats = ThreadPoolExecutor(1, thread_name_prefix="heartbeat")
        self._beating: Future[Beat] | None = None

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> None:
        """Until it is told to stop. Where the database is away it waits, and says nothing to anybody."""
        while not self._stop.is_set():
            try:
                close_old_connections()
                self.turn()
            except (DatabaseError, InterfaceError) as error:  # the outermost edge: tried again
                logger.warning("the control database is away (%s); the pager waits", type(error).__name__)
                connection.close()
                self._stop.wait(FAILED_WAIT_SECONDS)
        self._beats.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(DatabaseError, InterfaceError):
            self.deliverer.close()

    def turn(self) -> None:
        """About a second: evaluates where something may have changed, delivers, says that it lives."""
        if self._is_to_be_evaluated():
            try:
                self.evaluate()
            except (DatabaseError, InterfaceError):
                raise
            except Exception:  # the outermost edge: what waits is delivered all the same, and no heartbeat leaves
                logger.exception("alerts could not be evaluated; it is tried again")
                self._evaluated_at = time.monotonic()
        until = time.monotonic() + TURN_SECONDS
        while not self._stop.is_set():
            came = self.deliverer.turn(max(0.0, min(until - time.monotonic(), TURN_SECONDS)))
            if time.monotonic() >= until:
                break
            if not came and not self.deliverer.is_busy:
                self._stop.wait(min(0.5, max(0.0, until - time.monotonic())))
        self._beat()
        if time.monotonic() - self._forgot_at >= FORGOTTEN_EVERY_SECONDS:
            self._forgot_at = time.monotonic()
            alerts_forget(now_get(), timedelta(days=settings.FENCEPOST_RECORDS_DAYS))

    def once(self) -> Evaluated | None:
        """One evaluation, everything that is due now tried once, one heartbeat."""
        found = self.evaluate()
        while deliveries_due(now_get()).exists() or self.deliverer.is_busy:
            self.deliverer.turn(TURN_SECONDS)
        return found

    def evaluate(self) -> Evaluated | None:
        """None: another pager was at it."""
        if time.monotonic() - self._reached_at >= REACHED_EVERY_SECONDS:
            self._reached, self._reached_at = reached_get(), time.monotonic()
            parts_reached(self._reached)
        newest = event_newest()
        began = time.monotonic()
        found = alerts_evaluate(self._reached, KIT_VERSION)
        self._evaluated_at, self._newest_event = time.monotonic(), newest
        self._rests_seconds = min(RESTS_TIMES * (self._evaluated_at - began), RESTS_MOST_SECONDS)
        return found

    @property
    def is_beating(self) -> bool:
        """Whether the monitor was called and has not answered yet."""
        return self._beating is not None and not self._beating.done()

    def heartbeat(self) -> Beat:
        """Says to the monitor that pages leave, if that is so, and waits for its answer."""
        problem = _silent_because()
        return Beat(False, problem) if problem else _called(self.deliverer.sender)

    def _beat(self) -> None:
        """The same without waiting: what the monitor answered is told in a later turn."""
        if self._beating is not None and self._beating.done():
            beat, self._beating = self._beating.result(), None
            if not beat.was_sent:
                logger.warning("no heartbeat: %s", beat.says)
        if self._beating is not None or time.monotonic() - self._beat_at < HEARTBEAT_EVERY_SECONDS:
            return
        self._beat_at = time.monotonic()
        problem = _silent_because()
        if not problem:
            self._beating = self._beats.submit(_called, self.deliverer.sender)
        elif settings.FENCEPOST_HEARTBEAT_URL:
            logger.warning("no heartbeat: %s", problem)

    def _is_to_be_evaluated(self) -> bool:
        since = time.monotonic() - self._evaluated_at
        if since >= EVALUATED_EVERY_SECONDS:
            return True
        return since >= self._rests_seconds and event_newest() != self._newest_event


def _silent_because() -> str:
    """Why no heartbeat may leave; "" where it may."""
    now, last = now_get(), evaluated_at()
    if last is None or now - last > EVALUATION_BOUND:
        return "no evaluation was committed lately"
    if stuck := deliveries_overdue(now, PAGE_BOUND):
        return f"{stuck} pages reached nobody for {PAGE_BOUND.total_seconds():.0f} s"
    return "" if settings.FENCEPOST_HEARTBEAT_URL else "FENCEPOST_HEARTBEAT_URL is not set"


def _called(sender: Sender) -> Beat:
    """What the monitor answered. Never raises; it needs no database, for a thread calls it."""
    try:
        url = url_check(resolved(settings.FENCEPOST_HEARTBEAT_URL), "FENCEPOST_HEARTBEAT_URL")
    except FencepostError as error:
        return Beat(False, str(error))
    answer = sender.send(url, None, {})
    return Beat(not answer.problem, answer.problem or f"answered {answer.status}")
