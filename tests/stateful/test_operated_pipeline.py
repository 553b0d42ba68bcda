"""The real services and workers on ends in memory, operated at random beside a plain model of what must be true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.kinds import base as kinds
from recovery_api.models import Plan, PlanState, Recovery, RecoveryOutcome, RecoveryState
from recovery_api.services.audits import audit_request
from recovery_api.services.plans import plan_approve
from recovery_api.services.recoveries import recovery_finish, recovery_request, recovery_want
from recovery_api.services.sinks import sink_settle_request
from tests.stateful.operated_pipeline import OperatedPipeline

pytestmark = pytest.mark.slow

NOTHING_LANDED = (RecoveryOutcome.STOPPED, RecoveryOutcome.REFUSED, RecoveryOutcome.FENCED)
BOUNDED = settings(
    max_examples=20,
    stateful_step_count=12,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a failing example takes minutes to shrink
    suppress_health_check=list(HealthCheck),
)
ACTIONS = ("take over", "take over", "relay", "wire", "stop", "release", "commit", "foreign claim")


class Operation(RuleBasedStateMachine):
    """What is asked of the product, with what the plain model expects of each answer."""

    @initialize(batch_limit=st.sampled_from([2, 100]), committed=st.integers(1, 4))
    def register(self, batch_limit: int, committed: int) -> None:
        self.world = OperatedPipeline(batch_limit)
        for _ in range(committed):
            self.world.commit()
        self.plan: Plan | None = None
        self.recovery: Recovery | None = None
        self.fence = 0
        self.backup: dict[str, Any] | None = None
        self.was_restored = False

    # -- source, relay, wire ----------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 3))
    def commit(self, count: int) -> None:
        for _ in range(count):
            self.world.commit()

    @rule(are_held_back=st.lists(st.booleans(), max_size=4))
    def relay_starts_and_sends(self, are_held_back: list[bool]) -> None:
        is_open = self.world.sink.state().open_claim is not None
        assert self.world.relay_start() == ("wait" if is_open else "started")
        handed_over = self.world.sink.hand_over().get("0")
        if not is_open and handed_over is not None and not self.was_restored:
            assert not self.world.missing(int(handed_over["position"])), "the hand-over skips something"
        for is_held_back in are_held_back:
            self.world.send(is_held_back)

    @precondition(lambda self: self.world.wire)
    @rule(data=st.data())
    def straggler_arrives(self, data: st.DataObject) -> None:
        send = data.draw(st.sampled_from(self.world.wire))
        self.world.wire.remove(send)
        self.arrive(*send)

    def arrive(self, generation: int, position: int) -> None:
        fence = self.world.sink.state().fence
        is_held = any(position == held for held, _ in self.world.accepted())
        word = self.world.deliver(generation, position)
        if generation < fence:
            assert word == "fenced"
        elif not self.was_restored:
            assert word == ("absorbed" if is_held else "accepted")

    # -- audits, plans, recoveries ----------------------------------------------------------------------------------

    def audit(self) -> None:
        intent = audit_request(self.world.pipeline, actor="ada", now=timezone.now(), wake=False)
        self.world.run(intent)
        audit = self.world.pipeline.audits.get(intent=intent)
        missing = self.world.missing(self.world.committed())
        assert (audit.lost_count, audit.duplicate_count, audit.premature_count) == (len(missing), 0, 0), audit.says
        clean = "exactly_once" if self.world.committed() else "unknown"
        assert audit.status == ("owed" if missing else clean), audit.says

    def plan_at(self, data: st.DataObject) -> None:
        asked = data.draw(st.none() | st.integers(1, self.world.committed()))
        earlier = self.plan
        self.plan = self.world.plan(asked)
        missing = self.world.missing(asked or self.world.committed())
        assert self.plan.state == (PlanState.READY if missing else PlanState.NOTHING_OWED), self.plan.says
        assert self.plan.batch_count == len(missing)
        if earlier is not None:
            earlier.refresh_from_db()
            assert earlier.state not in (PlanState.READY, PlanState.APPROVED)

    def approve_and_apply(self) -> None:
        assert self.plan is not None
        self.plan.refresh_from_db()
        if self.plan.state != PlanState.READY:
            return
        with pytest.raises(Refused):
            self.world.request(self.plan)
        with pytest.raises(Refused):
            plan_approve(self.plan.id, "another digest", "grace", timezone.now())
        self.world.approve(self.plan)
        with pytest.raises(BadInput):
            recovery_request(self.plan.id, "a slip", "another-name", "ada", now=timezone.now(), wake=False)
        self.world.pipeline.sink.refresh_from_db()
        if self.world.pipeline.sink.restored_at is not None or self.is_unfinished():
            with pytest.raises(Refused):
                self.world.request(self.plan)
            return
        self.recovery = self.world.request(self.plan)
        assert self.world.request(self.plan).id == self.recovery.id, "applied twice"

    @rule(
        data=st.data(),
        at=st.integers(1, 22),
        actions=st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=3),
        dies=st.booleans(),
    )
    def work(self, data: st.DataObject, at: int, actions: list[str], dies: bool) -> None:
        """On the unfinished recovery, or on a new one."""
        if not self.is_unfinished():
            self.plan_at(data)
            self.approve_and_apply()
        if self.recovery is not None and self.is_unfinished():
            self.world.work(self.recovery, at, lambda: self.happen(actions), dies)
            self.judge_the_end()

    @precondition(lambda self: self.is_unfinished())
    @rule()
    def work_to_the_end(self) -> None:
        assert self.recovery is not None
        self.world.finish(self.recovery)
        self.recovery.refresh_from_db()
        assert self.recovery.state == RecoveryState.FINISHED, "a worker left alone did not end it"
        self.judge_the_end()

    def happen(self, actions: list[str]) -> None:
        """While a worker stands still in the middle of the recovery."""
        assert self.recovery is not None
        possible: dict[str, Callable[[], object]] = {
            "take over": self.take_over,
            "relay": lambda: self.world.relay_start() and self.world.send(is_held_back=False),
            "wire": self.everything_arrives,
            "stop": self.want_stop,
            "release": self.release,
            "commit": self.world.commit,
            "foreign claim": self.foreign_claim,
        }
        for action in actions:
            possible[action]()

    def take_over(self) -> None:
        if self.is_unfinished():
            assert self.recovery is not None
            self.world.finish(self.recovery)

    def everything_arrives(self) -> None:
        while self.world.wire:
            self.arrive(*self.world.wire.pop())

    def want_stop(self) -> None:
        if self.recovery is not None and self.is_unfinished():
            recovery_want(self.recovery, "stop", actor="ada", now=timezone.now(), reason="Enough.", wake=False)

    def foreign_claim(self) -> None:
        """Somebody recovers with tools of their own, and gives up."""
        sink = self.world.sink
        generation = int(sink.generation_allocate("recoverer", "a script").data["generation"])
        assert sink.claim(generation, {}).word == "granted"
        sink.release(generation, "a script that gave up")

    def release(self) -> None:
        if (claim := self.world.sink.state().open_claim) is not None:
            self.world.sink.release(claim.generation, "a person")

    def is_unfinished(self) -> bool:
        if self.recovery is None:
            return False
        self.recovery.refresh_from_db()
        return self.recovery.state != RecoveryState.FINISHED

    def judge_the_end(self) -> None:
        """What a finished recovery says is true, no more and no less."""
        if self.recovery is None or self.is_unfinished() or self.was_restored:
            return
        recovery = self.recovery
        event(f"ended {recovery.outcome}")
        self.audit()
        ours = set(recovery.generations.values_list("number", flat=True))
        landed = [position for position, generation in self.world.accepted() if generation in ours]
        assert recovery.landed_count == len(landed), (recovery.outcome, recovery.says)
        frontier = int(recovery.frontier["0"]["position"])
        if recovery.outcome == RecoveryOutcome.EXACTLY_ONCE:
            assert not self.world.missing(frontier)
            assert int(self.world.sink.hand_over()["0"]["position"]) >= frontier
        elif recovery.outcome in NOTHING_LANDED:
            assert not landed or recovery.batches > 1, recovery.says
            for generation in ours:  # and nothing of it lands any more
                assert self.world.sink.fire(generation, 1).word in ("fenced", "not armed", "already fired")
        else:
            raise AssertionError(f"it ended {recovery.outcome}: {recovery.says}")
        with pytest.raises(Refused):
            recovery_finish(recovery, outcome=RecoveryOutcome.UNKNOWN, says="", actor="ada", now=timezone.now())
        with pytest.raises(Refused):
            recovery_want(recovery, "stop", actor="ada", now=timezone.now(), reason="Too late.", wake=False)

    # -- what nobody may do -----------------------------------------------------------------------------------------

    @rule()
    def lapsed_plan_is_not_approved(self) -> None:
        for plan in Plan.objects.filter(pipeline=self.world.pipeline, state=PlanState.LAPSED)[:1]:
            with pytest.raises(Refused):
                self.world.approve(plan)
            with pytest.raises(Refused):
                self.world.request(plan)

    @rule()
    def generation_that_was_passed_or_never_given_does_nothing(self) -> None:
        sink = self.world.sink
        state = sink.state()
        never = state.counter + 5
        assert sink.claim(never, {}).word == "unallocated"
        assert self.world.deliver(never, 1) == "unallocated"
        if state.fence > 0:
            old = state.fence - 1
            assert sink.begin(old).word == "refused"
            assert sink.claim(old, {}).word == "refused"
            assert sink.fire(old, 1).word == "fenced"
            assert self.world.deliver(old, 1) == "fenced"

    # -- the sink fails over to an older copy of itself ---------------------------------------------------------------

    @precondition(lambda self: self.backup is None)
    @rule()
    def sink_is_backed_up(self) -> None:
        self.backup = self.world.backup()

    @precondition(lambda self: self.backup is not None and not self.was_restored)
    @rule()
    def sink_fails_over_to_its_backup(self) -> None:
        assert self.backup is not None
        self.world.restore(self.backup)
        self.was_restored = True
        self.fence = 0

    @precondition(lambda self: self.was_restored)
    @rule()
    def restored_sink_is_settled(self) -> None:
        sink = self.world.pipeline.sink
        self.world.run(sink_settle_request(sink, actor="ada", now=timezone.now(), wake=False))
        sink.refresh_from_db()
        assert sink.restored_at is None

    # -- what holds at every moment -----------------------------------------------------------------------------------

    @invariant()
    def record_holds_each_committed_event_at_most_once(self) -> None:
        positions = [position for position, _ in self.world.accepted()]
        assert len(positions) == len(set(positions))
        assert all(1 <= position <= self.world.committed() for position in positions)

    @invariant()
    def nothing_of_an_older_generation_enters_after_a_newer_one(self) -> None:
        generations = [generation for _, generation in self.world.accepted()]
        assert self.was_restored or generations == sorted(generations)

    @invariant()
    def fence_never_sinks(self) -> None:
        fence = self.world.sink.state().fence
        assert fence >= self.fence
        self.fence = fence


@pytest.fixture(autouse=True)
def _memory_history() -> Iterator[None]:
    kinds.KINDS["memory_history"] = "tests.stateful.memory_source"
    yield
    del kinds.KINDS["memory_history"]


def test_what_the_product_says_is_true_however_it_is_operated(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    settings.REDIS_URL = ""
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path / "evidence"
    run_state_machine_as_test(Operation, settings=BOUNDED)
