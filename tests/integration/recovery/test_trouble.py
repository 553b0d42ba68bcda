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
from recovery_api.services.plans import plan_request
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
    world.sink_restore(backup)
    assert world.accepted_keys() == ["e1"]
    world.commit(["e3"])
    recovery = world.request(world.approve(world.plan()))
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


def test_what_retention_dropped_is_unknown_unless_an_audit_certified_it(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any
) -> None:
    world = world_make(database_factory, tmp_path, source_more={"retention": "purges"})
    world.commit(["e1"])
    world.commit(["e2"])
    world.deliver(["e1", "e2"])
    first = world.coordinate("e1")
    assert world.audit().status == "unknown"  # nobody looked below the oldest row before
    world.source_retention("keeps")
    assert world.audit().status == "exactly_once"
    world.source_retention("purges")
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("DELETE FROM outbox WHERE \"key\" = 'e1'")
    world.commit(["e3"])
    world.deliver(["e3"])
    audit = world.audit()
    assert audit.status == "exactly_once", audit.says
    _plan, intent = plan_request(world.pipeline, actor="ada", now=timezone.now(), frontier=first, wake=False)
    assert "floor" in failing(intent)["text"]


def test_injection_in_keys_and_contents_is_data(world: World) -> None:
    hostile = "x'); DROP TABLE fencepost.accepted; --"
    world.commit([hostile], {"<script>": hostile})
    recovery = world.recover()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE
    assert world.accepted_keys() == [hostile]
