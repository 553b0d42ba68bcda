"""Connections whose every call has a deadline, kept from this side (workers.connectors.deadlines).

One law: a call that is given up leaves nothing behind that could still be used: the connection is closed first, and our
backend, where a second connection can reach the server, is ended there, too.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recovery_api.domain.errors import NoAnswer
from workers.connectors.deadlines import ANSWER_SECONDS, ASKING, Backend, Silence, Step
from workers.connectors.progress import progress_beat

WAIT_SECONDS = 0.1
LOOKING_SECONDS = 5
"""How long a second connection may take, and each of its two questions."""
BEAT_SECONDS = 1.0
LOOKING_NAME = "fencepost looks after its own"

KEPT_ALIVE = {
    "keepalives": "1",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""libpq's names; milliseconds the last, seconds the others. What a connection string says itself stands."""

_LOOK = """
SELECT a.state, a.wait_event_type, a.wait_event, ARRAY(
    SELECT CASE WHEN blocker.pid = 0 THEN 'a prepared transaction' ELSE concat_ws(', ',
        'session ' || blocker.pid, 'application ' || quote_literal(nullif(b.application_name, '')),
        'role ' || quote_literal(b.usename), b.state, 'in a transaction since ' || b.xact_start) END
    FROM unnest(pg_blocking_pids(a.pid)) AS blocker (pid) LEFT JOIN pg_stat_activity b ON b.pid = blocker.pid)
FROM pg_stat_activity a
WHERE a.pid = %s AND a.application_name = %s AND a.usename = session_user
"""
_END = "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.pid = %s AND a.application_name = %s"


class AnsweringConnection(psycopg.Connection[Any]):
    """A connection that waits for an answer as long as its step may take, and no longer.

    `step` says what is being asked, and may be set between calls. `statement_seconds`: the limit that the registered end
    itself sets for a statement, 0 for none. Of the last statement that failed, `failed_after_seconds`
    tells how long it had run and `blockers` whom it was seen waiting for.
    """

    step: Step = ASKING
    answer_seconds: float = ANSWER_SECONDS
    statement_seconds: int = 0
    endpoint: str = "the server"
    blockers: tuple[str, ...] = ()
    failed_after_seconds: float = 0.0
    _conninfo: str = ""
    _application_name: str = ""
    _statement_began: float = 0.0
    _seen_blockers: tuple[str, ...] = ()
    _beaten_at: float = 0.0

    def begin_to_listen(
        self, endpoint: str, conninfo: str, application_name: str, answer_seconds: float, step: Step
    ) -> None:
        """From here on a silence is noticed. What a second connection needs is kept in this process only."""
        self.endpoint, self.answer_seconds, self.step = endpoint, answer_seconds, step
        self._conninfo, self._application_name = conninfo, application_name

    def wait(self, gen: Any, interval: float = WAIT_SECONDS, timeout: float | None = None) -> Any:
        self._seen_blockers = ()
        if self.pgconn.transaction_status != psycopg.pq.TransactionStatus.ACTIVE:  # a COPY is many calls
            self._statement_began = time.monotonic()
        try:
            state = next(gen)
        except StopIteration as answer:  # nearly every row of a COPY: it has arrived with an earlier one
            return answer.value
        except psycopg.Error:
            self._failed()
            raise
        return super().wait(self._listened(gen, state), interval, timeout)

    def _listened(self, gen: Any, state: Any) -> Generator[Any, Any, Any]:
        """`gen`, which has given `state`, passed on as it is, with a look at the clock each time nothing was ready."""
        silence = Silence(self.step.deadline_seconds(self.answer_seconds), time.monotonic())
        try:
            while True:
                ready = yield state
                now = time.monotonic()
                if ready:
                    silence.heard(now)
                    self._beat(now)
                elif silence.wants_look(now):
                    self._look(silence)
                state = gen.send(ready)
        except StopIteration as answer:
            return answer.value
        except psycopg.Error:
            self._failed()
            raise
        finally:
            gen.close()

    def _failed(self) -> None:
        self.failed_after_seconds = time.monotonic() - self._statement_began
        self.blockers = self._seen_blockers

    def _beat(self, now: float) -> None:
        if now - self._beaten_at >= BEAT_SECONDS:
            self._beaten_at = now
            progress_beat()

    def _look(self, silence: Silence) -> None:
        """Raises: NoAnswer once the deadline is over and our backend is not seen at work."""
        pid = self.info.backend_pid
        backend = backend_look(self._conninfo, pid, self._application_name)
        now = time.monotonic()
        if silence.looked(backend, now):
            self._beat(now)
        elif backend is not None:
            self._seen_blockers = backend.blockers
        if not silence.is_over(now):
            return
        self.pgconn.finish()
        if backend is not None:
            backend_end(self._conninfo, pid, self._application_name)
        raise NoAnswer(self.endpoint, f"{silence.deadline_seconds:.0f}", self.step.name, self._waited_for(backend))

    def _waited_for(self, backend: Backend | None) -> str:
        if backend is None:
            return "no second connection could be made, either, or it saw nothing of ours"
        if backend.blockers:
            return f"it waited for {'; '.join(backend.blockers)}"
        return f"its process there was {backend.state}" + (
            f", waiting for {backend.wait_event_type} {backend.wait_event}" if backend.wait_event else ""
        )


class _BriefConnection(psycopg.Connection[Any]):
    """For the second look: no call takes longer than LOOKING_SECONDS."""

    def wait(self, gen: Any, interval: float = WAIT_SECONDS, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, timeout or LOOKING_SECONDS)


def backend_look(conninfo: str, pid: int, application_name: str) -> Backend | None:
    """What our backend does now; None where no second connection could be made, or it sees no such backend of ours.

    Behind a pooler in transaction mode the number is the pooler's own: nothing is seen, and the deadline stands.
    """
    row = _asked(conninfo, _LOOK, pid, application_name)
    return None if row is None else Backend(row[0], row[1], row[2], tuple(row[3]))


def backend_end(conninfo: str, pid: int, application_name: str) -> None:
    """Ends a backend of ours that was given up, so that it holds nothing any more. Where that fails, its own
    idle_in_transaction_session_timeout does."""
    _asked(conninfo, _END, pid, application_name)


def conninfo_kept_alive(conninfo: str) -> str:
    """`conninfo` with what of KEPT_ALIVE it does not say itself. Raises: psycopg.ProgrammingError."""
    return make_conninfo("", **{**KEPT_ALIVE, **conninfo_to_dict(conninfo)})


def _asked(conninfo: str, query: str, pid: int, application_name: str) -> tuple[Any, ...] | None:
    try:
        with _BriefConnection.connect(
            conninfo_kept_alive(conninfo),
            autocommit=True,
            connect_timeout=LOOKING_SECONDS,
            application_name=LOOKING_NAME,
            prepare_threshold=None,
        ) as connection:
            return connection.execute(query.encode(), (pid, application_name)).fetchone()
    except (psycopg.Error, TimeoutError):
        return None
