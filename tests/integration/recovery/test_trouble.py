"""What a recovery answers when contents, people, servers or backups are not as they should be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.models import Intent, PlanState, RecoveryOutcome
from recovery_api.services.ledger import ledger_decide_below
from recovery_api.services.plans import plan_request
from recovery_api.services.recoveries import recovery_want
from recovery_api.services.sinks import sink_settle_request
from tests.faults.processes import environment, reached
from tests.integration.recovery.world import World, run, world_make
from workers.runners import intent_run

pytestmark = pytest.mark.spark


def failing(intent: Intent) -> dict[str, Any]:
    """Run the intent and give back the error it was left with."""
    intent_run(str(intent.id), "test")
    intent.refresh_from_db()
    assert intent.error, intent.state
    return dict(intent.error)


def test_what_the_sink_cannot_hold_is_left_out_named_and_stays_lost(world: World) -> None:
    world.use_json_column()
    for key, text in {
        "nul": '"a\\u0000b"',
        "ok": '"ok"',
        "half": '"\\ud83d"',
        "rocket": '"\\u00e9 \\ud83d\\ude80"',
    }.items():
        world.commit_text(key, text)
    world.sink().deliver(0, world.batch(["nul"]).set_column(6, "content", [['"ab"']]))
    plan = world.plan()
    assert plan.state == PlanState.READY
    assert plan.batch["not representable at the sink"] == "1"
    assert plan.batch["altered at the sink"] == "1"
    assert plan.batch_count == 2
    content = next(condition for condition in plan.conditions if condition["name"] == "content")
    assert content["holds"] is False
    recovery = world.request(world.approve(plan))
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.INCOMPLETE_ALTERED
    assert world.accepted_keys() == ["nul", "ok", "rocket"]


def test_an_event_of_24_mib_is_recovered(world: World) -> None:
    world.commit(["small"])
    world.commit(["large"], {"blob": "x" * (24 * 2**20)})
    recovery = world.recover()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says


def test_an_idle_transaction_inside_the_sink_is_named_and_the_claim_tried_again(world: World) -> None:
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    with psycopg.connect(world.sink_dsn, application_name="forgotten relay") as idle:
        idle.execute("SELECT fencepost.deliver(0, '0', 1, 0, NULL, 'insert', 'e0', '1'::jsonb)")
        world.pipeline.options = {"claim_wait_seconds": 1}
        world.pipeline.save()
        error = failing(intent)
        assert "forgotten relay" in error["text"]
        assert intent.state == "queued"
        idle.rollback()
    Intent.objects.filter(id=intent.id).update(not_before=None)
    run(intent)
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE
    assert world.accepted_keys() == ["e1", "e2"]


def test_a_worker_that_a_newer_claim_passed_lands_nothing_and_says_who(world: World, tmp_path: Path) -> None:
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    gate = tmp_path / "gate"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.run_intent", str(intent.id), "paused"],
        env=environment(FENCEPOST_PAUSE=f"before_fire:{gate}"),
    ) as worker:
        reached(gate)
        newer = int(world.sink().generation_allocate("recoverer", "somebody else").data["generation"])
        assert world.sink().claim(newer, {}).word == "granted"
        gate.touch()
        assert worker.wait(timeout=120) == 0
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.FENCED
    assert f"generation {newer}" in recovery.says
    assert world.accepted_keys() == []


def test_a_sink_restored_from_a_backup_fires_nothing_until_it_is_settled(
    world: World, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    world.commit(["e1"])
    world.recover()
    backup = world.sink_backup(database_factory)
    world.commit(["e2"])
    certified = world.recover()
    assert world.accepted_keys() == ["e1", "e2"]
    world.commit(["e3"])
    approved = world.approve(world.plan())
    world.sink_restore(backup)
    assert world.accepted_keys() == ["e1"]
    recovery = world.request(approved)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED
    assert "restored" in recovery.says
    certified.refresh_from_db()
    assert certified.certificate_void_since is not None
    assert world.accepted_keys() == ["e1"]

    settled = run(sink_settle_request(world.pipeline.sink, actor="ada", now=timezone.now(), wake=False))
    assert settled.result["standing"] == "trusted again", settled.result
    counter = world.sink().state().counter
    assert counter > certified.generation
    final = world.recover()
    assert final.outcome == RecoveryOutcome.EXACTLY_ONCE
    assert world.accepted_keys() == ["e1", "e2", "e3"]


def test_what_retention_dropped_is_unknown_unless_an_audit_saw_it_or_somebody_decides(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any
) -> None:
    world = world_make(database_factory, tmp_path, source_more={"retention": "purges"})
    world.commit(["e1"])
    world.commit(["e2"])
    world.deliver(["e1", "e2"])
    first = world.coordinate("e1")
    assert world.audit().status == "unknown"  # nobody looked below the oldest row before
    assert world.audit().status == "unknown"  # nor has anybody since
    ledger_decide_below(world.pipeline, first, reason="it is new", actor="grace", now=timezone.now())
    assert world.audit().status == "exactly_once_given"
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("DELETE FROM outbox WHERE \"key\" = 'e1'")
    world.commit(["e3"])
    world.deliver(["e3"])
    audit = world.audit()
    assert audit.status == "exactly_once_given", audit.says
    assert [given for given in audit.givens if not given.startswith("that nothing below ")] == []
    _plan, intent = plan_request(world.pipeline, actor="ada", now=timezone.now(), frontier=first, wake=False)
    assert "floor" in failing(intent)["text"]


def test_injection_in_keys_and_contents_is_data(world: World) -> None:
    hostile = "x'); DROP TABLE fencepost.accepted; --"
    world.commit([hostile], {"<script>": hostile})
    recovery = world.recover()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE
    assert world.accepted_keys() == [hostile]


def test_a_writer_that_is_open_now_does_not_stop_an_approved_recovery(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any
) -> None:
    numbers = {"coordinate": ["id"], "coordinate_spelling": "bigint", "grace_seconds": 0}
    world = world_make(database_factory, tmp_path, source_more=numbers)
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    with psycopg.connect(world.source_dsn) as slow:
        slow.execute("INSERT INTO outbox (\"key\", content) VALUES ('e3', '1')")
        run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    assert world.accepted_keys() == ["e1", "e2"]


def test_a_floor_that_rose_past_the_frontier_refuses_and_gives_the_claim_up(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any
) -> None:
    world = world_make(database_factory, tmp_path, source_more={"retention": "purges"})
    world.commit(["e1"])
    world.commit(["e2"])
    recovery = world.request(world.approve(world.plan()))
    world.commit(["e3"])
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("DELETE FROM outbox WHERE \"key\" <> 'e3'")
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED
    assert "floor" in recovery.says
    assert world.sink().state().open_claim is None
    assert world.accepted_keys() == []


def test_a_stop_between_two_parts_says_what_landed(world: World, tmp_path: Path) -> None:
    world.pipeline.options = {"batch_limit": 1}
    world.pipeline.save()
    world.commit(["e1"])
    world.commit(["e2"])
    recovery = world.request(world.approve(world.plan()))
    gate = tmp_path / "gate"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.run_intent", str(recovery.intents.get().id), "stopped"],
        env=environment(FENCEPOST_PAUSE=f"before_outcome:{gate}"),
    ) as worker:
        reached(gate)
        recovery_want(recovery, "stop", actor="ada", now=timezone.now(), reason="enough")
        gate.touch()
        assert worker.wait(timeout=120) == 0
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.STOPPED
    assert "after 1 of 2 parts; 1 delivered" in recovery.says
    assert world.accepted_keys() == ["e1"]


def test_a_recovery_whose_worker_gave_up_can_be_stopped(world: World) -> None:
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    Intent.objects.filter(recovery=recovery).update(
        state="failed", error={"code": "internal", "text": "lost"}, finished_at=timezone.now()
    )
    recovery_want(recovery, "stop", actor="ada", now=timezone.now(), reason="enough", wake=False)
    run(recovery.intents.get(state="queued"))
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.STOPPED


def test_an_audit_after_a_restore_takes_nothing_as_certified(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any
) -> None:
    world = world_make(database_factory, tmp_path)
    world.commit(["e0"])
    world.deliver(["e0"])
    backup = world.sink_backup(database_factory)
    world.commit(["e1"])
    world.commit(["e2"])
    world.deliver(["e1", "e2"])
    assert world.audit().status == "exactly_once"
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("DELETE FROM outbox WHERE \"key\" <> 'e2'")
    world.source_retention("purges")
    assert world.audit().status == "exactly_once"  # certified by the audit before
    e2 = world.batch(["e2"])
    world.sink_restore(backup)
    assert world.sink().deliver(0, e2) == ["accepted"]
    assert world.audit().status == "unknown"  # e1 is gone from both ends, and nobody may call that delivered
