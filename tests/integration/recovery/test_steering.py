"""Pause, stop and the end of a worker: obeyed between two steps, and shown as what is so, not as what was asked."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.domain.claims import ClaimState
from recovery_api.models import Intent, IntentState, Recovery, RecoveryOutcome
from recovery_api.selectors.recoveries import recovery_steering
from recovery_api.services.recoveries import recovery_want
from tests.faults.processes import environment, reached
from tests.integration.recovery.world import World, run
from tests.zygote import forked
from workers import heart, runners, stopping
from workers.faults import Point
from workers.stopping import stop_ask


def until(holds: Callable[[], Any], within_seconds: float = 120) -> None:
    """Wait until `holds`, which looks at rows that another process writes."""
    deadline, pause = time.monotonic() + within_seconds, threading.Event()
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        pause.wait(0.05)


def steered(recovery: Recovery) -> Any:
    recovery.refresh_from_db()
    return recovery_steering(recovery)


def want(recovery: Recovery, wanted: str) -> None:
    recovery_want(recovery, wanted, actor="ada", now=timezone.now(), reason="wait a moment", wake=False)


@pytest.mark.parametrize("point", [Point.AFTER_CLAIM, Point.DURING_STAGING])
def test_t13_a_pause_is_shown_as_asked_until_it_holds_and_holds_before_the_fire(
    world: World, tmp_path: Path, point: Point
) -> None:
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    gate = tmp_path / "gate"
    with forked(
        "tests.faults.run_intent",
        str(recovery.intents.get().id),
        "paused",
        env=environment(FENCEPOST_PAUSE=f"{point.value}:{gate}"),
    ) as worker:
        reached(gate)
        want(recovery, "pause")
        shown = steered(recovery)
        assert (shown.word, shown.is_paused) == ("pause asked", False) and "will hold before" in shown.says
        gate.touch()
        until(lambda: steered(recovery).is_paused)
        assert recovery_steering(recovery).says == "ada asked it to pause. It holds before reading under the claim."
        assert world.accepted_keys() == []
        [claim] = world.sink().claims(5)
        assert claim.state == ClaimState.OPEN
        want(recovery, "run")
        assert worker.wait(timeout=120) == 0
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert recovery.generations.count() == 1, "it went on under the claim that it had"
    assert world.accepted_keys() == ["e1"]


def stop_withdraw() -> None:
    """Not told any more: this process goes on to other tests."""
    stopping._asked[0] = 0


@pytest.fixture
def told_to_end() -> Any:
    yield stop_ask
    stop_withdraw()


def test_l10_a_worker_told_to_end_stops_before_the_second_part_and_gives_the_intent_back(
    world: World, told_to_end: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(world.sink_dsn) as sink:
        sink.execute("UPDATE fencepost.standing SET batch_limit = 2")
    world.commit(["e1", "e2"])
    world.commit(["e3", "e4"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()

    def crash_point(point: Point) -> None:
        if point == Point.AFTER_FIRE:
            told_to_end()

    monkeypatch.setattr("workers.recovery.strategies.fenced.crash_point", crash_point)
    assert not runners.intent_run(str(intent.id), "told to end")
    monkeypatch.undo()
    intent.refresh_from_db()
    recovery.refresh_from_db()
    assert (intent.state, intent.not_before, intent.error) == (IntentState.QUEUED, None, None)
    assert (recovery.state, recovery.landed_count, recovery.batch_index) == ("verifying", 2, 1), (
        "what landed is recorded"
    )
    stop_withdraw()
    run(intent, "another")
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert world.accepted_keys() == ["e1", "e2", "e3", "e4"]


def test_l10_ctrl_c_and_sigterm_in_a_command_give_the_intent_back_at_once(world: World, tmp_path: Path) -> None:
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    for number, told in enumerate((signal.SIGINT, signal.SIGTERM)):
        gate = tmp_path / f"gate{number}"
        with subprocess.Popen(
            [sys.executable, "manage.py", "recovery", "orders-mail", "settle", "--here"],
            env=environment(FENCEPOST_PAUSE=f"{Point.AFTER_CLAIM.value}:{gate}"),
            stderr=subprocess.PIPE,
        ) as command:
            reached(gate)
            command.send_signal(told)
            command.communicate(timeout=60)
            assert command.returncode != 0
        intent.refresh_from_db()
        assert (intent.state, intent.not_before, intent.attempts) == (IntentState.QUEUED, None, number + 1)
    run(intent, "another")
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says


def test_l1_work_that_stands_still_is_given_back_and_interrupted_while_its_process_lives(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent network: the call waits for good. What beat on was mere life."""
    world.commit(["e1"])
    recovery = world.request(world.approve(world.plan()))
    intent = recovery.intents.get()
    monkeypatch.setattr(heart, "DEADLINE_SECONDS", 1.0)
    monkeypatch.setattr(heart, "DEADLINES_SECONDS", {})

    def crash_point(point: Point) -> None:
        if point == Point.AFTER_CLAIM:
            threading.Event().wait(300)  # as recv() on a connection whose packets are swallowed

    monkeypatch.setattr("workers.recovery.strategies.fenced.crash_point", crash_point)
    assert not runners.intent_run(str(intent.id), "stands still")
    monkeypatch.undo()
    intent.refresh_from_db()
    assert (intent.state, intent.not_before) == (IntentState.QUEUED, None)
    assert intent.error is not None and intent.error["code"] == "stood_still"
    run(intent, "another")
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert world.accepted_keys() == ["e1"]


def test_l1_work_that_beats_is_not_taken_for_dead(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow and honest: a step longer than its deadline, in which rows come."""
    world.commit(["e1"])
    monkeypatch.setattr(heart, "DEADLINE_SECONDS", 1.0)
    monkeypatch.setattr(heart, "LOOK_SECONDS", 0.1)
    intent = Intent.objects.create(
        action="audit", state="queued", created_at=timezone.now(), created_by="ada", pipeline=world.pipeline
    )

    def audit(intent: Intent, report: Any) -> dict[str, Any]:
        from workers.connectors.progress import progress_beat

        pause = threading.Event()
        for _ in range(30):
            pause.wait(0.1)
            progress_beat()
        return {"says": "done"}

    monkeypatch.setattr(runners, "_actions", lambda: {"audit": audit})
    assert runners.intent_run(str(intent.id), "slow")
    intent.refresh_from_db()
    assert intent.state == IntentState.DONE
