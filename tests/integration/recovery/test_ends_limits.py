"""What a recovery does where an end's own limits, locks or disk stand in its way, or its plan's evidence is gone."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone
from psycopg.conninfo import conninfo_to_dict

from recovery_api.models import Intent, IntentState, Recovery, RecoveryOutcome
from recovery_api.services.recoveries import recovery_want
from tests.faults.processes import environment, reached
from tests.integration.recovery.world import World, run, world_make
from tests.zygote import Forked, forked
from workers.faults import Point
from workers.runners import intent_run


def busy_fire(world: World, seconds: float) -> None:
    """Every landing at this sink is at work for so long."""
    with psycopg.connect(world.sink_dsn) as sink:
        sink.execute(
            "CREATE FUNCTION busy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " WHILE clock_timestamp() < statement_timestamp() + TG_ARGV[0]::interval LOOP END LOOP; RETURN NULL; END $$"
        )
        sink.execute(
            f"CREATE TRIGGER busy AFTER INSERT ON fencepost.accepted EXECUTE FUNCTION busy('{seconds} s')".encode()
        )


def database_set(dsn: str, setting: str, value: str) -> None:
    name = str(conninfo_to_dict(dsn)["dbname"])
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE \"{name}\" SET {setting} = '{value}'".encode())


def again(intent: Intent) -> Intent:
    """Runs the intent once more, without waiting until it is due."""
    Intent.objects.filter(id=intent.id).update(not_before=None)
    intent_run(str(intent.id), "test")
    intent.refresh_from_db()
    return intent


def held(recovery: Recovery, point: Point, gate: Path) -> Forked:
    """A worker process that stands at `point` until `gate` exists."""
    process = forked(
        "tests.faults.run_intent",
        str(recovery.intents.get().id),
        "held",
        env=environment(FENCEPOST_PAUSE=f"{point.value}:{gate}"),
    )
    reached(gate)
    return process


def test_l2_the_record_can_be_rewritten_between_staging_and_fire(world: World, tmp_path: Path) -> None:
    world.commit(["e1", "e2"])
    world.deliver(["e1"])
    recovery = world.request(world.approve(world.plan()))
    gate = tmp_path / "gate"
    process = held(recovery, Point.BEFORE_FIRE, gate)

    def vacuum() -> None:
        with psycopg.connect(world.sink_dsn, autocommit=True) as sink:
            sink.execute("VACUUM FULL fencepost.accepted")

    rewriting = threading.Thread(target=vacuum, daemon=True)
    rewriting.start()
    rewriting.join(30)
    is_waiting = rewriting.is_alive()
    gate.touch()
    assert process.wait(120) == 0
    assert not is_waiting, "a reader of ours held the record while the worker stood before its fire"
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.generations.count()) == (RecoveryOutcome.EXACTLY_ONCE, 1), recovery.says


def test_l2_a_fire_that_waits_for_a_lock_on_the_record_names_its_holder(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    world = world_make(database_factory, tmp_path, sink_more={"answer_timeout_seconds": 3})
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    gate = tmp_path / "gate"
    process = held(recovery, Point.BEFORE_FIRE, gate)
    with psycopg.connect(world.sink_dsn, application_name="maintenance") as holder:
        holder.execute("LOCK TABLE fencepost.accepted IN ACCESS EXCLUSIVE MODE")
        gate.touch()
        assert process.wait(120) == 0
        intent.refresh_from_db()
        assert intent.state == IntentState.QUEUED
        assert intent.error["code"] == "no_answer" and "'maintenance'" in intent.error["text"], intent.error
    assert again(intent).state == IntentState.DONE, intent.error
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says


def test_l4_a_transaction_timeout_of_an_ends_role_ends_no_recovery(world: World) -> None:
    for dsn in (world.source_dsn, world.sink_dsn):
        database_set(dsn, "transaction_timeout", "1s")
    world.commit(["e1", "e2"])
    approved = world.approve(world.plan())
    busy_fire(world, 1.5)
    recovery = world.request(approved)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.generations.count()) == (RecoveryOutcome.EXACTLY_ONCE, 1), recovery.says


def test_l6_a_statement_timeout_of_the_sinks_role_is_named_once_and_the_claim_released(world: World) -> None:
    world.commit(["e1", "e2"])
    approved = world.approve(world.plan())
    busy_fire(world, 3)
    recovery = world.request(approved)
    database_set(world.sink_dsn, "statement_timeout", "1s")
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert recovery.generations.count() == 1, "nothing is tried again that would meet the same limit"
    for part in ("statement_timeout = 1000 ms", "set for this database", "the fire", "ALTER ROLE"):
        assert part in recovery.says
    assert [claim.state for claim in world.sink().claims(5)] == ["released"]
    assert world.accepted_keys() == []


def test_l6_a_statement_that_somebody_cancelled_is_tried_again(world: World, tmp_path: Path) -> None:
    """A limit is set, and not what ended the statement."""
    world.commit(["e1"])
    approved = world.approve(world.plan())
    busy_fire(world, 60)
    recovery = world.request(approved)
    intent = recovery.intents.get()
    database_set(world.sink_dsn, "statement_timeout", "10min")
    gate = tmp_path / "gate"
    process = held(recovery, Point.BEFORE_FIRE, gate)
    gate.touch()
    with psycopg.connect(world.sink_dsn, autocommit=True) as sink:
        cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%.fire(%'"
        waiting = threading.Event()
        while sink.execute(cancel + " AND pid <> pg_backend_pid()").fetchone() is None:
            waiting.wait(0.05)
        assert process.wait(120) == 0
        intent.refresh_from_db()
        assert (intent.state, intent.error["code"]) == (IntentState.QUEUED, "transient"), intent.error
        sink.execute("DROP TRIGGER busy ON fencepost.accepted")
    assert again(intent).state == IntentState.DONE, intent.error


def test_l5_a_sink_without_room_says_so_and_keeps_no_rows_of_earlier_attempts(world: World) -> None:
    """A quota on the staging area, which the server reports as it reports a full disk."""
    many, quota = 30_000, 15_000
    with psycopg.connect(world.source_dsn) as source:
        source.execute(
            "INSERT INTO outbox (\"key\", content) SELECT 'e' || n, '1' FROM generate_series(1, %s) n", [many]
        )
    approved = world.approve(
        world.plan()
    )  # a trigger on the staging area takes the fence's proof away: no plan after it
    with psycopg.connect(world.sink_dsn) as sink:
        sink.execute(
            "CREATE FUNCTION quota() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF (SELECT count(*) FROM fencepost.staged) > TG_ARGV[0]::int THEN"
            " RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = 'could not extend file: No space left on device';"
            " END IF; RETURN NULL; END $$"
        )
        trigger = f"CREATE TRIGGER quota AFTER INSERT ON fencepost.staged EXECUTE FUNCTION quota({quota})"
        sink.execute(trigger.encode())
    recovery = world.request(approved)
    intent = recovery.intents.get()
    for _ in range(3):
        assert again(intent).state == IntentState.QUEUED, intent.error
        assert intent.error["code"] == "out_of_room"
        assert "its disk is full" in intent.error["text"] and "Check that it is up" not in intent.error["text"]
        assert _arms_staged(world) == 1, "rows of an earlier attempt are still there"
    with psycopg.connect(world.sink_dsn) as sink:
        sink.execute("DROP TRIGGER quota ON fencepost.staged")
    assert again(intent).state == IntentState.DONE, intent.error
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, many), recovery.says
    assert _staged(world) == 0


def test_l5_a_recovery_that_is_stopped_leaves_no_staged_rows(world: World, tmp_path: Path) -> None:
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    gate = tmp_path / "gate"
    process = held(recovery, Point.DURING_STAGING, gate)
    assert _staged(world) == 2
    recovery_want(recovery, "stop", actor="ada", now=timezone.now(), reason="The relay is back.", wake=False)
    gate.touch()
    assert process.wait(120) == 0
    recovery.refresh_from_db()
    assert (recovery.outcome, _staged(world)) == (RecoveryOutcome.STOPPED, 0)


@pytest.mark.parametrize("is_whole", [True, False], ids=["all_of_it", "a_part_of_it"])
def test_l8_a_plan_whose_evidence_is_gone_is_refused_before_its_claim(world: World, is_whole: bool) -> None:
    world.commit(["e1", "e2", "e3"])
    world.deliver(["e2"])
    plan = world.approve(world.plan())
    fence = world.sink().state().fence
    if is_whole:
        shutil.rmtree(plan.evidence_uri)
    else:
        next(part for part in sorted(Path(plan.evidence_uri).glob("part-*.parquet")) if _lost(part)).unlink()
    recovery = world.request(plan)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED
    assert f"the plan's evidence at {plan.evidence_uri} is gone" in recovery.says and "plan again" in recovery.says
    assert recovery.generations.count() == 0
    assert world.sink().state().fence == fence, "the relay was fenced for nothing"


def _staged(world: World) -> int:
    with psycopg.connect(world.sink_dsn) as sink:
        row: Any = sink.execute("SELECT count(*) FROM fencepost.staged").fetchone()
    return int(row[0])


def _arms_staged(world: World) -> int:
    with psycopg.connect(world.sink_dsn) as sink:
        row: Any = sink.execute("SELECT count(DISTINCT (generation, arm)) FROM fencepost.staged").fetchone()
    return int(row[0])


def _lost(part: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_table(part, filters=[("finding", "==", "lost")]).num_rows)
