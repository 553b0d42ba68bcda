"""L1: an engine behind a wire that swallows packets is given up, and one that runs tasks is heard."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.proxy import Proxy, Wire

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(240)]

PROJECT = Path(__file__).parents[2]

JOB = """
import sys
from recovery_api.domain.errors import EngineUnavailable
from workers.connectors.progress import progress_heard
from workers.spark.session import engine_errors_mapped, job_tagged, session_get

seconds = float(sys.argv[2])

def slow(batches):
    import threading
    threading.Event().wait(seconds)
    yield from batches

beats = []
with progress_heard(lambda: beats.append(1)):
    try:
        session = session_get()
        with engine_errors_mapped(), job_tagged(session, sys.argv[1]):
            print(session.range(1, numPartitions=1).mapInArrow(slow, "id long").count(), end=" ")
    except EngineUnavailable:
        print("given up", end=" ")
print("heard" if beats else "not heard")
"""


def job(remote: str, tag: str, seconds: float) -> str:
    done = subprocess.run(
        [sys.executable, "-c", JOB, tag, str(seconds)],
        cwd=PROJECT,
        env={**os.environ, "SPARK_REMOTE": remote},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_l1_a_job_whose_tasks_run_is_heard(spark_remote: str) -> None:
    assert job(spark_remote, "heard", 5) == "1 heard"


def test_l1_an_engine_whose_answers_are_swallowed_is_given_up(spark_remote: str) -> None:
    """The client's own keepalive notices; here it is set to a second, so that nobody waits for its minute."""
    address = urlsplit(spark_remote)
    with Proxy(str(address.hostname), int(address.port or 0)) as proxy:
        parameters = spark_remote.partition(";")[2]
        quick = "grpc_keepalive_time_ms=10000;grpc_keepalive_timeout_ms=2000"
        remote = f"sc://127.0.0.1:{proxy.port}/;{parameters};{quick}"
        broken = proxy.break_at(Wire.REPLY_SWALLOWED, b"swallowed-job", is_for_all=True)
        assert job(remote, "swallowed-job", 60) == "given up not heard"
        assert broken.came.is_set()
