"""A real prefork worker: it is seen, it sweeps without a beat, it ends in seconds, and its log says what happened."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from recovery_api.models import IntentState, Plan, RecoveryOutcome, Worker
from tests.faults.processes import environment, reached
from tests.integration.recovery.test_steering import until
from tests.integration.recovery.world import World, run
from tests.zygote import Forked, forked
from workers.faults import Point
from workers.runners import defect_says

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@contextmanager
def celery(broker: str, log: Path, **env: str) -> Iterator[Forked]:
    command = ["celery", "-A", "workers.celery", "worker", "--concurrency", "1"]
    command += ["--queues", "spark,default", "--without-mingle", "--without-gossip"]
    with log.open("wb") as output:
        process = forked(*command, env=environment(REDIS_URL=broker, **env), stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=60)


@pytest.fixture
def broker(redis_url: str) -> Iterator[str]:
    url = redis_url.rpartition("/")[0] + "/8"
    with redis.Redis.from_url(url) as connection:
        connection.flushdb()
        yield url
        connection.flushdb()


def test_l10_sigterm_ends_a_worker_in_the_middle_of_a_recovery_and_others_may_take_it_at_once(
    world: World, broker: str, tmp_path: Path
) -> None:
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    intent, gate = recovery.intents.get(), tmp_path / "gate"
    with celery(broker, tmp_path / "log", FENCEPOST_PAUSE=f"{Point.AFTER_CLAIM.value}:{gate}") as worker:
        until(lambda: Worker.objects.filter(queues=["default", "spark"], stopping_at=None).exists())
        reached(gate)  # nobody sent a wake-up: the worker's own sweep did
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=60) == 0, (tmp_path / "log").read_text()
    intent.refresh_from_db()
    assert (intent.state, intent.not_before) == (IntentState.QUEUED, None)
    assert not Worker.objects.exists(), "it said that it ended"
    run(intent, "another")
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert world.accepted_keys() == ["e1", "e2"]


def test_u14_the_log_of_a_worker_has_the_level_asked_for_and_the_error_that_happened(
    world: World, broker: str, tmp_path: Path
) -> None:
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    Plan.objects.filter(id=recovery.plan_id).update(pins={})
    with celery(broker, tmp_path / "log", LOG_LEVEL="INFO"):
        until(lambda: type(recovery).objects.get(id=recovery.id).outcome)
        until(lambda: "ended by a defect" in (tmp_path / "log").read_text())
    log = (tmp_path / "log").read_text()
    assert "INFO celery" in log and "KeyError: 'safe'" in log
    assert "Unpickleable" not in log
    with celery(broker, tmp_path / "quiet", LOG_LEVEL="ERROR"):
        until(Worker.objects.exists)
    assert "INFO" not in (tmp_path / "quiet").read_text()


def test_u14_a_failed_spark_job_says_what_its_task_raised(spark: Any) -> None:
    def raises(batches: Any) -> Any:
        yield from batches
        raise ValueError("boom in a task")

    with pytest.raises(Exception) as failed:
        spark.range(1).mapInArrow(raises, "id long").toArrow()
    assert "ValueError in a task" in defect_says(failed.value) and "boom" not in defect_says(failed.value)
