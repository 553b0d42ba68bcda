"""Worker, engine and broker run, and are killed: the pager, which needs the control database alone, tells of each, and of what is
owed; and it comes back with its database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from recovery_api.domain.alerts.signatures import is_signed
from recovery_api.models import Worker
from recovery_api.selectors.clock import now_get
from recovery_api.services.audits import audit_request
from recovery_api.services.destinations import destination_add
from tests.chaos.servers import Server
from tests.faults.processes import environment
from tests.integration.alerts.conftest import Receiver, judged, receiver
from tests.integration.pages.fleet import pipeline_make
from tests.zygote import forked
from workers.embedded.redis import Redis
from workers.embedded.spark import Spark

__all__ = ["receiver"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.django_db(transaction=True)]
LONGEST_SECONDS = 240
CAUSES = {"owed", "no_worker", "no_engine", "no_broker"}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """A broker and an engine of this test's own."""
    made = (Server(Redis, tmp_path / "redis"), Server(Spark, tmp_path / "spark"))
    try:
        for server in made:
            server.launch()
        for server in made:
            server.wait()
        yield made
    finally:
        for server in made:
            server.close()


def until(is_so: Callable[[], bool], what: str) -> None:
    pause, deadline = threading.Event(), time.monotonic() + LONGEST_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, what
        pause.wait(0.2)


def pages(receiver: Receiver) -> set[str]:
    """The causes of the pages that came in, each rightly signed."""
    causes = set()
    for path, headers, body in list(receiver.requests):
        if path != "/beat":
            named = [headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature")]
            assert is_signed("whsec_c2VjcmV0", *named, body, now_get())
            causes.add(json.loads(body)["cause"])
    return causes


@contextmanager
def database_away() -> Iterator[None]:
    """Nobody but this test gets into the control database, and who was in is thrown out."""
    own, name = connection.settings_dict, sql.Identifier(connection.settings_dict["NAME"])
    with psycopg.connect(
        host=own["HOST"],
        port=own["PORT"],
        user=own["USER"],
        password=own["PASSWORD"],
        dbname="postgres",
        autocommit=True,
    ) as other:
        try:
            other.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
            mine = connection.cursor().execute("SELECT pg_backend_pid()").fetchone()[0]
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s"
            other.execute(others, [own["NAME"], mine])
            yield
        finally:
            other.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))


def test_worker_engine_and_broker_are_killed_and_every_page_goes_out_and_the_database_may_be_away(
    servers: tuple[Server, Server], receiver: Receiver, tmp_path: Path
) -> None:
    redis, spark = servers
    now = now_get()
    pipeline = pipeline_make("orders", now, options={"is_scheduled": False, "stale_after_seconds": 86_400})
    destination_add("hook", "json", address=receiver.url, secret="env:FENCEPOST_END_HOOK_SECRET", actor="root", now=now)
    env = environment(
        REDIS_URL=redis.url,
        SPARK_REMOTE=spark.url,
        FENCEPOST_END_HOOK_SECRET="whsec_c2VjcmV0",
        FENCEPOST_ALERT_PRIVATE_ADDRESSES="127.0.0.1",
        FENCEPOST_HEARTBEAT_URL=f"{receiver.url}/beat",
    )
    celery = ["celery", "-A", "workers.celery", "worker", "--concurrency", "1", "--queues", "spark,default"]
    worker = forked(*celery, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    log = tmp_path / "pager.log"
    with log.open("w") as told:
        pager = subprocess.Popen([sys.executable, "manage.py", "pager"], env=env, stderr=told)
    try:
        until(Worker.objects.exists, "the worker did not come")
        until(lambda: any(path == "/beat" for path, _, _ in receiver.requests), "the pager did not look")
        assert pages(receiver) == set(), "all of them are there, and nobody is paged"

        os.killpg(worker.pid, signal.SIGKILL)
        redis.kill()
        spark.kill()
        judged(pipeline, "owed", now_get())
        audit_request(pipeline, actor="ada", now=now_get(), wake=False)
        until(lambda: pages(receiver) >= CAUSES, f"paged for {sorted(pages(receiver))} alone")
        assert pages(receiver) == CAUSES

        other = pipeline_make("letters", now, options={"is_scheduled": False, "stale_after_seconds": 86_400})
        with database_away():
            until(lambda: log.read_text().count("the control database is away") > 1, "the pager did not notice")
            judged(other, "owed", now_get())
        until(lambda: "letters" in named(receiver), "the pager did not come back with its database")
    finally:
        worker.kill()
        pager.send_signal(signal.SIGTERM)
        pager.wait(timeout=60)
    assert pager.returncode == 0, log.read_text()


def named(receiver: Receiver) -> str:
    """What the pages say."""
    return " ".join(body.decode() for path, _, body in list(receiver.requests) if path != "/beat")
