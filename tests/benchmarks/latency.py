"""From a request's row to a running audit on a warm worker: a real Celery worker, broker, database and engine."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
from django.core.management import call_command
from django.utils import timezone

from recovery_api.models import Intent, Pipeline
from recovery_api.services.audits import audit_request
from tests.benchmarks.measure import databases, say
from tests.integration.recovery.world import world_make

READING = "reading both ends"
NOTIFY = """
CREATE OR REPLACE FUNCTION intent_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('intent_changed', coalesce(NEW.progress ->> 'step', '') || '/' || NEW.state);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER intent_changed AFTER UPDATE ON recovery_api_intent
    FOR EACH ROW EXECUTE FUNCTION intent_changed()"""


def run(count: int) -> None:
    with databases("control") as dsns, tempfile.TemporaryDirectory() as folder:
        use_database(dsns["control"])
        call_command("migrate", verbosity=0)
        made: list[str] = []
        with databases("orders", "mail") as ends:
            world = world_make(lambda hint: made.append(hint) or ends[hint], Path(folder))  # type: ignore[func-returns-value]
            for number in range(50):
                world.commit([f"k{number}"])
            worker = _worker(dsns["control"])
            try:
                print("\nFrom a request row to a running audit, warm worker")
                taken = [_once(world.pipeline, dsns["control"]) for _ in range(count + 2)][2:]
            finally:
                worker.terminate()
                worker.wait()
        print(f"median {statistics.median(taken):.2f} s, range {min(taken):.2f} to {max(taken):.2f}", flush=True)


def _once(pipeline: Pipeline, dsn: str) -> float:
    """Seconds from the committed row to the worker's first read of both ends, as the row's own changes tell."""
    with psycopg.connect(dsn, autocommit=True) as changes:
        changes.execute(NOTIFY)
        changes.execute("LISTEN intent_changed")
        began = time.perf_counter()
        audit_request(pipeline, actor="bench", now=timezone.now())
        running: float | None = None
        for change in changes.notifies(timeout=60):
            step, _, state = change.payload.rpartition("/")
            if running is None and step in (READING, "recording"):
                running = time.perf_counter() - began
            if state in ("done", "failed"):
                assert state == "done", Intent.objects.latest("created_at").error
                say(f"  running after {running or 0:.2f} s, done after {time.perf_counter() - began:.2f} s")
                return running or time.perf_counter() - began
        raise AssertionError("no worker ended the audit")


def _worker(dsn: str) -> subprocess.Popen[bytes]:
    from tests.conftest import database_url

    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "workers.celery",
        "worker",
        "--concurrency=1",
        "--queues=spark,default",
    ]
    return subprocess.Popen(
        [*command, "--without-mingle", "--without-gossip"],
        env={**os.environ, "DATABASE_URL": database_url(dsn)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def use_database(dsn: str) -> None:
    from django.db import connections
    from psycopg.conninfo import conninfo_to_dict

    connections.close_all()
    part = conninfo_to_dict(dsn)
    for settings in (connections.databases["default"], connections["default"].settings_dict):
        settings.update(NAME=part["dbname"])
