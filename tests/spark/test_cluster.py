"""A standalone cluster that is not ours: two executors without our code, and evidence in a bucket.

One cluster for all of it: starting it takes longer than everything that is done with it.
"""

from __future__ import annotations

import io
import json
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pyarrow as pa
import pytest
from django.core.management import call_command
from django.utils import timezone
from pyspark.errors import PySparkException

from recovery_api.domain.errors import EngineLacks, EvidenceUnwritable
from recovery_api.models import EvidencePlace, Intent, RecoveryOutcome
from recovery_api.services.audits import audit_request
from tests.buckets import ENVIRONMENT, Bucket, bucket_served, url_of
from tests.chaos.cluster import Cluster
from tests.integration.recovery.world import World, run, world_make
from workers.embedded.processes import wait_until
from workers.embedded.services import port_free
from workers.evidence.ranges import EndSpec
from workers.evidence.store import part_write
from workers.faults import Point
from workers.runners import intent_run
from workers.spark import session as engine
from workers.spark.checking import reach_check
from workers.spark.shipping import OWN_ENGINE, code_archive, executors_look, lack_told, lacks_of
from workers.spark.tasks import summary_row, tasks_run

pytestmark = [pytest.mark.slow, pytest.mark.spark]

KEYS = [f"e{number}" for number in range(40)]


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with bucket_served() as served:
        yield served


@contextmanager
def at(remote: str) -> Iterator[None]:
    """The process's engine is this one, and no session of another is left."""
    engine.session_drop()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SPARK_REMOTE", remote)
        try:
            yield
        finally:
            engine.session_drop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in ENVIRONMENT.items():  # executors have the environment of the workers that start them
            patched.setenv(name, value)
        with Cluster(tmp_path_factory.mktemp("cluster") / "spark", is_strange=True) as started, at(started.url):
            yield started


@pytest.fixture
def world(
    transactional_db: None,
    database_factory: Callable[[str], str],
    tmp_path: Path,
    cluster: Cluster,
    bucket: Bucket,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> World:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    settings.REDIS_URL = ""
    settings.FENCEPOST_IN_PROCESS_ROWS = 0
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path / "evidence"
    settings.FENCEPOST_EVIDENCE_URL = bucket.url
    return world_make(database_factory, tmp_path)


def checked(*names: str) -> tuple[int, dict[str, Any]]:
    """What `check_engine` ends with, and what it says."""
    told = io.StringIO()
    code = 0
    try:
        call_command("check_engine", *names, json=True, stdout=told, stderr=io.StringIO())
    except SystemExit as ended:
        code = int(str(ended.code))
    return code, json.loads(told.getvalue())


def test_an_incident_ends_right_at_executors_that_had_nothing_of_ours(
    world: World, bucket: Bucket, settings: Any
) -> None:
    world.commit(KEYS)
    world.deliver(KEYS[::2])
    audit = world.audit()
    assert (audit.status, audit.lost_count) == ("owed", 20), audit.says
    assert Intent.objects.get(pk=audit.intent_id).spark_session_id
    recovery = world.request(world.approve(world.plan()))
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 20), recovery.says
    assert not list(Path(settings.FENCEPOST_EVIDENCE_DIR).rglob("*.parquet"))
    named = {row[2] for place in EvidencePlace.objects.all() for row in place.manifest}
    assert named and named <= {name.rpartition("/")[2] for name in bucket.names()}
    code, found = checked(world.pipeline.name)
    assert (code, found["lacks"]) == (0, []), found
    assert len(found["executors"]) == 2, "both workers' executors were looked at"
    source, sink = world.pipeline.source.name, world.pipeline.sink.name
    assert found["reached"] == ["evidence at s3://evidence/run", f"source {source}", f"sink {sink}"]


def test_an_executor_killed_in_the_middle_of_staging_costs_nothing(
    world: World, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.commit(KEYS)
    recovery = world.request(world.approve(world.plan()))
    gate, killed = tmp_path / "gate", list[int]()
    monkeypatch.setenv("FENCEPOST_PAUSE", f"{Point.AFTER_ARM.value}:{gate}")

    def kill() -> None:
        """Holds what staging writes to until a task waits for it; then its executor dies, and it may go on."""
        waiting = """SELECT a.client_port FROM pg_locks l JOIN pg_stat_activity a USING (pid)
            WHERE NOT l.granted AND l.relation = 'fencepost.staged'::regclass"""
        try:
            with (
                psycopg.connect(world.sink_dsn, autocommit=True) as looker,
                psycopg.connect(world.sink_dsn) as holder,
            ):
                assert wait_until(lambda: gate.with_name("gate.reached").exists(), 120)
                holder.execute("LOCK TABLE fencepost.staged IN ACCESS EXCLUSIVE MODE")
                gate.touch()
                assert wait_until(lambda: bool(looker.execute(waiting).fetchone()), 60)
                ((port,), *_) = looker.execute(waiting).fetchall()
                executor, *_ = cluster.executor_of(_client_of(port))
                killed.append(executor.pid)
                executor.kill()
                executor.wait(30)
        finally:
            gate.touch()

    killer = threading.Thread(target=kill)
    killer.start()
    run(recovery.intents.get())
    killer.join()
    recovery.refresh_from_db()
    assert len(killed) == 1, "an executor was killed"
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 40), recovery.says
    assert world.audit().status == "exactly_once"


def _client_of(port: int) -> int:
    return next(
        one.pid
        for one in psutil.net_connections("tcp")
        if one.pid and one.laddr and one.laddr.port == port and one.status == psutil.CONN_ESTABLISHED
    )


def test_what_executors_do_not_reach_is_said_by_the_check_and_by_the_job(
    world: World, settings: Any, monkeypatch: pytest.MonkeyPatch, bucket: Bucket
) -> None:
    world.commit(KEYS[:3])
    known = world.pipeline.source.options["connection"]
    monkeypatch.setenv("FENCEPOST_END_HERE_ALONE", Path(known.removeprefix("file:")).read_text())
    lacking_credential = "env:FENCEPOST_END_HERE_ALONE: the environment variable is not set"
    world.pipeline.source.options = {**world.pipeline.source.options, "connection": "env:FENCEPOST_END_HERE_ALONE"}
    world.pipeline.source.save()
    code, found = checked(world.pipeline.name)
    assert code == 1 and len(found["lacks"]) == 1 and lacking_credential in found["lacks"][0], found
    assert found["lacks"][0].startswith("An executor does not reach source ")
    assert lacking_credential in failed(world)
    away = Path(known.removeprefix("file:")).with_name("away.dsn")
    away.write_text(f"host=127.0.0.1 port={port_free()} user=nobody dbname=none")
    world.pipeline.source.options = {**world.pipeline.source.options, "connection": known}
    world.pipeline.source.save()
    world.pipeline.sink.options = {**world.pipeline.sink.options, "connection": f"file:{away}"}
    world.pipeline.sink.save()
    code, found = checked(world.pipeline.name)
    assert code == 1 and any("does not reach sink" in one and "Cannot reach" in one for one in found["lacks"]), found
    monkeypatch.setenv("FENCEPOST_END_S3_HERE", ENVIRONMENT["FENCEPOST_END_S3_KEY"])
    settings.FENCEPOST_EVIDENCE_URL = bucket.url.replace("env:FENCEPOST_END_S3_KEY", "env:FENCEPOST_END_S3_HERE")
    code, found = checked(world.pipeline.name)
    lacking_key = "env:FENCEPOST_END_S3_HERE: the environment variable is not set"
    assert code == 1 and any("evidence at s3://evidence/run" in one and lacking_key in one for one in found["lacks"])


def failed(world: World) -> str:
    """What an audit of it ends with."""
    intent = audit_request(world.pipeline, actor="ada", now=timezone.now(), wake=False)
    intent_run(str(intent.id), "test")
    intent.refresh_from_db()
    assert intent.error is not None, intent.result
    return str(intent.error["text"])


def test_a_store_that_does_not_answer_tasks_fails_their_job_in_its_own_words(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a task met travels as a row, and is the same error here."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    nowhere = url_of(port_free())

    def put(batches: Any) -> Any:
        table = pa.table({"position": [1]})
        for batch in batches:
            index = batch.column(0)[0].as_py()
            yield summary_row(index, "", lambda: {"n": len(part_write(nowhere, "part", 0, table))})

    with pytest.raises(EvidenceUnwritable, match="the store does not answer"):
        tasks_run(engine.session_get(), 1, put)


def test_an_executor_of_another_python_is_said(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The executors stay as they are: it is this process that says to be another Python, and they that refuse it."""
    session, archive = engine.session_get(), code_archive()
    Version = namedtuple("Version", "major minor micro releaselevel serial")
    with monkeypatch.context() as patched, engine.engine_errors_mapped():
        patched.setattr(sys, "version_info", Version(3, 99, 0, "final", 0))
        with pytest.raises(PySparkException) as refused:
            executors_look(session, archive.name)
    said = lack_told(str(refused.value))
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert said == f"An executor runs Python {here}, and this is Python 3.99: start both with the same minor version."


def test_an_executor_without_our_code_or_a_package_is_said_by_a_look_and_by_a_job(
    cluster: Cluster, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    engine.session_drop()
    monkeypatch.setenv(OWN_ENGINE, cluster.url)  # so that nothing is sent to this session
    bare, archive = engine.session_get(), code_archive()
    (said,) = lacks_of(executors_look(bare, archive.name))
    assert said.startswith("An executor has not our code, though it was sent (it is not there)")
    with pytest.raises(EngineLacks, match="An executor has not our code"):
        reach_check(bare, bucket.url, {}, {})
    stub = tmp_path / "psycopg.py"
    stub.write_text("raise ModuleNotFoundError(\"No module named 'psycopg'\", name='psycopg')\n")
    with archive.file() as file:
        bare.addArtifacts(str(file), str(stub), pyfile=True)
    (said,) = lacks_of(executors_look(bare, archive.name))
    assert said.startswith("An executor lacks the package psycopg: install it where Spark's Python runs (")
    outbox = {"connection": "env:FENCEPOST_END_NONE", "table": "outbox", "coordinate": ["id"], "event_id": "id"}
    with pytest.raises(EngineLacks, match="An executor lacks the package psycopg: install it"):
        reach_check(bare, bucket.url, {"orders": EndSpec("postgresql_outbox", outbox)}, {})
    engine.session_drop()
