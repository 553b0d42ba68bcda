"""That the engine is heard: its word on running tasks is a job's progress, and each call to it has a deadline.

One law: a task that runs is progress, because each task bounds its own silence towards the ends. A job of which the
engine runs nothing for long, or an engine that says nothing at all, is given up; its job is interrupted by whoever takes
the work over.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from recovery_api.domain.errors import EngineUnavailable
from workers.connectors.progress import progress_beat

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

ENGINE = "Spark"
IDLE_SECONDS = 300.0
"""How long a job may have no task running and none ended: a cluster that is full or has no executors left."""

CALL_SECONDS = 60.0
PLAN_SECONDS = 120.0
STREAM_SECONDS = 120.0
"""Of one stream of answers. A job that lasts longer is attached to again, which an engine that is gone does not answer."""
FAREWELL_SECONDS = 10.0


class JobProgress:
    """What the engine tells of a job every few seconds, as beats of the work that waits for it."""

    def __init__(self) -> None:
        self._told: tuple[Any, ...] = ()
        self._changed_at = time.monotonic()

    def __call__(self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        """Raises: EngineUnavailable where nothing of a job has run for IDLE_SECONDS."""
        ended = tuple((stage.stage_id, stage.num_completed_tasks) for stage in stages or ())
        now = time.monotonic()
        told = (operation_id, ended)
        if told != self._told or inflight_tasks or done:
            self._told, self._changed_at = told, now
            progress_beat()
        elif now - self._changed_at > IDLE_SECONDS:
            raise EngineUnavailable(ENGINE, f"it has run no task of this job for {IDLE_SECONDS:.0f} s")


def session_bound(session: SparkSession) -> None:
    """Gives each call of the session a deadline, and lets its jobs' progress be heard.

    HTTP/2 keepalives, which a proxy cannot answer in the engine's place, are the client's own: after 80 s it gives up.
    """
    from pyspark.sql.connect.client.core import RpcDeadlines

    session.client._rpc_deadlines = RpcDeadlines(
        reattachable_execute_plan=STREAM_SECONDS,
        reattach_execute=STREAM_SECONDS,
        analyze_plan=PLAN_SECONDS,
        config=CALL_SECONDS,
        interrupt=CALL_SECONDS,
        artifact_status=CALL_SECONDS,
        get_status=CALL_SECONDS,
        fetch_error_details=CALL_SECONDS,
        release_session=FAREWELL_SECONDS,
    )
    session.client._max_retry_exception_elapsed_time = STREAM_SECONDS
    session.registerProgressHandler(JobProgress())
