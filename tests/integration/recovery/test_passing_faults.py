"""Faults that pass are tried again; whatever ends an intent leaves no claim open unsaid; who was passed says by whom."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.models import Intent, IntentAction, IntentState, Plan, RecoveryOutcome
from recovery_api.services.abandoned import recoveries_sweep
from tests.faults.processes import environment, reached
from tests.integration.recovery.test_steering import until
from tests.integration.recovery.world import World, run
from tests.zygote import Forked, forked
from workers.faults import Point
from workers.runners import intent_run


def worker(intent: Intent, **env: str) -> Forked:
    return forked("tests.faults.run_intent", str(intent.id), "w", env=environment(**env))


def test_l3_a_read_only_evidence_folder_at_apply_is_waited_for(world: World, settings: Any) -> None:
    """/sys is mounted read-only, or lets nobody make a folder: a real one, which root cannot write either."""
    world.commit(["e1", "e2"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    folder = settings.FENCEPOST_EVIDENCE_DIR
    settings.FENCEPOST_EVIDENCE_DIR = Path("/sys/fencepost")
    assert intent_run(str(intent.id), "no folder")
    intent.refresh_from_db()
    assert (intent.state, intent.attempts) == (IntentState.QUEUED, 1), intent.error
    assert intent.error is not None and intent.error["code"] == "evidence_unwritable"
    assert recovery.generations.count() == 0, "looked at before the claim: the relay goes on meanwhile"
    assert "/sys/fencepost" in intent.error["text"] and "Make room or mount it again" in intent.error["text"]
    settings.FENCEPOST_EVIDENCE_DIR = folder
    Intent.objects.filter(id=intent.id).update(not_before=None)
    run(intent)
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says


def test_l3_one_cancelled_statement_in_the_control_database_is_tried_again(world: World, tmp_path: Path) -> None:
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    control = environment()["DATABASE_URL"]
    gate = tmp_path / "gate"
    with (
        psycopg.connect(control) as holder,
        psycopg.connect(control, autocommit=True) as watcher,
        worker(intent, FENCEPOST_PAUSE=f"{Point.AFTER_CLAIM.value}:{gate}") as process,
    ):
        reached(gate)
        holder.execute("SELECT FROM recovery_api_recovery WHERE id = %s FOR NO KEY UPDATE", [recovery.id])
        gate.touch()
        waiting = (
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
            "AND query LIKE 'UPDATE%recovery_api_recovery%'"
        )
        until(lambda: watcher.execute(waiting).fetchone())
        watcher.execute(f"SELECT pg_cancel_backend(pid) FROM ({waiting}) AS w")
        assert process.wait(timeout=120) == 0
        holder.rollback()
    intent.refresh_from_db()
    assert intent.state == IntentState.QUEUED and intent.error is not None
    assert intent.error["code"] == "control_database_away" and "57014" in intent.error["text"]
    Intent.objects.filter(id=intent.id).update(not_before=None)
    run(intent)
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert world.accepted_keys() == ["e1"]


def test_l3_a_defect_under_an_open_claim_releases_it_and_says_so(world: World) -> None:
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    pins = {name: value for name, value in recovery.plan.pins.items() if name != "safe"}
    Plan.objects.filter(id=recovery.plan_id).update(pins=pins)  # read under the claim, and not there
    with pytest.raises(KeyError):
        intent_run(str(recovery.intents.get().id), "meets a defect")
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED and "KeyError" in recovery.says
    assert [claim.state for claim in world.sink().claims(5)] == ["released"]
    assert world.sink().generation_allocate("relay", "letters").word == "allocated", "the relay waits for nothing"


def test_l3_a_claim_that_cannot_be_released_now_is_settled_by_the_sweep_later(world: World, tmp_path: Path) -> None:
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    Intent.objects.filter(id=intent.id).update(attempts=IntentAction.RECOVER.attempts - 1)
    address = Path(world.sink_options["connection"].removeprefix("file:"))
    gate = tmp_path / "gate"
    with worker(intent, FENCEPOST_PAUSE=f"{Point.AFTER_CLAIM.value}:{gate}") as process:
        reached(gate)
        address.write_text("host=127.0.0.1 port=9 dbname=gone user=nobody")
        gate.touch()
        assert process.wait(timeout=120) == 0
    recovery.refresh_from_db()
    assert recovery.outcome is None and recovery.problem is not None, "to be settled"
    address.write_text(world.sink_dsn)
    assert [claim.state for claim in world.sink().claims(5)] == ["open"]
    now = timezone.now()
    assert recoveries_sweep(now) == 0, "a person may be at it"
    assert recoveries_sweep(now + dt.timedelta(minutes=2)) == 1
    assert recoveries_sweep(now + dt.timedelta(minutes=4)) == 0, "one is live"
    run(recovery.intents.get(state=IntentState.QUEUED))
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED, recovery.says
    assert [claim.state for claim in world.sink().claims(5)] == ["released"], "given up, and nothing claimed anew"


@pytest.mark.parametrize("point", [Point.BEFORE_CLAIM, Point.AFTER_CLAIM, Point.DURING_READ])
def test_l9_who_was_passed_by_another_control_plane_says_by_whom_and_when(
    world: World, tmp_path: Path, point: Point
) -> None:
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    gate = tmp_path / "gate"
    with worker(recovery.intents.get(), FENCEPOST_PAUSE=f"{point.value}:{gate}") as process:
        reached(gate)
        newer = int(world.sink().generation_allocate("recoverer", "the other control plane").data["generation"])
        assert world.sink().claim(newer, {}).word == "granted"
        gate.touch()
        assert process.wait(timeout=120) == 0
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.FENCED, recovery.says
    assert f"Superseded by generation {newer}, taken by the other control plane" in recovery.says
    assert f" at {timezone.now():%Y-}" in recovery.says and "claim again" not in recovery.says
    assert world.accepted_keys() == []
