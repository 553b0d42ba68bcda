"""The session at the Spark Connect server: one a worker process, made when first asked for.

Its one law: a session belongs to the process that made it. One inherited through fork hangs; so it is kept under the
process id, never made at import, and a forked child makes its own.

A dead client's job runs on at the server. So the address of the job (session id and tag) is made first, written down by
the caller, and only then used: whoever takes over calls `job_interrupt` with what was written before it reads anything.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import threading
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from recovery_api.domain.errors import AccessDenied, BadInput, EngineLacks, EngineUnavailable, FencepostError, Refused
from workers.connectors.progress import progress_beat
from workers.spark.calls import calls_bound
from workers.spark.shipping import lack_told, session_prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINE = "Spark"
USER = "fencepost"
SIGNS_OF_ABSENCE = (
    "RETRIES_EXCEEDED",
    "INVALID_HANDLE.SESSION",
    "StatusCode.UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "NO_ACTIVE_SESSION",  # the client closed itself: a restarted server took the id for a new session's
    "incorrect server side session identifier",
    "Python worker exited unexpectedly",  # an executor was lost, oftener than Spark tries a task again
    "ExecutorLostFailure",
)
STATUSES = {
    "UNAVAILABLE": "failed to connect (UNAVAILABLE)",
    "DEADLINE_EXCEEDED": "no answer in time (DEADLINE_EXCEEDED)",
    "UNAUTHENTICATED": "it does not know the token (UNAUTHENTICATED)",
    "PERMISSION_DENIED": "the token may not do this (PERMISSION_DENIED)",
}
_sessions: dict[int, SparkSession] = {}
_lock = threading.Lock()
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


def session_id_make() -> str:
    """An id that no session has had: once stopped, an id is closed for ever."""
    return str(uuid.uuid4())


def tag_make(purpose: str) -> str:
    """A tag for one job. Spark forbids commas in tags."""
    return f"{purpose.replace(',', ' ')}-{uuid.uuid4().hex[:12]}"


def session_get(session_id: str | None = None) -> SparkSession:
    """This process's session. `session_id` attaches to that one (a dead client's is still warm) in place of the kept.

    Raises: EngineUnavailable after about six seconds without an answer; BadInput where SPARK_REMOTE cannot be used;
    EngineLacks where executors have not what our work needs.
    """
    with _lock:
        kept = _sessions.pop(os.getpid(), None)
        _sessions.clear()  # what a parent left here is its own
        if kept is not None and kept.is_stopped:
            kept = None
        if kept is not None and session_id not in (None, session_of(kept)):
            _close(kept)
            kept = None
        session = kept or _connect(session_id or session_id_make())
        session.release_session_on_close &= session_id is None  # an attached one may have another user still
        _sessions[os.getpid()] = session
        _activate(session)
    return session


@atexit.register
def session_drop() -> None:
    """Forgets this process's session and releases it at the server; the next `session_get` makes another.

    One that was only attached to is left to the server's idle limit.
    """
    if (session := _sessions.pop(os.getpid(), None)) is not None:
        _close(session)


def session_of(session: SparkSession) -> str:
    """The id by which another process can attach to this session or interrupt its jobs."""
    return str(session.client._session_id)


@contextlib.contextmanager
def engine_errors_mapped() -> Iterator[None]:
    """Turns Spark's connection errors into EngineUnavailable (or AccessDenied) and drops the session.

    A job that a successor interrupted ends as Refused.
    Everything else passes: a wrong query is a defect, and a task's own error travels as a row (`error_rows_raise`).
    """
    import grpc
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*RETRIES_EXCEEDED.*")
            yield
    except (PySparkException, grpc.RpcError) as error:
        if "[OPERATION_CANCELED]" in str(error):
            raise Refused(
                "The Spark job", "it was interrupted", "Whoever took the work over goes on with it."
            ) from error
        if "StatusCode.UNAUTHENTICATED" in str(error) or "StatusCode.PERMISSION_DENIED" in str(error):
            raise AccessDenied(ENGINE, _reason(error), "Check the token in SPARK_REMOTE.") from error
        if lack := lack_told(str(error)):
            raise EngineLacks(ENGINE, lack) from error
        if not is_unavailable(error):
            raise
        session_drop()
        raise EngineUnavailable(ENGINE, _reason(error)) from error


def is_unavailable(error: BaseException) -> bool:
    """Whether the server is away, was restarted, or closed the session: the same work may succeed with a new one."""
    import grpc
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException):
        condition = str(error.getCondition() or "")
        if condition == "RETRIES_EXCEEDED" or condition.startswith("INVALID_HANDLE.SESSION"):
            return True
        text = str(error)
        if any(sign in text for sign in SIGNS_OF_ABSENCE):
            return True
    if isinstance(error, grpc.RpcError) and hasattr(error, "code"):
        return error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    return any(is_unavailable(cause) for cause in (error.__cause__, error.__context__) if cause is not None)


@contextlib.contextmanager
def job_tagged(session: SparkSession, tag: str) -> Iterator[None]:
    """Marks what this thread runs meanwhile. Tags belong to a thread: enter this in the one that runs the query."""
    session.addTag(tag)
    try:
        yield
    finally:
        session.removeTag(tag)


def job_interrupt(session_id: str, tag: str) -> list[str]:
    """Ends what a predecessor still runs under `tag` in its session; the ids of what was ended, none where it is over.

    Raises: EngineUnavailable: then nothing is known about the predecessor's job.
    """
    kept = _sessions.get(os.getpid())
    if kept is not None and session_of(kept) == session_id:
        with engine_errors_mapped():
            return list(kept.interruptTag(tag))
    session = _connect(session_id, is_probed=False)
    try:
        with engine_errors_mapped():
            return list(session.interruptTag(tag))
    except EngineUnavailable as error:
        if "INVALID_HANDLE.SESSION" in str(error.__cause__):  # closed, or gone with its server: its jobs ended with it
            return []
        raise
    finally:
        session.release_session_on_close = False
        _close(session)


def error_row(error: FencepostError) -> dict[str, Any]:
    """What a task returns instead of raising: exceptions cross Spark Connect as text only."""
    return error.as_row()


def error_rows_raise(rows: Iterable[Mapping[str, Any]]) -> None:
    """Raises the error of the first row, terminal ones first: a retry would only meet them again. None: returns."""
    errors = [FencepostError.from_row(dict(row)) for row in rows]
    for error in sorted(errors, key=lambda error: error.is_transient):
        raise error


def remote_address(base: str, session_id: str) -> str:
    """`base` (sc://host:port/;…) with our user and the session id; the `/` before parameters is required.

    >>> remote_address("sc://spark:15002", "4d8c…")
    'sc://spark:15002/;user_id=fencepost;session_id=4d8c%E2%80%A6'
    """
    address, *given = base.rstrip(";").split(";")
    kept = [part for part in given if part.partition("=")[0] not in ("user_id", "session_id")]
    parameters = [*kept, f"user_id={USER}", f"session_id={quote(session_id)}"]
    return ";".join([address.rstrip("/") + "/", *parameters])


def _connect(session_id: str, is_probed: bool = True) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    base = os.environ.get("SPARK_REMOTE", "")
    if not base:
        raise BadInput(
            "SPARK_REMOTE",
            "is not set",
            "Set it to a Spark Connect server (sc://host:15002), or run through `python -m workers.embedded`.",
        )
    # The builder asks the server nothing yet where no option is given, so the policy is there before the first call.
    # The client's own waits ten minutes and more; ours gives up after 0.1 + 0.2 + … + 2 s, about five seconds.
    try:
        session = SparkSession.builder.remote(remote_address(base, session_id)).create()
    except PySparkException as error:
        raise BadInput("SPARK_REMOTE", _reason(error), "It reads sc://host:port/;name=value;…") from error
    policy = DefaultPolicy(max_retries=6, initial_backoff=100, backoff_multiplier=2, max_backoff=2000)
    session.client.set_retry_policies([policy])
    calls_bound(session)
    session.registerProgressHandler(_Heard())
    # Its own farewell at exit asks a server that may be gone, with all its retries; ours is `session_drop`.
    atexit.unregister(session.client._on_exit)
    if is_probed:
        try:
            with engine_errors_mapped():
                session.version  # noqa: B018  the first call tells whether anyone is there
                session_prepare(session)
        except BaseException:  # whatever it is, an interruption too: no half-made session stays open; raised again
            session.release_session_on_close = False
            _close(session)
            raise
    return session


class _Heard:
    """Spark's word on a running job is progress where a task ended or bytes were read, and not merely that it answers."""

    def __init__(self) -> None:
        self._seen: dict[str | None, tuple[int, int]] = {}

    def __call__(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        stages = list(stages or ())
        now = (sum(one.num_completed_tasks for one in stages), sum(one.num_bytes_read for one in stages))
        if done or now != self._seen.get(operation_id, (0, 0)):
            progress_beat()
        if done:
            self._seen.pop(operation_id, None)
        else:
            self._seen[operation_id] = now


def _activate(session: SparkSession) -> None:
    """Makes `session` what the client takes for functions: it keeps the first it ever had, and forgets that one when it
    is closed, whichever else is open by then."""
    from pyspark.sql.connect.session import SparkSession as Client

    with Client._lock:
        Client._default_session = session
        Client._active_session.session = session


def _close(session: SparkSession) -> None:
    """Ends the connection, and, where `release_session_on_close` is set, the session at the server, for ever."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a server that is gone is no news here
        session.client.set_retry_policies([DefaultPolicy(max_retries=0)])
        session.stop()


def _reason(error: BaseException) -> str:
    """Why, in words that hold nothing of a task's rows: gRPC's status, Spark's error condition, or a sign we know."""
    text = str(error)
    if (code := re.search(r"StatusCode\.([A-Z_]+)", text)) is not None:
        return STATUSES.get(code[1], code[1])
    condition = getattr(error, "getCondition", lambda: None)()
    return condition or next((sign for sign in SIGNS_OF_ABSENCE if sign in text), type(error).__name__)
