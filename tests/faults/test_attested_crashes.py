"""A worker that dies while it recovers a table without a fence leaves what its successor finds there, and lands once."""

from __future__ import annotations

import datetime as dt
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from recovery_api.models import EventKind, RecoveryOutcome
from recovery_api.services.intents import intents_sweep
from recovery_api.services.recoveries import recovery_want
from tests.faults.processes import environment
from tests.faults.test_recovery_crashes import finish, worker
from tests.integration.recovery.table_world import ONLY, TableWorld, drained, table_world_make
from workers.faults import Point

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS = ["e1", "e2", "e3", "e4"]
OURS = [Point.INTENT_TAKEN, Point.DURING_READ, Point.BEFORE_APPEND, Point.BEFORE_OUTCOME, Point.BEFORE_VERIFY]


@pytest.fixture
def table(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> TableWorld:
    world = table_world_make(database_factory, tmp_path)
    world.commit(KEYS)
    world.deliver(["e2"])
    return world


@pytest.mark.parametrize("point", [*OURS, Point.APPENDED])
def test_a_successor_of_a_recovery_without_a_fence_lands_nothing_twice(
    table: TableWorld, tmp_path: Path, point: Point
) -> None:
    recovery = table.ask(table.approve(table.plan()), drained(), ONLY)
    intent = recovery.intents.get()
    env = environment(FENCEPOST_CRASH=f"{point.value}:{tmp_path / 'died'}")
    code, errors = finish(worker(intent, "first", env))
    assert code == -signal.SIGKILL, errors
    landed = table.accepted_keys()
    assert intents_sweep(timezone.now() + dt.timedelta(seconds=31)).offered_count == 1
    code, errors = finish(worker(intent, "second", env))
    assert code == 0, errors
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN, recovery.says
    assert table.accepted_keys() == KEYS
    assert recovery.landed_count + recovery.absorbed_count == 3
    if point is Point.APPENDED:
        assert landed == KEYS, "the part had landed, and nobody had written it down"
        assert recovery.landed_count == 0
        assert "What an attempt that ended early had added counts as already present." in recovery.says
        assert recovery.events.filter(kind=EventKind.RECOVERY_TAKEN_OVER).count() == 1


def test_a_stop_after_a_part_that_may_have_landed_is_unknown_and_settles_to_what_is_there(
    table: TableWorld, tmp_path: Path
) -> None:
    recovery = table.ask(table.approve(table.plan()), drained(), ONLY)
    intent = recovery.intents.get()
    env = environment(FENCEPOST_CRASH=f"{Point.APPENDED.value}:{tmp_path / 'died'}")
    code, errors = finish(worker(intent, "first", env))
    assert code == -signal.SIGKILL, errors
    recovery_want(recovery, "stop", actor="ada", now=timezone.now(), reason="enough", wake=False)
    intents_sweep(timezone.now() + dt.timedelta(seconds=31))
    code, errors = finish(worker(intent, "second", env))
    assert code == 0, errors
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.UNKNOWN
    assert "may have landed" in recovery.says
    assert table.accepted_keys() == KEYS
