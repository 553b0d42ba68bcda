"""What an audit that remembers is given by ends that misbehave: torn blocks, a record trimmed under it, other clocks, none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.models import LedgerBlock, Schedule
from recovery_api.services.audits import audit_request
from tests.faults.processes import environment, reached
from tests.integration.recovery.test_following import audit_in_full, grounds, is_whole, said
from tests.integration.recovery.test_schedules import OPTIONS, PERIOD, begins, passes, told, work
from tests.integration.recovery.world import World, world_make
from tests.zygote import forked
from workers.faults import Point


@pytest.fixture
def world_of(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, settings: Any
) -> Callable[..., World]:
    settings.SECURE_SSL_REDIRECT = False
    return lambda **more: world_make(database_factory, tmp_path, **more)


@pytest.fixture
def world(world_of: Callable[..., World]) -> World:
    return world_of()


def sink_break(world: World, statement: str) -> None:
    with psycopg.connect(world.sink_dsn) as sink:
        sink.execute("ALTER TABLE fencepost.accepted DISABLE TRIGGER USER")
        sink.execute(statement)  # type: ignore[call-overload]


def test_a_block_that_is_another_at_the_source_alone_is_found_in_its_turn(world: World) -> None:
    world.commit(["e1", "e2"])
    world.deliver(["e1", "e2"])
    assert world.audit().status == "exactly_once"
    LedgerBlock.objects.update(derived_at=timezone.now() - timedelta(days=8))
    with psycopg.connect(world.source_dsn) as source:
        source.execute("""UPDATE outbox SET content = '{"amount": 2}' WHERE "key" = 'e1'""")
    audit = world.audit()
    assert is_whole(audit), grounds(audit)
    assert audit.status == "hazard", audit.says
    assert [(row["finding"], row["cause"]) for row in audit.findings] == [("lost", None), ("premature", "altered")]
    assert said(audit_in_full(world)) == said(audit)


def test_a_record_trimmed_in_the_middle_of_an_audit_is_found_by_that_one(world: World, tmp_path: Path) -> None:
    """The frontier is pinned, the record not yet read: what went is gone, and an earlier audit had seen it."""
    world.commit(["e1", "e2", "e3"])
    world.deliver(["e1", "e2", "e3"])
    assert world.audit().status == "exactly_once"
    intent = audit_request(world.pipeline, actor="ada", now=timezone.now(), wake=False)
    gate = tmp_path / "gate"
    with forked(
        "tests.faults.run_intent",
        str(intent.id),
        "held",
        env=environment(FENCEPOST_PAUSE=f"{Point.FRONTIER_PINNED.value}:{gate}"),
    ) as process:
        reached(gate)
        sink_break(world, "DELETE FROM fencepost.accepted WHERE \"key\" = 'e1'")
        gate.touch()
        assert process.wait(120) == 0
    audit = world.pipeline.audits.get(intent=intent)
    assert (audit.status, audit.lost_count, audit.accepted_count) == ("owed", 1, 2), audit.says
    assert "does not hold any more what an earlier audit read" in grounds(audit), grounds(audit)
    again = audit_in_full(world)
    assert (again.status, again.lost_count) == ("owed", 1), again.says


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_sources_clock_an_hour_apart_raises_no_alarm_and_hides_nothing(
    world_of: Callable[..., World], hours: int
) -> None:
    """Commit times are the source's; what is suspected, and for how long, goes by the control database's clock."""
    world = world_of(**OPTIONS)
    with psycopg.connect(world.source_dsn) as source:
        source.execute(f"ALTER TABLE outbox ALTER created_at SET DEFAULT now() + interval '{hours} hours'")
    left_alone(world)


def test_a_source_without_commit_times_is_watched_all_the_same(world_of: Callable[..., World]) -> None:
    left_alone(world_of(**OPTIONS, source_more={"committed_at": None}))


def left_alone(world: World) -> None:
    """Well, then an event on its way, then owed a period later, then past what was promised."""
    world.commit(["k0"])
    world.deliver(["k0"])
    begins(world)
    assert told(world)["status"] == "exactly_once"
    world.commit(["k1"])
    passes(PERIOD)
    work(world)
    status = told(world)
    assert (status["status"], status["suspected"]) == ("exactly_once", "1"), status["says"]
    assert not status["schedule"]["is_past_sla"]
    passes(PERIOD)
    work(world)
    status = told(world)
    assert (status["status"], status["exit_code"]) == ("owed", 1), status["says"]
    assert not status["schedule"]["is_past_sla"]
    passes(PERIOD)
    work(world)
    assert told(world)["schedule"]["is_past_sla"]


def test_rows_purged_faster_than_the_schedule_looks_are_unknown_and_not_well(world_of: Callable[..., World]) -> None:
    """What came, was delivered or not, and went between two audits: nobody knows, and that is said."""
    world = world_of(**OPTIONS)
    world.commit(["k0"])
    world.deliver(["k0"])
    begins(world)
    for key in ("k1", "k2", "k3"):
        world.commit([key])
    world.deliver(["k3"])
    with psycopg.connect(world.source_dsn) as source:
        source.execute("DELETE FROM outbox WHERE \"key\" IN ('k0', 'k1', 'k2')")
    for _ in range(2):
        passes(PERIOD)
        work(world)
    status = told(world)
    assert (status["status"], status["exit_code"]) == ("unknown", 3), status["says"]
    assert Schedule.objects.get().pipeline == world.pipeline
