"""How long each call to the engine may take.

One law: a call has a deadline of its own, so that an engine behind a silent network is given up in minutes and not in
hours. A job may last as long as it does: it is attached to again, which an engine that is gone does not answer. HTTP/2
keepalives, which a proxy cannot answer in the engine's place, are the client's own: a minute and 20 s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALL_SECONDS = 60.0
PLAN_SECONDS = 120.0
STREAM_SECONDS = 120.0
"""Of one stream of a job's answers."""
FAREWELL_SECONDS = 10.0


def calls_bound(session: SparkSession) -> None:
    """Gives each call of the session a deadline."""
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
