"""A Spark task that is speculated: two attempts of one staging task run at two executors and hand over the same rows."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import psycopg

from recovery_api.models import Recovery
from tests.chaos.arena import ROUND_SECONDS, Arena, Wrong
from workers.embedded.processes import wait_until
from workers.faults import Point

ATTEMPTS = """
    SELECT a.pid, a.client_port FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE NOT l.granted AND l.relation = 'fencepost.staged'::regclass ORDER BY a.backend_start, a.pid"""


def task_speculated(arena: Arena, recovery: Recovery) -> str:
    """Both attempts stand before the sink's staging at one moment, and both are let go on."""
    code, _, copies = _staged_twice(arena, recovery, is_frozen=False)
    return f"{copies} speculative attempt(s) staged beside the first; the worker ended with {code}"


def task_speculated_past_the_fire(arena: Arena, recovery: Recovery) -> str:
    """The first attempt's executor is stopped (SIGSTOP); its copy stages, the batch lands, and it goes on after that."""
    code, staged, copies = _staged_twice(arena, recovery, is_frozen=True)
    return (
        f"{copies} speculative attempt(s) staged for a stopped executor; it went on after the fire and left {staged} rows "
        f"in staging; the worker ended with {code}"
    )


def _staged_twice(arena: Arena, recovery: Recovery, is_frozen: bool) -> tuple[int, int, int]:
    """The worker's exit code, the rows left in staging, and how many speculative attempts Spark tells of."""
    cluster = arena.servers.cluster
    process, gate = arena.held_worker(recovery, Point.AFTER_ARM, SPARK_REMOTE=cluster.url)
    with (
        psycopg.connect(arena.world.sink_dsn, autocommit=True) as looker,
        psycopg.connect(arena.world.sink_dsn) as holder,
        contextlib.ExitStack() as stopped,
    ):

        def waiting() -> list[tuple[int, int]]:
            """Session and client's port of each attempt that waits to stage, once every task of the job has two there."""
            sessions = looker.execute(ATTEMPTS).fetchall()
            running = cluster.attempts() if len(sessions) > 1 else []
            copied = {task["index"] for task in running if task["speculative"]}
            everyone = {task["index"] for task in running}
            return sessions if copied and copied == everyone and len(sessions) == len(running) else []

        executors: dict[int, list[psutil.Process]] = {}

        def is_found() -> bool:
            """Whether each attempt's executor is known. An attempt that waits too long for the lock goes and comes again."""
            executors.clear()
            with contextlib.suppress(StopIteration, psutil.NoSuchProcess):
                executors.update({session: cluster.executor_of(_client_of(port)) for session, port in waiting()})
            return bool(executors)

        holder.execute("LOCK TABLE fencepost.staged IN ACCESS EXCLUSIVE MODE")
        gate.touch()
        if not wait_until(lambda: is_found() or process.poll() is not None, 90) or not executors:
            running = [(task["index"], task["attempt"], task["executorId"]) for task in cluster.attempts()]
            raise Wrong(f"no second attempt came to stage: {running}")
        copies = [task for task in cluster.attempts() if task["speculative"]]
        if len({processes[0].pid for processes in executors.values()}) < 2:
            raise Wrong(f"the attempts did not come from two executors: {executors}")
        first = next(iter(executors))
        if is_frozen:
            stopped.enter_context(_frozen(executors[first]))
        holder.rollback()  # whoever waited may go on

        def is_finished() -> bool:
            recovery.refresh_from_db()
            return recovery.finished_at is not None or process.poll() is not None

        wait_until(is_finished, ROUND_SECONDS)
        gone = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)"
        if is_frozen and looker.execute(gone, [first]).fetchone() == (True,):
            raise Wrong("the stopped attempt was gone before its copy had landed")
        stopped.close()
        code = process.wait(ROUND_SECONDS)
        if not wait_until(lambda: looker.execute(gone, [first]).fetchone() == (True,), 60):
            raise Wrong("the first attempt never ended")
        staged = looker.execute("SELECT count(*) FROM fencepost.staged").fetchone()
    recovery.refresh_from_db()
    if code or recovery.finished_at is None or recovery.generations.count() != recovery.batches:
        raise Wrong(
            f"one worker should have ended it: exit {code}, {recovery.state}, {recovery.generations.count()} generations "
            f"for {recovery.batches} parts"
        )
    assert staged is not None
    return code, int(staged[0]), len(copies)


def _client_of(port: int) -> int:
    """The process here that speaks to the sink from this port of its own."""
    return next(
        one.pid for one in psutil.net_connections("tcp") if one.pid is not None and one.laddr and one.laddr.port == port
    )


@contextmanager
def _frozen(processes: list[psutil.Process]) -> Iterator[None]:
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
