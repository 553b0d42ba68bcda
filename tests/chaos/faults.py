"""The faults: each is done to one recovery of the arena by real processes and real servers, and says what it saw."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import psutil
import psycopg
from django.db import connection as control
from django.utils import timezone

from recovery_api.models import Claim, EventKind, Generation, Intent, IntentState, Recovery
from recovery_api.services.intents import intents_sweep
from recovery_api.services.wakeups import intent_wake
from tests.chaos import limits, planes, wire
from tests.chaos.arena import ROUND_SECONDS, Arena, Wrong, intent_of
from tests.chaos.speculation import task_speculated, task_speculated_past_the_fire
from tests.zygote import Forked, forked
from workers.embedded.processes import wait_until
from workers.faults import Point

Fault = Callable[[Arena, Recovery], str]


def crash_at(point: Point, arena: Arena, recovery: Recovery) -> str:
    """SIGKILL at a named point."""
    marker = arena.directory / f"died-{arena.round}-{point.value}"
    process = arena.worker(intent_of(recovery), "first", FENCEPOST_CRASH=f"{point.value}:{marker}")
    code = process.wait(ROUND_SECONDS)
    if code != -signal.SIGKILL or not marker.exists():
        raise Wrong(f"the worker should have died at {point.value} and ended with {code}")
    return f"killed at {point.value}"


def sink_restarted(point: Point, arena: Arena, recovery: Recovery) -> str:
    """The ends' server crashes and comes back while a worker stands at `point`; its sessions are gone."""
    process, gate = arena.held_worker(recovery, point)
    arena.servers.ends.restart()
    gate.touch()
    process.wait(ROUND_SECONDS)
    return f"the sink's server crashed at {point.value}; the worker ended with {process.returncode}"


def control_restarted(point: Point, arena: Arena, recovery: Recovery) -> str:
    """The control database crashes and comes back while a worker stands at `point`."""
    process, gate = arena.held_worker(recovery, point)
    arena.servers.control.restart()
    control.close()
    gate.touch()
    process.wait(ROUND_SECONDS)
    return f"the control database crashed at {point.value}; the worker ended with {process.returncode}"


def spark_killed_reading(arena: Arena, recovery: Recovery) -> str:
    """The Spark Connect server dies as soon as the worker reads under its claim, and comes back."""
    intent = intent_of(recovery)
    process, gate = arena.held_worker(recovery, Point.AFTER_CLAIM)
    gate.touch()

    def is_reading() -> bool:
        step = (Intent.objects.values_list("progress", flat=True).get(id=intent.id) or {}).get("step", "")
        return "read" in step or process.poll() is not None

    wait_until(is_reading, 30)
    arena.servers.spark.restart()
    process.wait(ROUND_SECONDS)
    return f"Spark was killed during the read; the worker ended with {process.returncode}"


def spark_killed_staging(arena: Arena, recovery: Recovery) -> str:
    """The Spark Connect server dies while its tasks stand in the middle of staging, held by a lock there."""
    with staging_held(arena, recovery) as process:
        arena.servers.spark.kill()
    arena.servers.spark.start()
    process.wait(ROUND_SECONDS)
    return f"Spark was killed during staging; the worker ended with {process.returncode}"


def executor_lost(arena: Arena, recovery: Recovery) -> str:
    """The Python process of each running Spark task is killed in the middle of staging: Spark tries the tasks again."""
    with staging_held(arena, recovery) as process:
        assert arena.servers.spark.process is not None
        tasks = [
            child
            for child in psutil.Process(arena.servers.spark.process.pid).children(recursive=True)
            if _is_task(child)
        ]
        for child in tasks:
            with contextlib.suppress(psutil.NoSuchProcess):  # an idle one may end by itself
                child.kill()
    process.wait(ROUND_SECONDS)
    return (
        f"{len(tasks)} Python processes of Spark were killed during staging; the worker ended with {process.returncode}"
    )


def _is_task(process: psutil.Process) -> bool:
    """Whether it is a Python process of a Spark task, not the daemon that forks them."""
    try:
        return "python" in process.name() and not process.children()
    except psutil.NoSuchProcess:
        return False


@contextmanager
def staging_held(arena: Arena, recovery: Recovery) -> Iterator[Forked]:
    """A worker whose staging tasks wait for a lock on the sink's staging while the block runs."""
    process, gate = arena.held_worker(recovery, Point.AFTER_ARM)
    with psycopg.connect(arena.world.sink_dsn) as holder:
        holder.execute("LOCK TABLE fencepost.staged IN ACCESS EXCLUSIVE MODE")
        gate.touch()
        with psycopg.connect(arena.world.sink_dsn, autocommit=True) as looker:
            waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'fencepost.staged'::regclass)"
            if not wait_until(lambda: looker.execute(waits).fetchone() == (True,), 60):
                raise Wrong("nobody came to stage")
        yield process


def two_workers(arena: Arena, recovery: Recovery) -> str:
    """Two processes are handed the same intent at once: one takes it, the other goes home."""
    intent = intent_of(recovery)
    both = [arena.worker(intent, name) for name in ("left", "right")]
    codes = sorted(process.wait(ROUND_SECONDS) for process in both)
    if codes != [0, 4]:
        raise Wrong(f"two workers of one intent ended with {codes}")
    return "two workers were handed the same intent; one went home"


def paused_past_everything(arena: Arena, recovery: Recovery) -> str:
    """SIGSTOP before the fire; another worker recovers; SIGCONT: the fire is refused and says by whom and when."""
    process, gate = arena.held_worker(recovery, Point.BEFORE_FIRE)
    recovery.refresh_from_db()
    older = recovery.generation
    os.kill(process.pid, signal.SIGSTOP)
    arena.settle(recovery)
    newer = recovery.generations.filter(number__gt=older).earliest("number").number
    gate.touch()
    os.kill(process.pid, signal.SIGCONT)
    process.wait(ROUND_SECONDS)
    claim = Claim.objects.get(recovery=recovery, generation=older)
    if (claim.state, claim.superseded_by) != ("superseded", newer) or claim.superseded_at is None:
        raise Wrong(f"the paused worker's claim reads {claim.state} by {claim.superseded_by}")
    told = recovery.events.filter(kind=EventKind.FIRE_REFUSED, generation=older).first()
    who = Generation.objects.get(pipeline=recovery.pipeline, number=newer).asked_by
    wanted = (f"Superseded by generation {newer}", str(recovery.id), who, str(claim.superseded_at.year))
    if told is None or not all(part in told.says for part in wanted):
        raise Wrong(f"the refused fire is told as {told and told.says!r}, without one of {wanted}")
    return told.says


def worker_terminated(arena: Arena, recovery: Recovery) -> str:
    """SIGTERM to a Celery worker in the middle of a recovery: it ends, and what it left is gone on with."""
    gate, pause = arena.gate(Point.BEFORE_FIRE)
    with celery(arena, FENCEPOST_PAUSE=pause) as process:
        wake(arena, recovery)
        _reached(gate)
        os.kill(process.pid, signal.SIGTERM)
        gate.touch()
        code = process.wait(ROUND_SECONDS)
    return f"a Celery worker was told to end before the fire and ended with {code}"


def worker_suspended(arena: Arena, recovery: Recovery) -> str:
    """SIGSTOP inside the fire's transaction: the server ends it, another worker recovers; SIGCONT: nothing comes twice."""
    process, gate = arena.held_worker(recovery, Point.DURING_FIRE)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        arena.settle(recovery)
    finally:
        gate.touch()
        os.kill(process.pid, signal.SIGCONT)
    return f"a worker was suspended inside its fire, and went on later; it ended with {process.wait(ROUND_SECONDS)}"


def slow_relay(arena: Arena, recovery: Recovery) -> str:
    """A relay's transaction is inside the sink when the claim arrives: the claim waits for it, or names it and returns."""
    late = f"{arena.round}-late"
    arena.world.commit([late])
    arena.keys.append(late)
    row = arena.world.batch([late]).to_pylist()[0]
    is_short = arena.chance.random() < 0.5
    with psycopg.connect(arena.world.sink_dsn, application_name="slow relay") as relay:
        word = relay.execute(
            "SELECT fencepost.deliver(%s, '0', %s, %s, %s, %s, %s, %s::jsonb)",
            (arena.relay, *(row[name] for name in ("position", "ordinal", "event_id", "op", "key", "content"))),
        ).fetchone()
        if word != ("accepted",):
            raise Wrong(f"the slow relay was answered {word}")
        process = arena.worker(intent_of(recovery), "first")
        with psycopg.connect(arena.world.sink_dsn, autocommit=True) as looker:
            waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'relation' AND NOT granted)"
            if not wait_until(lambda: looker.execute(waits).fetchone() == (True,), 60):
                raise Wrong("the claim did not wait for the transaction inside the sink")
        if not is_short:
            process.wait(ROUND_SECONDS)
            intent = intent_of(recovery)
            if intent.state != IntentState.QUEUED or "slow relay" not in str(intent.error):
                raise Wrong(f"the claim should have named the slow relay: {intent.state} {intent.error}")
    process.wait(ROUND_SECONDS)
    return f"a claim {'waited for' if is_short else 'named, and gave up on,'} a slow relay"


def redis_lost(arena: Arena, recovery: Recovery) -> str:
    """Redis dies with all it holds while a Celery worker recovers, and comes back empty: the work goes on."""
    gate, pause = arena.gate(Point.BEFORE_ARM)
    with celery(arena, FENCEPOST_PAUSE=pause) as process:
        wake(arena, recovery)
        _reached(gate)
        arena.servers.redis.restart()
        gate.touch()
        _ended(recovery, process)
    return "Redis was killed and emptied in the middle; the Celery worker went on"


def wakeup_lost(arena: Arena, recovery: Recovery) -> str:
    """The wake-up is lost with Redis before anybody took the intent: the sweep wakes a worker again."""
    wake(arena, recovery)
    arena.servers.redis.restart()
    with celery(arena) as process, redis_of(arena):
        intents_sweep(timezone.now() + dt.timedelta(seconds=11))
        _ended(recovery, process)
    return "the wake-up was lost with Redis; the sweep woke a worker"


def redelivered(arena: Arena, recovery: Recovery) -> str:
    """Celery delivers the running task again, and again: one does the work."""
    gate, pause = arena.gate(Point.BEFORE_FIRE)
    with celery(arena, concurrency=2, FENCEPOST_PAUSE=pause) as process:
        wake(arena, recovery)
        _reached(gate)
        for _ in range(3):
            wake(arena, recovery)
        gate.touch()
        _ended(recovery, process)
    if recovery.generations.count() != recovery.batches:
        raise Wrong(f"a redelivered task took {recovery.generations.count()} generations")
    return "a running task was delivered three times more; one did the work"


def terminated(arena: Arena, recovery: Recovery) -> str:
    """SIGTERM to a Celery worker in the middle of a step: it gives the intent back within seconds, and another goes on."""
    gate, pause = arena.gate(Point.BEFORE_ARM)
    with celery(arena, FENCEPOST_PAUSE=pause) as process:
        wake(arena, recovery)
        _reached(gate)
        process.terminate()
        process.wait(ROUND_SECONDS)
        if (intent := intent_of(recovery)).state != IntentState.QUEUED:
            raise Wrong(f"the worker that was told to end left the intent {intent.state}")
    arena.settle(recovery)
    return "a worker was told to end under an open claim; it gave the intent back, and another ended the recovery"


@contextmanager
def celery(arena: Arena, concurrency: int = 1, **env: str) -> Iterator[Forked]:
    command = ["celery", "-A", "workers.celery", "worker", "--queues", "spark,default", "--without-mingle"]
    process = forked(
        *command,
        "--without-gossip",
        "--concurrency",
        str(concurrency),
        env={
            **os.environ,
            "REDIS_URL": arena.servers.redis.url,
            "FENCEPOST_EVIDENCE_DIR": str(arena.directory / "evidence"),
            **env,
        },
        stdout=subprocess.DEVNULL,
        stderr=(arena.directory / "workers.log").open("ab"),
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):  # it ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def redis_of(arena: Arena) -> Iterator[None]:
    from django.conf import settings

    settings.REDIS_URL = arena.servers.redis.url
    try:
        yield
    finally:
        settings.REDIS_URL = ""


def wake(arena: Arena, recovery: Recovery) -> None:
    intent = intent_of(recovery)
    with redis_of(arena):
        if not intent_wake(str(intent.id), intent.action):
            raise Wrong("the broker did not take the wake-up")


def _reached(gate: Any) -> None:
    from tests.faults.processes import reached

    reached(gate)


def _ended(recovery: Recovery, process: Forked) -> None:
    """Wait until the Celery worker has ended the recovery by itself."""
    waiting = threading.Event()
    for _ in range(int(ROUND_SECONDS * 10)):
        recovery.refresh_from_db()
        if recovery.finished_at is not None:
            return
        if process.poll() is not None:
            raise Wrong(f"the Celery worker ended with {process.returncode}")
        waiting.wait(0.1)
    raise Wrong(f"the Celery worker did not end the recovery: {recovery.state} {recovery.problem}")


INFRASTRUCTURE: Mapping[str, Fault] = {
    "sink_restarted_during_the_read": partial(sink_restarted, Point.DURING_READ),
    "sink_restarted_during_staging": partial(sink_restarted, Point.DURING_STAGING),
    "sink_restarted_during_the_fire": partial(sink_restarted, Point.DURING_FIRE),
    "control_restarted_before_arming": partial(control_restarted, Point.BEFORE_ARM),
    "control_restarted_after_the_fire": partial(control_restarted, Point.AFTER_FIRE),
    "spark_killed_during_the_read": spark_killed_reading,
    "spark_killed_during_staging": spark_killed_staging,
    "executor_lost": executor_lost,
    "task_speculated": task_speculated,
    "task_speculated_past_the_fire": task_speculated_past_the_fire,
    "two_workers_with_one_intent": two_workers,
    "worker_paused_past_everything": paused_past_everything,
    "slow_relay_inside_the_sink": slow_relay,
    "redis_lost_in_the_middle": redis_lost,
    "wakeup_lost_with_redis": wakeup_lost,
    "running_task_redelivered": redelivered,
    "worker_terminated_in_a_step": terminated,
}
CRASHES: Mapping[str, Fault] = {
    f"killed_at_{point.value}": partial(crash_at, point) for point in Point if "." not in point.value
}
ENDS: Mapping[str, Fault] = {
    "silent_proxy": wire.silent_proxy,
    "reply_cut": wire.reply_cut,
    "reply_delayed": wire.reply_delayed,
    "record_vacuumed": limits.record_vacuumed,
    "record_altered": limits.record_altered,
    "evidence_disk_full": limits.evidence_disk_full,
    "statement_timeout": limits.statement_timeout,
    "transaction_timeout": limits.transaction_timeout,
    "two_control_planes": planes.two_control_planes,
    "worker_terminated": worker_terminated,
    "worker_suspended": worker_suspended,
}
"""What each must come to has a test of its own; here they come in any order."""
FAULTS: Mapping[str, Fault] = {**INFRASTRUCTURE, **ENDS, **CRASHES}
