"""A worker that dies by SIGKILL at any named point leaves what the next one settles from the sink and finishes."""

from __future__ import annotations

import datetime as dt
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from recovery_api.models import RecoveryOutcome
from recovery_api.services.intents import intents_sweep
from tests.faults.processes import environment
from tests.integration.recovery.world import World
from workers.faults import Point

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS = ["e1", "e2", "e3", "e4"]


def worker(intent: Any, name: str, env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.run_intent", str(intent.id), name],
        env=env,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


@pytest.mark.parametrize("point", [point for point in Point if "." not in point])
def test_a_successor_ends_what_a_killed_worker_left(world: World, tmp_path: Path, point: Point) -> None:
    world.commit(KEYS[:2])
    world.commit(KEYS[2:])
    world.deliver(["e2"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    env = environment(FENCEPOST_CRASH=f"{point.value}:{tmp_path / 'died'}")
    code, errors = finish(worker(intent, "first", env))
    assert (tmp_path / "died").exists(), f"the point was never reached: {errors}"
    assert code == -signal.SIGKILL

    report = intents_sweep(timezone.now() + dt.timedelta(seconds=31))
    assert report.offered_count == 1
    code, errors = finish(worker(intent, "second", env))
    assert code == 0, errors
    recovery.refresh_from_db()
    intent.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, (recovery.says, intent.error)
    assert sorted(world.accepted_keys()) == KEYS
