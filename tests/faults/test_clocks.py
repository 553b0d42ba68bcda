"""A worker whose clock is hours wrong neither loses a recovery, nor has it taken away while it works."""

from __future__ import annotations

import datetime as dt
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.utils import timezone

from recovery_api.models import IntentState, RecoveryOutcome
from recovery_api.services.intents import intents_sweep
from tests.faults.clocks import clock_shifted
from tests.faults.processes import environment, reached
from tests.integration.recovery.world import World, run
from workers.faults import Point

pytestmark = pytest.mark.slow


def worker(intent_id: object, name: str, hours: float, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.run_intent", str(intent_id), name],
        env=environment(**clock_shifted(hours), **env),
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_worker_whose_clock_is_wrong_keeps_its_recovery_and_ends_it(
    world: World, tmp_path: Path, hours: float
) -> None:
    world.commit(["e1", "e2"])
    world.deliver(["e1"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    gate = tmp_path / "gate"
    process = worker(intent.id, "wrong clock", hours, FENCEPOST_PAUSE=f"{Point.BEFORE_FIRE.value}:{gate}")
    try:
        reached(gate)
        assert intents_sweep(timezone.now()).offered_count == 0, "it beats, whatever its own clock says"
    finally:
        gate.touch()
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert recovery.generations.count() == 1
    assert sorted(world.accepted_keys()) == ["e1", "e2"]


@pytest.mark.parametrize(("first", "second"), [(2, -2), (-2, 2)])
def test_a_successor_takes_over_from_a_killed_worker_whatever_their_clocks_say(
    world: World, tmp_path: Path, first: float, second: float
) -> None:
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    died = tmp_path / "died"
    process = worker(intent.id, "first", first, FENCEPOST_CRASH=f"{Point.AFTER_FIRE.value}:{died}")
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert intents_sweep(timezone.now() + dt.timedelta(seconds=31)).offered_count == 1
    process = worker(intent.id, "second", second)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 2), recovery.says
    assert sorted(world.accepted_keys()) == ["e1", "e2"]


@pytest.mark.spark  # what is away is the engine
@pytest.mark.parametrize("hours", [-2, 2])
def test_work_that_a_worker_with_a_wrong_clock_put_off_is_due_when_it_should_be(world: World, hours: float) -> None:
    """A transient failure puts the intent off by seconds; a clock that is ahead would put it off by hours."""
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    process = worker(intent.id, "no engine", hours, SPARK_REMOTE="sc://localhost:9/;token=none")
    process.communicate(timeout=120)
    assert process.returncode == 0
    intent.refresh_from_db()
    assert intent.state == IntentState.QUEUED, intent.error
    assert intent.not_before is not None
    assert abs(intent.not_before - timezone.now()) < dt.timedelta(minutes=5)
    intent.not_before = None
    intent.save(update_fields=["not_before"])
    run(intent)
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE
