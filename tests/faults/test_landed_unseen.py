"""A batch that an earlier worker of the recovery landed, unseen by its successors, is found before the recovery ends."""

from __future__ import annotations

import datetime as dt
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from recovery_api.models import RecoveryOutcome
from recovery_api.services.intents import intents_sweep
from recovery_api.services.recoveries import recovery_want
from tests.faults.processes import environment
from tests.integration.recovery.world import World, run
from tests.zygote import forked
from workers.faults import Point

pytestmark = pytest.mark.slow


def die_at(point: Point, intent: Any, marker: Path) -> None:
    """A worker takes the intent and is killed at `point`; the intent is offered again."""
    process = forked(
        "tests.faults.run_intent",
        str(intent.id),
        point.value,
        env=environment(FENCEPOST_CRASH=f"{point.value}:{marker}"),
        stderr=subprocess.PIPE,
    )
    _, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, errors
    assert intents_sweep(timezone.now() + dt.timedelta(seconds=31)).offered_count == 1


def test_a_recovery_that_is_stopped_after_an_earlier_workers_batch_landed_is_verified(
    world: World, tmp_path: Path
) -> None:
    """Found by the model. The second worker leaves a generation that never claimed, so the first one's claim stands, and
    its fire, which was on its way, lands before the third gives everything up."""
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    die_at(Point.BEFORE_FIRE, intent, tmp_path / "first")
    die_at(Point.BEFORE_CLAIM, intent, tmp_path / "second")
    assert world.sink().fire(1, 1, recovery.frontier).word == "landed"
    recovery_want(recovery, "stop", actor="ada", now=timezone.now(), reason="The relay is back.", wake=False)
    run(intent)
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 2), recovery.says
    assert sorted(world.accepted_keys()) == ["e1", "e2"]


def test_a_stop_gives_up_the_claims_of_all_earlier_workers(world: World, tmp_path: Path) -> None:
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    die_at(Point.BEFORE_FIRE, intent, tmp_path / "first")
    die_at(Point.BEFORE_CLAIM, intent, tmp_path / "second")
    recovery_want(recovery, "stop", actor="ada", now=timezone.now(), reason="The relay is back.", wake=False)
    run(intent)
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.STOPPED
    assert world.sink().fire(1, 1, recovery.frontier).word == "not armed"
    assert world.accepted_keys() == []
