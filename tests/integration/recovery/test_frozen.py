"""A freeze while a recovery runs, on real ends: it holds before the next step that could send, frees its worker, and goes on
by itself once the freeze is lifted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from recovery_api.models import Intent, IntentState, Pipeline, Recovery, RecoveryOutcome, RecoveryState
from recovery_api.selectors.recoveries import recovery_steering
from recovery_api.services.freezes import freeze_lift, freeze_set
from tests.integration.recovery.table_at_hand import ended, memory_history_kind, table_at_hand
from tests.integration.recovery.world import World, run
from workers import runners
from workers.faults import Point

STRATEGIES = "workers.recovery.strategies"


def freeze(pipeline: Pipeline | None) -> None:
    freeze_set(pipeline, "a bad deploy", actor="ada", now=timezone.now())


def frozen_at(monkeypatch: pytest.MonkeyPatch, driver: str, at: Point) -> None:
    """Somebody freezes everything the moment a driver comes by `at`."""

    def crash_point(point: Point) -> None:
        if point == at:
            freeze(None)

    monkeypatch.setattr(f"{STRATEGIES}.{driver}.crash_point", crash_point)


def holds(recovery: Recovery) -> Any:
    recovery.refresh_from_db()
    return recovery_steering(recovery)


@pytest.mark.parametrize(
    ("at", "state"),
    [
        (Point.AFTER_CLAIM, RecoveryState.ARMING),
        (Point.BEFORE_ARM, RecoveryState.ARMING),
        (Point.AFTER_ARM, RecoveryState.ARMING),
        (Point.DURING_STAGING, RecoveryState.ARMING),
    ],
)
def test_a_claimed_recovery_sends_nothing_once_frozen(
    world: World, monkeypatch: pytest.MonkeyPatch, at: Point, state: str
) -> None:
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    intent: Intent = recovery.intents.get()
    frozen_at(monkeypatch, "fenced", at)
    assert runners.intent_run(str(intent.id), "w")
    monkeypatch.undo()
    intent.refresh_from_db()
    assert intent.state == IntentState.QUEUED and intent.error is not None and intent.error["code"] == "frozen"
    shown = holds(recovery)
    assert (recovery.state, shown.word, recovery.problem) == (state, "frozen", None)
    assert "its claim stays open: every pipeline is frozen by ada: a bad deploy" in shown.says
    assert world.accepted_keys() == []
    assert not runners.intent_run(str(intent.id), "another"), "it occupies nobody while it is frozen"
    assert world.audit().status == "owed", "audits go on"
    freeze_lift(None, "taken back", actor="ada", now=timezone.now())
    run(intent, "another")
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert world.accepted_keys() == ["e1"]


def test_one_that_has_fired_is_verified_however_frozen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    frozen_at(monkeypatch, "fenced", Point.AFTER_FIRE)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says


def test_one_that_was_not_begun_claims_nothing(world: World) -> None:
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    freeze(world.pipeline)
    before = world.record_fingerprint()
    assert runners.intent_run(str(recovery.intents.get().id), "w")
    shown = holds(recovery)
    assert (recovery.state, shown.word) == (RecoveryState.REQUESTED, "frozen")
    assert world.record_fingerprint() == before


@pytest.fixture
def table(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> Iterator[Any]:
    with memory_history_kind():
        yield table_at_hand(database_factory, tmp_path)


@pytest.mark.parametrize("at", [None, Point.DURING_READ])
def test_nothing_is_appended_once_frozen(table: Any, monkeypatch: pytest.MonkeyPatch, at: Point | None) -> None:
    recovery = table.asked()
    if at is None:
        freeze(table.pipeline)
    else:
        frozen_at(monkeypatch, "attested", at)
    assert runners.intent_run(str(recovery.intents.get().id), "w")
    monkeypatch.undo()
    assert table.accepted() == [2] and holds(recovery).word == "frozen"
    freeze_lift(table.pipeline if at is None else None, "taken back", actor="ada", now=timezone.now())
    assert ended(recovery).outcome == RecoveryOutcome.EXACTLY_ONCE_GIVEN
    assert table.accepted() == [1, 2, 3, 4]
