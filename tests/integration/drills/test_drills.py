"""Drills as the product keeps them: asked for, run by a worker, recorded, shown, and due by schedule."""

from __future__ import annotations

import datetime as dt
import io
import json
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.utils import timezone

from recovery_api.domain.drills import DrillName
from recovery_api.domain.errors import Refused
from recovery_api.models import Drill, DrillState, Event, EventKind, Intent, Sink
from recovery_api.rows import end_as_row, status_as_row
from recovery_api.selectors.drills import drill_list, passed_at
from recovery_api.selectors.fleet import fleet_status
from recovery_api.services.drills import drill_request, drill_schedule, drills_sweep
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.intents import intent_cancel, intents_sweep
from recovery_api.services.pipelines import pipeline_create
from tests.contract.sink_engines import kit_make
from tests.faults.processes import environment
from tests.zygote import forked
from workers.connectors.sinks.kit.install import kit_install
from workers.faults import Point
from workers.runners import intent_run


@pytest.fixture(autouse=True)
def _no_broker(settings: Any) -> None:
    settings.REDIS_URL = ""


@pytest.fixture
def sink(transactional_db: None) -> Sink:
    return sink_create("mail", "memory", {"name": secrets.token_hex(8)}, actor="owner", now=timezone.now())


def run(drill: Drill, intent: Intent) -> Drill:
    intent_run(str(intent.id), "test")
    drill.refresh_from_db()
    return drill


def command(*words: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = 0, io.StringIO(), io.StringIO()
    try:
        call_command("drill", *words, stdout=out, stderr=err)
    except SystemExit as ended:
        code = int(ended.code or 0)
    lines = out.getvalue().splitlines()
    body = json.loads(lines[-1]) if "--json" in words and lines else {}
    return code, body, out.getvalue() + err.getvalue()


def test_a_run_is_recorded_with_its_events_and_counts_for_the_sink(sink: Sink) -> None:
    source = source_create(
        "orders",
        "postgresql_outbox",
        {"connection": "env:A", "table": "o", "coordinate": ["id"]},
        actor="owner",
        now=timezone.now(),
    )
    pipeline_create("orders-mail", source, sink, actor="owner", now=timezone.now())
    drill = run(*drill_request(sink, actor="ada", now=timezone.now(), wake=False))
    assert (drill.state, len(drill.results)) == (DrillState.PASSED, 5), drill.results
    assert drill.says.startswith("passed: checkpoint crash, in-flight straggler")
    kinds = Event.objects.filter(pipeline__name="orders-mail").values_list("kind", "actor")
    assert (EventKind.DRILL_REQUESTED, "ada") in kinds and (EventKind.DRILL_RECORDED, "test") in kinds
    sink.refresh_from_db()
    assert passed_at(sink) == drill.finished_at and drill_list(sink).first() == drill
    (status,) = fleet_status(timezone.now())
    assert status_as_row(status)["drill_passed_at"] == drill.finished_at.isoformat()
    sink.updated_at = timezone.now()  # another address is another sink
    assert passed_at(sink) is None and end_as_row(sink)["drill_passed_at"] is None


def test_one_drill_alone_does_not_say_that_the_sink_passed(sink: Sink) -> None:
    drill = run(*drill_request(sink, actor="ada", now=timezone.now(), names=["split_brain_worker"], wake=False))
    assert [result["name"] for result in drill.results] == ["split_brain_worker"]
    sink.refresh_from_db()
    assert (drill.state, passed_at(sink)) == (DrillState.PASSED, None)


def test_a_second_drill_of_a_sink_waits_for_the_first(sink: Sink) -> None:
    first, intent = drill_request(sink, actor="ada", now=timezone.now(), wake=False)
    with pytest.raises(Refused, match="one drill at a time"):
        drill_request(sink, actor="bob", now=timezone.now(), wake=False)
    assert intent_cancel(intent, actor="ada", now=timezone.now())
    first.refresh_from_db()
    assert first.state == DrillState.UNKNOWN
    assert run(*drill_request(sink, actor="bob", now=timezone.now(), wake=False)).state == DrillState.PASSED
    assert drill_list(sink).count() == 2


def test_a_sink_that_cannot_be_drilled_is_not_applicable_and_says_what_it_yields(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    dsn = database_factory("table")
    (tmp_path / "dsn").write_text(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute('CREATE TABLE mails (id bigint PRIMARY KEY, "key" text, content jsonb)')
    options = {
        "connection": f"file:{tmp_path / 'dsn'}",
        "table": "mails",
        "coordinate": ["id"],
        "key": "key",
        "content": "content",
    }
    sink_create("mails", "postgresql_table", options, actor="owner", now=timezone.now())
    code, body, _ = command("mails", "--here", "--json")
    assert (code, body["state"]) == (0, DrillState.NOT_APPLICABLE), body
    assert {result["verdict"] for result in body["results"]} == {"not_applicable"}
    assert all("no recovery runs" in result["yields"] for result in body["results"])


def test_a_table_that_is_the_effect_is_drilled_by_its_own_strategy(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    dsn = database_factory("table")
    (tmp_path / "dsn").write_text(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute('CREATE TABLE mails (id bigint PRIMARY KEY, "key" text, content jsonb)')
    options = {
        "connection": f"file:{tmp_path / 'dsn'}",
        "table": "mails",
        "coordinate": ["id"],
        "key": "key",
        "content": "content",
        "is_effect": True,
    }
    sink_create("mails", "postgresql_table", options, actor="owner", now=timezone.now())
    code, body, _ = command("mails", "--here", "--json")
    assert (code, body["state"]) == (0, DrillState.PASSED), body
    proved = {result["name"]: result["proves"] for result in body["results"]}
    assert proved["split_brain_worker"].startswith("Of two recoverers the second waits"), "not a fence's words"


def test_a_worker_that_dies_in_a_drill_leaves_what_its_successor_takes_away(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    dsn = database_factory("crashed")
    (tmp_path / "dsn").write_text(dsn)
    with psycopg.connect(dsn, autocommit=True) as admin:
        kit_install(admin, kit_make())
    options = {"connection": f"file:{tmp_path / 'dsn'}"}
    sink = sink_create("mail", "postgresql_kit", options, actor="owner", now=timezone.now())
    drill, intent = drill_request(sink, actor="ada", now=timezone.now(), names=["checkpoint_crash"], wake=False)
    env = environment(FENCEPOST_CRASH=f"{Point.DURING_DRILL.value}:{tmp_path / 'died'}")
    died = forked("tests.faults.run_intent", str(intent.id), "first", env=env)
    died.wait(timeout=120)
    assert died.returncode == -signal.SIGKILL
    left = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'fencepost_drill_%'"
    with psycopg.connect(dsn) as admin:
        assert admin.execute(left).fetchone() == (1,)
        assert intents_sweep(timezone.now() + dt.timedelta(seconds=31)).offered_count == 1
        assert run(drill, intent).state == DrillState.PASSED
        assert admin.execute(left).fetchone() == (0,)


def test_a_sink_that_is_not_reached_is_unknown_and_never_passed(transactional_db: None, tmp_path: Path) -> None:
    (tmp_path / "dsn").write_text("postgresql://nobody@127.0.0.1:1/none")
    options = {"connection": f"file:{tmp_path / 'dsn'}"}
    sink = sink_create("mail", "postgresql_kit", options, actor="owner", now=timezone.now())
    drill, intent = drill_request(sink, actor="ada", now=timezone.now(), wake=False)
    for attempt in range(3):
        now = timezone.now()
        Intent.objects.filter(id=intent.id).update(not_before=None)
        intent_run(str(intent.id), f"test {attempt}")
        assert now is not None
    drill.refresh_from_db()
    assert drill.state == DrillState.UNKNOWN and "Cannot reach" in drill.says
    sink.refresh_from_db()
    assert passed_at(sink) is None


def test_command_answers_in_words_json_and_exit_codes(sink: Sink) -> None:
    code, body, _ = command("mail", "--here", "--json")
    assert (code, body["state"], len(body["results"])) == (0, "passed", len(DrillName))
    code, _, said = command("mail", "--here", "--only", "split_brain_worker")
    assert code == 0 and "Split-brain worker: " in said and "passed" in said
    code, _, said = command("mail", "--only", "split_brain", "--here")
    assert code == 2 and "split_brain_worker" in said
    assert command("male")[0] == 2
    code, body, _ = command("mail", "--history", "--json")
    assert code == 0 and len(body["drills"]) == 2
    code, _, said = command("mail")
    assert code == 3 and "queued" in said
    code, _, said = command("mail")
    assert code == 2 and "one drill at a time" in said


def test_a_schedule_asks_for_what_is_due_once(sink: Sink) -> None:
    now = timezone.now()
    assert drills_sweep(now) == 0
    code, body, _ = command("mail", "--every", "24", "--json")
    assert (code, body["drill_every_hours"]) == (0, 24)
    assert (drills_sweep(now), drills_sweep(now)) == (1, 0)
    drill = Drill.objects.get()
    assert drill.requested_by == "schedule"
    assert run(drill, drill.intent).state == DrillState.PASSED
    assert drills_sweep(now + dt.timedelta(hours=23)) == 0
    assert drills_sweep(now + dt.timedelta(hours=24)) == 1
    drill_schedule(sink, None, actor="ada", now=now)
    Drill.objects.filter(state=DrillState.REQUESTED).update(state=DrillState.UNKNOWN, finished_at=now)
    assert drills_sweep(now + dt.timedelta(days=30)) == 0
    assert command("mail", "--every", "-1")[0] == 2
