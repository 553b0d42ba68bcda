"""L1: an engine behind a wire that swallows packets is given up, and a job longer than any one stream is not."""

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
import workers.spark.calls as calls
from recovery_api.domain.errors import EngineUnavailable
from workers.spark.session import engine_errors_mapped, job_tagged, session_get

calls.STREAM_SECONDS = float(sys.argv[3])
seconds = float(sys.argv[2])

def slow(batches):
    import threading
    threading.Event().wait(seconds)
    yield from batches

try:
    session = session_get()
    with engine_errors_mapped(), job_tagged(session, sys.argv[1]):
        print(session.range(1, numPartitions=1).mapInArrow(slow, "id long").count())
except EngineUnavailable:
    print("given up")
"""


def job(remote: str, tag: str, *, seconds: float, stream_seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", JOB, tag, str(seconds), str(stream_seconds)],
        cwd=PROJECT,
        env={**os.environ, "SPARK_REMOTE": remote},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(process: subprocess.Popen[str]) -> str:
    said, errors = process.communicate()
    assert process.returncode == 0, errors
    return said.strip()


def test_l1_a_job_longer_than_a_stream_of_answers_ends_well(spark_remote: str) -> None:
    assert told(job(spark_remote, "long-job", seconds=6, stream_seconds=2)) == "1"


def test_l1_an_engine_whose_answers_are_swallowed_is_given_up(spark_remote: str) -> None:
    """The client's own keepalive notices; here it is set short, so that nobody waits for its minute. New connections are
    refused then: were they swallowed, too, each retry would take gRPC's 20 s to find that out."""
    address = urlsplit(spark_remote)
    with Proxy(str(address.hostname), int(address.port or 0)) as proxy:
        parameters = spark_remote.partition(";")[2]
        quick = "grpc_keepalive_time_ms=10000;grpc_keepalive_timeout_ms=2000"
        remote = f"sc://localhost:{proxy.port}/;{parameters};{quick}"
        broken = proxy.break_at(Wire.REPLY_SWALLOWED, b"swallowed-job", is_for_all=True)
        process = job(remote, "swallowed-job", seconds=60, stream_seconds=120)
        assert broken.came.wait(60)
        proxy.refuse()
        assert told(process) == "given up"
