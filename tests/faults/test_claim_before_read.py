"""The fence comes before the read: what is read under a claim cannot change any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from recovery_api.models import RecoveryOutcome
from tests.faults.processes import environment, reached
from tests.integration.recovery.world import World
from tests.zygote import forked
from workers.faults import Point

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("point", [Point.AFTER_CLAIM, Point.DURING_READ, Point.BEFORE_FIRE])
def test_a_straggler_is_rejected_from_before_the_record_is_read_until_after_the_fire(
    world: World, tmp_path: Path, point: Point
) -> None:
    world.commit(["e1", "e2"])
    world.deliver(["e1"])
    recovery = world.request(world.approve(world.plan()))
    gate = tmp_path / "gate"
    process = forked(
        "tests.faults.run_intent",
        str(recovery.intents.get().id),
        "worker",
        env=environment(FENCEPOST_PAUSE=f"{point.value}:{gate}"),
    )
    try:
        reached(gate)
        state = world.sink().state()
        assert state.open_claim is not None and state.fence == state.open_claim.generation
        assert world.deliver(["e2"], generation=0) == ["fenced"]
    finally:
        gate.touch()
        assert process.wait(120) == 0
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 1), recovery.says
    assert world.accepted_keys() == ["e1", "e2"]
