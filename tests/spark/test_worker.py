"""The path of every piece of work: broker, a real prefork worker, Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery

PROJECT = Path(__file__).parents[2]
ANSWER_SECONDS = 120

pytestmark = pytest.mark.spark


@contextmanager
def worker(broker: str, log: Path, **env: str) -> Iterator[None]:
    """A worker on its own broker database, with the echo task beside the product's own."""
    command = [
        *(sys.executable, "-m", "celery", "-A", "workers.celery", "worker", "--concurrency", "1"),
        *("--queues", "spark,default", "--include", "tests.spark.echo_task"),
        *("--without-mingle", "--without-gossip", "--loglevel", "INFO"),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=PROJECT, env={**os.environ, "REDIS_URL": broker, **env}, stdout=output, stderr=output
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=60)


@pytest.fixture
def broker(redis_url: str) -> Iterator[str]:
    """A database of the broker that no other test uses."""
    url = redis_url.rpartition("/")[0] + "/7"
    with redis.Redis.from_url(url) as connection:
        connection.flushdb()
        yield url
        connection.flushdb()


@pytest.fixture
def echo(broker: str) -> Callable[[int, int], list[dict[str, Any]]]:
    """Sends `times` echoes of `count` and returns their answers."""

    def send(count: int, times: int) -> list[dict[str, Any]]:
        key = f"answers-{uuid.uuid4()}"
        app = Celery("tests", broker=broker, set_as_current=False)
        with app.connection_for_write() as connection:
            for _ in range(times):
                app.send_task(
                    "tests.echo", [count, broker, key], queue="spark", connection=connection, ignore_result=True
                )
        with redis.Redis.from_url(broker, socket_timeout=None) as waiting:
            answers = [waiting.blpop([key], timeout=ANSWER_SECONDS) for _ in range(times)]
        return [json.loads(answer[1]) for answer in answers if answer is not None]

    return send


def test_work_reaches_spark_through_broker_and_worker_and_one_process_keeps_one_session(
    broker: str, echo: Callable[[int, int], list[dict[str, Any]]], spark_remote: str, tmp_path: Path
) -> None:
    with worker(broker, tmp_path / "log"):
        first, second = echo(100, 2)
    assert first["total"] == second["total"] == 4950
    assert first["session"] == second["session"]
    assert first["pid"] == second["pid"] != os.getpid()


def test_work_whose_process_dies_is_handed_out_again(
    broker: str, echo: Callable[[int, int], list[dict[str, Any]]], spark_remote: str, tmp_path: Path
) -> None:
    marker = tmp_path / "died"
    with worker(broker, tmp_path / "log", FENCEPOST_CRASH=f"intent_taken:{marker}"):
        [answer] = echo(10, 1)
    assert marker.exists()
    assert answer["total"] == 45
