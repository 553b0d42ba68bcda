"""A Spark task, or the whole engine, that dies inside an append: whoever comes next neither doubles nor loses."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg
import pytest

from recovery_api.models import Intent, Recovery, RecoveryOutcome
from tests.faults.processes import environment
from tests.integration.recovery.table_world import ONLY, TableWorld, drained, table_world_make
from workers.faults import Point

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]  # an engine of its own takes its time

KEYS = ["e1", "e2", "e3", "e4"]
INSIDE = (Point.DURING_APPEND, Point.AFTER_APPEND)
LONGEST_SECONDS = 270
"""Of an engine's start on a busy machine, and a recovery."""
OWN_ENGINE = [sys.executable, "-m", "workers.embedded", "--temporary", "--only", "spark", "--"]

HELD_UP = """
CREATE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    WHILE NOT pg_try_advisory_xact_lock_shared(1) LOOP PERFORM pg_sleep(0.01); END LOOP;
    RETURN NULL;
END$$;
CREATE TRIGGER held_up AFTER INSERT ON mails FOR EACH STATEMENT EXECUTE FUNCTION held_up()
"""
"""An insert that goes on at the server, whatever its client does and whatever a lock may take, until the gate is opened."""
AT_THE_GATE: LiteralString = (
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep')"
)
AT_THE_TABLE: LiteralString = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'mails'::regclass"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)


@pytest.fixture
def table(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any) -> TableWorld:
    world = table_world_make(database_factory, tmp_path, claim_wait_seconds=60)
    world.commit(KEYS)
    world.deliver(["e2"])
    return world


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def worker() -> Iterator[Start]:
    """Starts a worker of a recovery; `engine`: what starts its own. None outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start(recovery: Recovery, name: str, env: dict[str, str], engine: Sequence[str] = ()) -> subprocess.Popen[str]:
        command = [*engine, sys.executable, "-m", "tests.faults.run_intent", str(recovery.intents.get().id), name]
        started.append(subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=LONGEST_SECONDS)
    return process.returncode, errors


def own_engine(**more: str) -> dict[str, str]:
    """The environment of a worker that starts an engine of its own, whose tasks inherit `more`."""
    env = environment(**more)
    del env["SPARK_REMOTE"]
    return env


def until(table: TableWorld, question: LiteralString, process: subprocess.Popen[str]) -> None:
    waiting, deadline = threading.Event(), time.monotonic() + LONGEST_SECONDS
    with psycopg.connect(table.sink_dsn, autocommit=True) as looker:
        while looker.execute(question).fetchone() != (True,):
            assert process.poll() is None and time.monotonic() < deadline, question
            waiting.wait(0.05)


def test_tasks_that_die_with_their_rows_inserted_and_committed_double_and_lose_nothing(
    table: TableWorld, worker: Start, tmp_path: Path
) -> None:
    """The first attempt is killed before its commit, the second after it, before anybody heard; the third answers."""
    recovery = table.ask(table.approve(table.plan()), drained(), ONLY)
    died = {point: tmp_path / f"died-{point.name}" for point in INSIDE}
    armed = ";".join(f"{point.value}:{marker}" for point, marker in died.items())
    code, errors = finish(worker(recovery, "alone", own_engine(FENCEPOST_CRASH=armed), OWN_ENGINE))
    assert all(marker.exists() for marker in died.values()), errors
    assert code == 0, errors
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    assert table.accepted_keys() == KEYS
    assert (recovery.landed_count, recovery.absorbed_count) == (0, 3), "the third attempt found them there"


def test_an_engine_that_dies_inside_an_append_leaves_a_session_that_the_successor_waits_for(
    table: TableWorld, worker: Start
) -> None:
    """Its backend goes on inserting without a client, and holds the table, until it finds that nobody is there."""
    with psycopg.connect(table.sink_dsn, autocommit=True) as admin:
        admin.execute(HELD_UP)
        recovery = table.ask(table.approve(table.plan()), drained(), ONLY)
        admin.execute("SELECT pg_advisory_lock(1)")
        first = worker(recovery, "first", own_engine(), OWN_ENGINE)
        until(table, AT_THE_GATE, first)
        for child in psutil.Process(first.pid).children(recursive=True):
            if child.name() == "java":
                child.kill()
        code, errors = finish(first)
        assert code == 0, errors
        intent = recovery.intents.get()
        assert (intent.state, intent.error["code"]) == ("queued", "engine_unavailable"), errors
        Intent.objects.filter(pk=intent.pk).update(not_before=None)
        second = worker(recovery, "second", environment())
        until(table, AT_THE_TABLE, second)
        assert table.accepted_keys() == ["e2"]
        admin.execute("SELECT pg_advisory_unlock(1)")
        code, errors = finish(second)
    assert code == 0, errors
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    assert table.accepted_keys() == KEYS
    assert recovery.landed_count == 3
