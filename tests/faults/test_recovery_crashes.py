"""A worker that dies by SIGKILL at any named point leaves what the next one settles from the sink and finishes."""

from __future__ import annotations

import datetime as dt
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.models import RecoveryOutcome
from recovery_api.services.intents import intents_sweep
from tests.faults.processes import environment
from tests.integration.recovery.world import World
from tests.zygote import Forked, forked
from workers.faults import Point

pytestmark = pytest.mark.slow

ON_THE_ENGINE = (Point.DURING_READ, Point.DURING_STAGING, Point.BEFORE_FIRE, Point.AFTER_FIRE)
"""Where a killed worker leaves a job behind, or what one has staged. Elsewhere this process judges, as it does small sides."""


def marked(point: Point) -> Any:
    return pytest.param(point, marks=[pytest.mark.spark] if point in ON_THE_ENGINE else [])


KEYS = ["e1", "e2", "e3", "e4"]


def worker(intent: Any, name: str, env: dict[str, str]) -> Forked:
    return forked(
        "tests.faults.run_intent",
        str(intent.id),
        name,
        env=env,
        stderr=subprocess.PIPE,
    )


def finish(process: Forked) -> tuple[int, str]:
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


@pytest.mark.parametrize("point", [marked(point) for point in Point if "." not in point])
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


@pytest.mark.parametrize("point", [marked(Point.DURING_STAGING), marked(Point.AFTER_FIRE)])
def test_a_recovery_in_parts_is_ended_by_the_third_worker_after_two_died_between_and_within_its_parts(
    world: World, tmp_path: Path, point: Point
) -> None:
    """The sink lands two entries a fire: three parts, each with a claim, a fire and a hand-over of its own."""
    with psycopg.connect(world.sink_dsn) as sink:
        sink.execute("UPDATE fencepost.standing SET batch_limit = 2")
    world.commit(KEYS)
    world.commit(["e5", "e6"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    between = environment(FENCEPOST_CRASH=f"{Point.BEFORE_VERIFY.value}:{tmp_path / 'between'}")
    within = environment(FENCEPOST_CRASH=f"{point.value}:{tmp_path / 'within'}")
    for env, landed in ((between, KEYS[:2]), (within, None)):
        code, errors = finish(worker(intent, "one that dies", env))
        assert code == -signal.SIGKILL, errors
        assert landed is None or world.accepted_keys() == landed
        assert intents_sweep(timezone.now() + dt.timedelta(seconds=31)).offered_count == 1
    code, errors = finish(worker(intent, "last", environment()))
    assert code == 0, errors
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.batches) == (RecoveryOutcome.EXACTLY_ONCE, 3), recovery.says
    assert recovery.landed_count == 6
    assert world.accepted_keys() == [*KEYS, "e5", "e6"], "each once, in committed order over the parts"
    fired = [claim for claim in world.sink().claims(20) if claim.state == "fired"]
    assert [claim.landed_count for claim in fired] == [2, 2, 2]
