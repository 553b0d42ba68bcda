"""A worker's main process says that it is there, and sweeps: what no piece of work can keep it from doing.

The law: work runs in the pool's processes, so a thread of the main one is never occupied by it, however long a job runs
or hangs. Every worker sweeps; several sweeps at once are harmless, and none needs the broker.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from celery import bootsteps

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 10.0
SLEPT_AFTER = timedelta(seconds=25)
"""A sweep that comes later than this after the last one slept, or its clock jumped: so may have everybody else."""


class Presence(bootsteps.StartStopStep):
    """A step of the worker's own start and stop: after the pool was forked, before the broker is asked for."""

    requires = {"celery.worker.components:Pool"}

    def __init__(self, parent: Any, **_: Any) -> None:
        self.sweeper: Sweeper | None = None
        super().__init__(parent)

    def start(self, parent: Any) -> None:
        self.sweeper = Sweeper(sorted(parent.app.amqp.queues.consume_from))
        self.sweeper.start()

    def stop(self, parent: Any) -> None:
        if self.sweeper is not None:
            self.sweeper.stop()

    terminate = stop


class Sweeper:
    """Sweeps every ten seconds in a thread of its own, with a database connection of its own."""

    def __init__(self, queues: Sequence[str] = (), *, is_told: bool = True) -> None:
        self.name = f"{socket.gethostname()}/{os.getpid()}"
        self._queues, self._is_told = list(queues), is_told
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)
        self._last: datetime | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=SWEEP_SECONDS)

    def _run(self) -> None:
        from django.db import connection

        from recovery_api.services.workers import worker_say_gone

        try:
            while True:
                self._round()
                if self._stop.wait(SWEEP_SECONDS):
                    break
            if self._is_told:
                worker_say_gone(self.name)
        except Exception as error:  # the last word of a thread: nothing hangs on it
            logger.warning("worker %s could not say that it ends: %s", self.name, type(error).__name__)
        finally:
            connection.close()

    def _round(self) -> None:
        """Says that the worker is there, then sweeps. Whatever is away now is asked again in ten seconds."""
        from django.db import connection

        from recovery_api.selectors.clock import now_get
        from recovery_api.services.workers import worker_say_present
        from workers.stopping import is_stop_asked

        try:
            now = now_get()
            if self._is_told:
                worker_say_present(self.name, self._queues, now, is_stopping=is_stop_asked())
            sweep(now, has_slept=self._last is not None and not timedelta(0) <= now - self._last <= SLEPT_AFTER)
            self._last = now
        except Exception as error:  # the outermost edge: recorded, and tried again
            logger.warning("the sweep could not run (%s: %s); it is tried again", type(error).__name__, error)
            connection.close()


def sweep(now: datetime, *, has_slept: bool = False) -> None:
    """Offers again every intent whose worker went silent, wakes workers for what waits; lapses old approvals.

    Audits that are due are asked for first, so that workers are woken for them, too. Recoveries that nobody works on are
    settled; omissions, previews of them, contents that somebody read and files of the archive go when their time is over, and
    a day's files of the archive become one; drills that are due are asked for; what is older than it is kept goes, and the
    history is thinned; evidence on which nothing rests is taken away.
    `has_slept`: this process, or the whole machine, stood still since the last sweep. Then silence
    proves nothing yet: whoever lives beats within seconds, and the next sweep sees it.
    """
    from recovery_api.services.abandoned import recoveries_sweep
    from recovery_api.services.drills import drills_sweep
    from recovery_api.services.event_reads import event_contents_purge
    from recovery_api.services.headroom import headroom_sweep
    from recovery_api.services.images import images_sweep
    from recovery_api.services.intents import intents_sweep, intents_wake
    from recovery_api.services.omission_previews import previews_forget
    from recovery_api.services.omissions import omissions_end
    from recovery_api.services.plans import plans_sweep
    from recovery_api.services.schedules import schedules_sweep
    from recovery_api.services.workers import workers_forget
    from workers.recovery.archiving import archive_sweep
    from workers.recovery.retention import evidence_sweep, retention_sweep

    if has_slept:
        intents_wake(now)
        return
    schedules_sweep(now)
    images_sweep(now)
    intents_sweep(now)
    recoveries_sweep(now)
    plans_sweep(now)
    omissions_end()
    previews_forget(now)
    event_contents_purge(now)
    drills_sweep(now)
    workers_forget(now)
    archive_sweep(now)
    headroom_sweep(now)
    retention_sweep(now)
    evidence_sweep(now)
