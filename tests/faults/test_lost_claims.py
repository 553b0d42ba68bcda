"""A claim that was granted and never written down is found at the sink by its recovery's name (R5)."""

from __future__ import annotations

import datetime as dt
import signal
from pathlib import Path

import pytest
from django.utils import timezone

from recovery_api.models import GenerationFate, RecoveryOutcome, Wanted
from recovery_api.services.intents import intents_sweep
from recovery_api.services.recoveries import recovery_want
from tests.faults.processes import environment, reached
from tests.faults.test_recovery_crashes import finish, worker
from tests.integration.recovery.world import World
from workers.faults import Point

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "goes on"])
def test_r5_a_claim_between_its_grant_and_its_row_is_written_down_and_released(
    world: World, tmp_path: Path, is_stopped: bool
) -> None:
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    env = environment(FENCEPOST_CRASH=f"{Point.AFTER_CLAIM.value}:{tmp_path / 'died'}")
    code, errors = finish(worker(intent, "first", env))
    assert code == -signal.SIGKILL, errors
    left = world.sink().state().open_claim
    assert left is not None and not recovery.generations.exists()
    if is_stopped:
        recovery_want(recovery, Wanted.STOP, actor="ada", now=timezone.now(), reason="enough", wake=False)
    assert intents_sweep(timezone.now() + dt.timedelta(seconds=31)).offered_count == 1
    code, errors = finish(worker(intent, "second", env))
    assert code == 0, errors
    recovery.refresh_from_db()
    assert recovery.outcome == (RecoveryOutcome.STOPPED if is_stopped else RecoveryOutcome.EXACTLY_ONCE), recovery.says
    assert world.sink().state().open_claim is None
    assert world.sink().settle(left.generation).state == "released"
    found = recovery.generations.get(number=left.generation)
    assert (found.fate, found.asked_by) == (GenerationFate.RELEASED, "an earlier attempt")
    assert world.accepted_keys() == ([] if is_stopped else ["e1", "e2"])


@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "goes on"])
def test_r5_a_worker_that_wakes_up_before_its_claim_leaves_none_open(
    world: World, tmp_path: Path, is_stopped: bool
) -> None:
    """It slept after it had written down that it claims, and its successor has ended the recovery meanwhile: it asks
    nothing of the sink any more, and neither number nor fence moves."""
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    intent, gate = recovery.intents.get(), tmp_path / "gate"
    sleeper = worker(intent, "sleeper", environment(FENCEPOST_PAUSE=f"{Point.BEFORE_CLAIM.value}:{gate}"))
    reached(gate)
    recovery.refresh_from_db()
    if is_stopped:
        recovery_want(recovery, Wanted.STOP, actor="ada", now=timezone.now(), reason="enough", wake=False)
    assert intents_sweep(timezone.now() + dt.timedelta(seconds=31)).offered_count == 1
    code, errors = finish(worker(intent, "second", environment()))
    assert code == 0, errors
    before = world.sink().state()
    gate.touch()
    finish(sleeper)
    after = world.sink().state()
    recovery.refresh_from_db()
    assert recovery.outcome == (RecoveryOutcome.STOPPED if is_stopped else RecoveryOutcome.EXACTLY_ONCE), recovery.says
    assert after.open_claim is None
    assert (after.counter, after.fence) == (before.counter, before.fence)
    assert world.accepted_keys() == ([] if is_stopped else ["e1", "e2"])
