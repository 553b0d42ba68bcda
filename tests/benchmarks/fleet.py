"""Many small pipelines, each with a little new, audited by their schedules and one ordinary worker; recoveries meanwhile.

Ten source databases with an outbox a pipeline, ten sink databases with a kit a pipeline, one Celery worker of two processes
with its own sweep, as `make worker` starts it. A feeder commits and accepts an event of each pipeline about once a minute;
one pipeline a database owes an event, and is planned and recovered while the audits go on.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db.models import Count, Max
from django.utils import timezone
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import kit_options
from recovery_api.models import Audit, Intent, IntentAction, Pipeline
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_approve, plan_request
from recovery_api.services.recoveries import recovery_request
from tests.benchmarks.increment import CONTENT, DIGEST
from tests.benchmarks.latency import use_database
from tests.benchmarks.measure import databases, say
from tests.integration.recovery.world import OUTBOX
from workers.connectors.sinks.kit.install import kit_install

DATABASES = 10
PROCESSES = 2
EVENTS = 50
"""Events of each pipeline at first."""

OWING = 0
"""The table of each database whose last event was not accepted."""

LIMIT = timedelta(minutes=15)
FEED_SECONDS = 60.0
RECOVER_SECONDS = 20.0
COMMIT = f"INSERT INTO {{}} (event_id, \"key\", content) SELECT 'e' || i, 'k' || i, {CONTENT} FROM generate_series(%s::bigint, %s::bigint) i"
ACCEPT = f"""
    INSERT INTO {{}}.accepted (lane, position, ordinal, generation, accepted_at, admitted_in, payload_digest, op, event_id, "key")
    SELECT '0', %s, i, 0, clock_timestamp(), pg_current_xact_id(), {DIGEST}, 'insert', 'e' || i, 'k' || i
    FROM (SELECT i, {CONTENT} AS content FROM generate_series(%s::bigint, %s::bigint) i) made"""


def run(sizes: Sequence[int], watched: timedelta = LIMIT) -> None:
    for pipelines in sizes:
        with databases("control") as control, tempfile.TemporaryDirectory() as folder:
            use_database(control["control"])
            call_command("migrate", verbosity=0)
            settings.FENCEPOST_EVIDENCE_DIR = Path(folder) / "evidence"
            with fleet_made(Path(folder), pipelines) as fleet:
                fleet.watch(control["control"], watched)


@contextmanager
def fleet_made(directory: Path, pipelines: int) -> Iterator[Fleet]:
    """The ends, made once and copied, and their pipelines, registered."""
    tables = max(pipelines // DATABASES, 1)
    say(f"making {pipelines:,} pipelines …")
    with databases(*(f"{end}{at}" for end in ("source", "sink") for at in range(DATABASES))) as dsns:
        _ends_make(dsns["source0"], dsns["sink0"], tables)
        for end in ("source", "sink"):
            for at in range(1, DATABASES):
                _copy(dsns[f"{end}0"], dsns[f"{end}{at}"])
        for at in range(DATABASES):
            _identities_part(dsns[f"sink{at}"], tables)
        for name, dsn in dsns.items():
            (directory / name).write_text(dsn)
        yield Fleet(directory, dsns, tables)


class Fleet:
    """`places`: of each pipeline its database, and its table there."""

    def __init__(self, directory: Path, dsns: dict[str, str], tables: int) -> None:
        self.directory, self.dsns = directory, dsns
        self.places = [(at, table) for at in range(DATABASES) for table in range(tables)]
        self.next = EVENTS + 1
        self.owing = [place for place in self.places if place[1] == OWING]
        self.pipelines = {place: self._register(*place) for place in self.places}
        self.waits: list[float] = []
        """Seconds from a recovery's request to the worker that takes it, and from a plan's."""

    def watch(self, control: str, watched: timedelta) -> None:
        """Everything runs for so long; what the schedules did meanwhile is told."""
        over = threading.Event()
        worker = _worker(control, str(settings.FENCEPOST_EVIDENCE_DIR))
        feeding = threading.Thread(target=self._feed, args=(over,))
        server = _postmaster(control)
        began, at_first = timezone.now(), (_processor_seconds(worker.pid), _processor_seconds(server))
        try:
            feeding.start()
            until = time.monotonic() + watched.total_seconds()
            for place in [*self.owing, None]:
                if place is not None:
                    self._recover(self.pipelines[place])
                over.wait(min(RECOVER_SECONDS, max(until - time.monotonic(), 0)))
                self._say(began)
            while time.monotonic() < until:
                over.wait(min(30.0, max(until - time.monotonic(), 0)))
                self._say(began)
            at_last = (_processor_seconds(worker.pid), _processor_seconds(server))
        finally:
            over.set()
            feeding.join()
            worker.terminate()
            worker.wait()
        self._tell(began, timezone.now(), [last - first for first, last in zip(at_first, at_last, strict=True)])

    def _say(self, began: datetime) -> None:
        audited = _judged(began).values("pipeline").distinct().count()
        say(f"  {(timezone.now() - began).total_seconds():.0f} s: {audited:,} of {len(self.places):,} audited")

    def _tell(self, began: datetime, ended: datetime, processor: list[float]) -> None:
        first: dict[Any, list[datetime]] = {}
        gaps: list[float] = []
        for pipeline, at in _judged(began).order_by("finished_at").values_list("pipeline", "finished_at"):
            if pipeline in first:
                gaps.append((at - first[pipeline][-1]).total_seconds())
            first.setdefault(pipeline, []).append(at)
        count = sum(map(len, first.values()))
        done = Intent.objects.filter(action=IntentAction.AUDIT, finished_at__gte=began)
        states = dict(done.values_list("state").annotate(Count("id")))
        took = [(one.finished_at - one.taken_at).total_seconds() for one in done if one.taken_at and one.finished_at]
        newest = _judged(began).values("pipeline").annotate(at=Max("finished_at")).values_list("at", flat=True)
        oldest = max(((ended - at).total_seconds() for at in newest), default=float("nan"))
        passed = (ended - began).total_seconds()
        print(f"\n{len(self.places):,} small pipelines, one worker of {PROCESSES} processes, {passed:.0f} s")
        print(
            f"audited: {len(first):,} of {len(self.places):,}; the last of them first after "
            f"{max(((each[0] - began).total_seconds() for each in first.values()), default=float('nan')):.0f} s"
        )
        print(
            f"verdicts {count:,} (intents {states}); between two of one pipeline: median "
            f"{statistics.median(gaps or [0]):.0f} s, most {max(gaps, default=0):.0f} s; the oldest verdict at the end "
            f"was {oldest:.0f} s old"
        )
        print(
            f"an audit took {statistics.median(took):.2f} s (most {max(took):.2f}); processor seconds an intent: worker "
            f"{processor[0] / max(len(took), 1):.2f}, PostgreSQL {processor[1] / max(len(took), 1):.2f}"
        )
        if self.waits:
            print(f"recoveries and plans asked meanwhile: {len(self.waits)}; taken after {statistics.median(self.waits):.2f} s, "
                  f"most {max(self.waits):.2f} s", flush=True)  # fmt: skip

    def _recover(self, pipeline: Pipeline) -> None:
        """Planned, approved and recovered, as people do it; how long each waited for a worker."""
        plan, intent = plan_request(pipeline, actor="ada", now=timezone.now())
        self._waited(intent)
        plan.refresh_from_db()
        approved = plan_approve(plan.id, plan.digest, "grace", timezone.now())
        recovery = recovery_request(approved.id, "the relay crashed", pipeline.name, "ada", now=timezone.now())
        self._waited(recovery.intents.get())

    def _waited(self, intent: Intent) -> None:
        limit = time.monotonic() + 120
        while intent.state not in ("done", "failed"):
            assert time.monotonic() < limit, (intent.state, intent.progress)
            threading.Event().wait(0.1)
            intent.refresh_from_db()
        assert intent.state == "done", intent.error
        assert intent.taken_at is not None
        self.waits.append((intent.taken_at - intent.created_at).total_seconds())

    def _feed(self, over: threading.Event) -> None:
        """One event each, committed and accepted, about once a minute."""
        while not over.is_set():
            began, number = time.monotonic(), self.next
            self.next += 1
            for at in range(DATABASES):
                with (
                    psycopg.connect(self.dsns[f"source{at}"]) as source,
                    psycopg.connect(self.dsns[f"sink{at}"], autocommit=True) as sink,
                ):
                    mine = [table for where, table in self.places if where == at]
                    transaction = _commit(source, mine, number, number)
                    _accept(sink, mine, transaction, number, number)
                if over.wait(FEED_SECONDS / DATABASES / 2):
                    return
            over.wait(max(FEED_SECONDS - (time.monotonic() - began), 0))

    def _register(self, at: int, table: int) -> Pipeline:
        now, name = timezone.now(), f"small-{at}-{table}"
        mapped = {"table": f"outbox_{table}", "coordinate": ["tx", "id"], "coordinate_spelling": "xid8_bigint"}
        named = {"event_id": "event_id", "key": "key", "op": "op", "content": "content", "committed_at": "created_at"}
        source_options = {"connection": f"file:{self.directory}/source{at}", **mapped, **named}
        sink_options = {"connection": f"file:{self.directory}/sink{at}", **_kit(table)}
        source = source_create(f"{name}-source", "postgresql_outbox", source_options, actor="bench", now=now)
        sink = sink_create(f"{name}-sink", "postgresql_kit", sink_options, actor="bench", now=now)
        return pipeline_create(name, source, sink, actor="bench", now=now)


def _judged(began: datetime) -> Any:
    return Audit.objects.filter(finished_at__gte=began, is_scheduled=True)


def _ends_make(source_dsn: str, sink_dsn: str, tables: int) -> None:
    """One source database and one sink database, all of whose events were accepted but one."""
    mine = range(tables)
    with psycopg.connect(source_dsn) as source:
        for table in mine:
            source.execute(OUTBOX.replace("CREATE TABLE outbox", f"CREATE TABLE outbox_{table}"))
        transaction = _commit(source, mine, 1, EVENTS)
    with psycopg.connect(sink_dsn, autocommit=True) as sink:
        for table in mine:
            options = options_parse(kind_get("postgresql_kit"), {"connection": "file:unused", **_kit(table)})
            kit_install(sink, kit_options(options))
        _accept(sink, mine, transaction, 1, EVENTS - 1)
        _accept(sink, [table for table in mine if table != OWING], transaction, EVENTS, EVENTS)


def _commit(source: psycopg.Connection[Any], tables: Sequence[int], low: int, high: int) -> int:
    row = source.execute("SELECT pg_current_xact_id()::text").fetchone()
    assert row is not None
    for table in tables:
        source.execute(sql.SQL(COMMIT).format(sql.Identifier(f"outbox_{table}")), (low, high))
    source.commit()
    return int(row[0])


def _accept(sink: psycopg.Connection[Any], tables: Sequence[int], transaction: int, low: int, high: int) -> None:
    for table in tables:
        sink.execute(sql.SQL(ACCEPT).format(_schema(table)), (transaction - 2**63, low, high))


def _kit(table: int) -> dict[str, Any]:
    return {"schema": f"fencepost_{table}", "prefix": "bench_fleet"}


def _schema(table: int) -> sql.Identifier:
    return sql.Identifier(f"fencepost_{table}")


def _copy(made: str, copy: str) -> None:
    """The database `copy` as `made` is."""
    old, new = (sql.Identifier(str(conninfo_to_dict(dsn)["dbname"])) for dsn in (made, copy))
    with psycopg.connect(make_conninfo(made, dbname="postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE {}").format(new))
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(new, old))


def _identities_part(sink_dsn: str, tables: int) -> None:
    """A copy is a kit of its own."""
    with psycopg.connect(sink_dsn) as sink:
        for table in range(tables):
            sink.execute(sql.SQL("UPDATE {}.standing SET identity = gen_random_uuid()").format(_schema(table)))


def _worker(dsn: str, evidence: str) -> subprocess.Popen[bytes]:
    from tests.conftest import database_url

    command = [sys.executable, "-m", "celery", "-A", "workers.celery", "worker", f"--concurrency={PROCESSES}"]
    return subprocess.Popen(
        [*command, "--queues=spark,default", "--without-mingle", "--without-gossip"],
        env={**os.environ, "DATABASE_URL": database_url(dsn), "FENCEPOST_EVIDENCE_DIR": evidence},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _postmaster(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        parent = psutil.Process(row[0]).parent()
    assert parent is not None
    return parent.pid


def _processor_seconds(pid: int) -> float:
    """Of the process, of what it started, and of what of that has ended."""
    process, total = psutil.Process(pid), 0.0
    for one in [process, *process.children(recursive=True)]:
        try:
            used = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system + used.children_user + used.children_system
    return total
