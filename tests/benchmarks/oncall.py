"""What people on call lean on, with 1,000 pipelines and 5,000 open alerts: the overview, /metrics, and the pager beside a recovery.

Server time of the pages is taken in this process, as in `lists`. The pager, the worker and the receiver are a process or threads
of their own, over HTTP: from an audit's committed row to the message at the receiver; then 10,000 messages that wait are sent
while a recovery is asked for, beside one that is asked for while nothing is sent.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
from django.core.management import call_command
from django.utils import timezone

from tests.benchmarks.latency import use_database
from tests.benchmarks.measure import databases, say

PIPELINES, ALERTS_EACH, QUEUED, DESTINATIONS = 1_000, 5, 10_000, 10
SECRET = "env:FENCEPOST_END_BENCH_HOOK"
LONGEST_SECONDS = 600.0
NOT_SCHEDULED = {"is_scheduled": False, "stale_after_seconds": 86_400}


def run(count: int) -> None:
    os.environ |= {
        "FENCEPOST_HTTPS": "false",
        "FENCEPOST_END_BENCH_HOOK": "whsec_c2VjcmV0",
        "FENCEPOST_ALERT_PRIVATE_ADDRESSES": "127.0.0.1",
    }
    with databases("control", "orders", "mail") as dsns, tempfile.TemporaryDirectory() as folder:
        use_database(dsns["control"])
        call_command("migrate", verbosity=0)
        say(f"making {PIPELINES:,} pipelines with {ALERTS_EACH} open alerts each …")
        _fleet_make()
        print(f"\n{PIPELINES:,} pipelines, {PIPELINES * ALERTS_EACH:,} open alerts; load before: {load_says()}")
        _pages(count)
        with ExitStack() as running:
            receiver = running.enter_context(received())
            _destinations_make(receiver.url)
            running.enter_context(_process("manage.py", "pager", dsn=dsns["control"], folder=folder))
            _until(lambda: _waiting() == 0 and _evaluated(), "the pager did not come")
            _pushed(count, receiver)
            running.enter_context(_process(*_celery(), dsn=dsns["control"], folder=folder))
            _beside(count, {name: dsns[name] for name in ("orders", "mail")}, Path(folder))


def load_says() -> str:
    """What else this machine does: its load averages, and the processors it has."""
    return f"{', '.join(f'{one:.1f}' for one in os.getloadavg())} on {psutil.cpu_count()} processors"


# -- pages --------------------------------------------------------------------------------------------------------


def _pages(count: int) -> None:
    """Milliseconds of server time, and queries, of each."""
    from django.conf import settings
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from recovery_api.services.headroom import headroom_sweep
    from tests.benchmarks.lists import _client

    settings.FENCEPOST_METRICS_FROM = ["127.0.0.1"]
    while headroom_sweep(timezone.now()):
        pass  # as a worker's sweep leaves them
    get = _client()
    print(f"{'address':<24} {'median ms':>9} {'least':>6} {'most':>6} {'queries':>8}")
    for address in ("/", "/?status=owed", "/alerts/", "/metrics"):
        get(address)
        with CaptureQueriesContext(connection) as queries:
            get(address)
            asked = len(queries)
        taken = [get(address) for _ in range(max(count, 15))]
        row = (statistics.median(taken), min(taken), max(taken), asked)
        print(f"{address:<24} {row[0]:>9.0f} {row[1]:>6.0f} {row[2]:>6.0f} {row[3]:>8}", flush=True)


# -- from an evidence row to a delivered webhook ------------------------------------------------------------------


def _pushed(count: int, receiver: Receiver) -> None:
    """Each of a pipeline of its own at an end of its own: a page, and no member of one that is open."""
    from tests.integration.pages.fleet import audit_make

    taken = []
    for number in range(max(count, 10)):
        pipeline = _pipeline(f"told {number}", f"env:SINK_TOLD_{number}")
        began = time.monotonic()
        audit_make(pipeline, "owed", timezone.now(), record_read_at=timezone.now())
        _until(lambda name=pipeline.name: name in receiver.told, "no page came")  # type: ignore[misc]
        taken.append(receiver.told[pipeline.name] - began)
    print(f"from an audit's row to its webhook: {_spread(taken)}; load {load_says()}", flush=True)


# -- what waits is sent beside a recovery -------------------------------------------------------------------------


def _beside(count: int, ends: dict[str, str], folder: Path) -> None:
    from tests.integration.recovery.world import world_make

    world = world_make(lambda hint: ends[hint], folder, **NOT_SCHEDULED)
    alone: list[tuple[float, float]] = []
    beside: list[tuple[float, float]] = []
    rates: list[float] = []
    _recovery(world, 0)  # the first one of a new worker
    for number in range(1, count + 1):
        alone.append(_recovery(world, 2 * number))
        _queued_make()
        began = time.monotonic()
        beside.append(_recovery(world, 2 * number + 1))
        left = _waiting()
        assert left, "the messages were all sent before the recovery ended: it was not beside them"
        _until(lambda: _waiting() == 0, "the messages were not sent")
        rates.append(QUEUED / (time.monotonic() - began))
        say(f"  round {number}: {left:,} messages still waited when the recovery had ended")
    print(f"{'a recovery, in seconds':<44} {'until a worker has it':<34} until it has ended")
    for name, waits in (
        ("nothing is sent", alone),
        (f"beside {QUEUED:,} messages to {DESTINATIONS} destinations", beside),
    ):
        print(f"{name:<44} {_spread([one[0] for one in waits]):<34} {_spread([one[1] for one in waits])}")
    print(f"messages a second: {_spread(rates, '.0f')}; load {load_says()}", flush=True)


def _recovery(world: Any, number: int) -> tuple[float, float]:
    """Seconds from its request until a worker has it, and until it has ended. Planned and approved before."""
    from recovery_api.services.plans import plan_approve, plan_request
    from recovery_api.services.recoveries import recovery_request

    world.commit([f"k{number}-{at}" for at in range(20)])
    world.until_safe()
    plan, intent = plan_request(world.pipeline, actor="ada", now=timezone.now())
    _ended(intent)
    plan.refresh_from_db()
    approved = plan_approve(plan.id, plan.digest, "grace", timezone.now())
    asked = recovery_request(approved.id, "the relay died", world.pipeline.name, "ada", now=timezone.now())
    done = _ended(asked.intents.get())
    assert done.taken_at is not None
    return (done.taken_at - done.created_at).total_seconds(), (done.finished_at - done.created_at).total_seconds()


def _ended(intent: Any) -> Any:
    _until(lambda: intent.refresh_from_db() or intent.state in ("done", "failed"), "no worker did it")
    assert intent.state == "done", intent.error
    return intent


def _queued_make() -> None:
    """So many messages that are due, each of a key of its own, as many to each destination."""
    from recovery_api.domain.alerts.causes import Severity
    from recovery_api.domain.alerts.messages import MemberTold, Message
    from recovery_api.domain.alerts.outbox import DeliveryKind
    from recovery_api.models import Delivery, Destination

    now, keys = timezone.now(), list(Destination.objects.order_by("pk").values_list("pk", flat=True))
    rows = []
    for number in range(QUEUED):
        id_ = uuid4()
        member = MemberTold(str(uuid4()), f"pipeline {number % PIPELINES:04}", "44 events are owed.", now)
        what = {"cause": "owed", "severity": Severity.CRITICAL, "end": "env:SINK", "count": 1, "members": (member,)}
        message = Message(id=str(id_), key=f"bench-{id_}", kind=DeliveryKind.TRIGGER, since=now, due_since=now, **what)
        rows.append(
            Delivery(
                message_id=id_,
                destination_id=keys[number % len(keys)],
                key=message.key,
                kind=DeliveryKind.TRIGGER,
                message=message.as_row(),
                created_at=now,
                created_by="bench",
                due_since=now,
                due_at=now,
            )
        )
    Delivery.objects.bulk_create(rows, batch_size=1000)


def _waiting() -> int:
    from recovery_api.models import Delivery

    return int(Delivery.objects.filter(state__in=["waiting", "sending"]).count())


def _evaluated() -> bool:
    from recovery_api.selectors.alerts import evaluated_at

    last = evaluated_at()
    return last is not None and timezone.now() - last < timedelta(seconds=20)


# -- what there is ------------------------------------------------------------------------------------------------


def _fleet_make() -> None:
    """Pipelines with an audit, an owner and a label, each with alerts of causes that only another audit would resolve."""
    from django.db import transaction

    from recovery_api.domain.alerts.causes import Cause, Scope
    from recovery_api.domain.alerts.evaluation import Observed, Subject
    from recovery_api.services.alerts import Evaluation
    from tests.integration.pages.fleet import audit_make, plan_make

    now = timezone.now() - timedelta(seconds=PIPELINES)
    words = ("owed", "exactly_once", "hazard", "unknown")
    causes = (Cause.OWED, Cause.HAZARD, Cause.UNKNOWN, Cause.RELAY_STALLED, Cause.GROUND_LOST)[:ALERTS_EACH]
    seen = []
    for number in range(PIPELINES):
        labels = {"owner": f"team {number % 20}", "labels": {"tier": str(number % 3)}}
        pipeline = _pipeline(f"pipeline {number:04}", f"env:SINK_{number % 10}", **labels)
        audit_make(pipeline, words[number % 4], now + timedelta(seconds=number))
        if number % 5 == 0:
            plan_make(pipeline, now)
        subject = Subject(Scope.PIPELINE, pipeline.pk)
        seen += [Observed(one, subject, True, timezone.now(), f"{one.label}, seen by the bench.") for one in causes]
    with transaction.atomic():
        Evaluation(timezone.now(), now).run(seen)


def _pipeline(name: str, connection: str, **options: Any) -> Any:
    from recovery_api.services.ends import sink_create, source_create
    from recovery_api.services.pipelines import pipeline_create
    from tests.integration.pages.fleet import REPORT, SOURCE

    about: dict[str, Any] = {"actor": "bench", "now": timezone.now()}
    source = source_create(f"source {name}", "postgresql_outbox", SOURCE, report=REPORT, **about)
    sink = sink_create(f"sink {name}", "postgresql_kit", {"connection": connection}, report=REPORT, **about)
    return pipeline_create(name, source, sink, options={**NOT_SCHEDULED, **options}, **about)


def _destinations_make(url: str) -> None:
    """One that takes every alert, and others that only get what is queued for them."""
    from recovery_api.services.destinations import destination_add

    for number in range(DESTINATIONS):
        about: dict[str, Any] = {"address": f"{url}/{number}", "secret": SECRET, "is_routed": number == 0}
        destination_add(f"hook {number}", "json", actor="bench", now=timezone.now(), **about)


class Receiver:
    """Takes every message at once. `told`: when the first message that names a thing came, by its name."""

    def __init__(self) -> None:
        self.told: dict[str, float] = {}
        told = self.told

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                for one in body["members"]:
                    told.setdefault(one["name"], time.monotonic())
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def received() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, daemon=True)
    thread.start()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


def _celery() -> list[str]:
    command = ["-m", "celery", "-A", "workers.celery", "worker", "--concurrency=1", "--queues=spark,default"]
    return [*command, "--without-mingle", "--without-gossip"]


@contextmanager
def _process(*words: str, dsn: str, folder: str) -> Iterator[None]:
    from tests.conftest import database_url

    env = {**os.environ, "DATABASE_URL": database_url(dsn), "FENCEPOST_EVIDENCE_DIR": f"{folder}/evidence"}
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, *words], env=env, **quiet)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _until(is_so: Callable[[], Any], what: str) -> None:
    pause, limit = threading.Event(), time.monotonic() + LONGEST_SECONDS
    while not is_so():
        assert time.monotonic() < limit, what
        pause.wait(0.05)


def _spread(taken: list[float], form: str = ".2f") -> str:
    return f"median {statistics.median(taken):{form}}, {min(taken):{form}} to {max(taken):{form}}"
