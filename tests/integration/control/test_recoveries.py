"""Recoveries: one a plan, one unfinished a pipeline, moved by whoever read them last."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from recovery_api.domain.errors import BadInput, Refused, Unreachable
from recovery_api.domain.recovery_states import UNFINISHED
from recovery_api.domain.strategies import STRATEGIES
from recovery_api.models import Event, EventKind, Intent, PlanState, Recovery, RecoveryOutcome, RecoveryState, Wanted
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.selectors.recoveries import recovery_get, timeline
from recovery_api.services.generations import claim_record, claim_settle, generation_record
from recovery_api.services.intents import intent_fail, intent_take, intents_sweep
from recovery_api.services.plans import plan_approve
from recovery_api.services.recoveries import (
    recovery_finish,
    recovery_move,
    recovery_request,
    recovery_settle_request,
    recovery_want,
    recovery_wanted,
)
from tests.integration.control.conftest import make_ready

CLAIMED = {"generation": 5, "state": "open", "claimed_by": "recoverer", "frontier": None, "arm": None}


@pytest.fixture
def recovery(approved_plan, now):
    return recovery_request(approved_plan.id, "relay died", "mail", "on-call", now=now)


def move(recovery, to, now, **more):
    step = {"event": EventKind.STEP, "actor": "worker", "now": now, **more}
    return recovery_move(recovery, expected=recovery.state, to=to, **step)


def test_states_of_the_table_are_those_of_the_pure_moves():
    assert {state for one in STRATEGIES.values() for state in one.moves} == set(RecoveryState.values)
    assert set(UNFINISHED) == set(RecoveryState.values) - {"finished"}


def test_request_applies_the_plan_and_leaves_one_intent(recovery, approved_plan):
    approved_plan.refresh_from_db()
    assert (approved_plan.state, recovery.state, recovery.frontier) == ("applied", "requested", approved_plan.frontier)
    assert [intent.action for intent in recovery.intents.all()] == ["recover"]


def test_double_click_is_one_recovery(recovery, approved_plan, now):
    again = recovery_request(approved_plan.id, "relay died", "mail", "on-call", now=now)
    assert again.id == recovery.id
    assert Intent.objects.filter(action="recover").count() == 1


@pytest.mark.django_db(transaction=True)
def test_requests_at_the_same_moment_are_one_recovery(approved_plan, now):
    barrier = threading.Barrier(4)

    def request(_: int) -> str:
        barrier.wait()
        try:
            return str(recovery_request(approved_plan.id, "relay died", "mail", "on-call", now=now).id)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        said = set(pool.map(request, range(4)))
    assert len(said) == 1
    assert (Recovery.objects.count(), Intent.objects.filter(action="recover").count()) == (1, 1)


def test_request_needs_a_reason_and_the_typed_name(approved_plan, now):
    with pytest.raises(BadInput, match="reason: is missing"):
        recovery_request(approved_plan.id, "  ", "mail", "on-call", now=now)
    with pytest.raises(BadInput, match="'male' is not this plan's pipeline"):
        recovery_request(approved_plan.id, "why", "male", "on-call", now=now)
    assert not Recovery.objects.exists()


def test_unapproved_and_lapsed_plans_are_not_applied(ready_plan, now, later):
    with pytest.raises(Refused, match=f"approve {ready_plan.id} --digest d1"):
        recovery_request(ready_plan.id, "why", "mail", "on-call", now=now)
    plan_approve(ready_plan.id, "d1", "approver", now)
    with pytest.raises(Refused, match="has lapsed"):
        recovery_request(ready_plan.id, "why", "mail", "on-call", now=later(days=2))
    ready_plan.refresh_from_db()
    assert ready_plan.state == PlanState.LAPSED and not Recovery.objects.exists()


def test_second_recovery_of_a_pipeline_is_refused_naming_the_first(recovery, pipeline, later):
    second = make_ready(pipeline, later(minutes=1), digest="d2")
    plan_approve(second.id, "d2", "approver", later(minutes=1))
    with pytest.raises(Refused, match=f"recovery {recovery.id} \\(requested\\) is unfinished"):
        recovery_request(second.id, "why", "mail", "on-call", now=later(minutes=2))
    second.refresh_from_db()
    assert second.state == PlanState.APPROVED


def test_move_and_its_event_come_together(recovery, now):
    move(recovery, "claiming", now, generation=5, says="Claiming.", data={"arm": 1})
    kept = recovery_get(recovery.id)
    assert (kept.state, kept.generation, kept.revision) == ("claiming", 5, 1) == ("claiming", 5, recovery.revision)
    event = timeline(recovery=recovery).last()
    assert (event.says, event.generation, event.data, event.plan_id) == ("Claiming.", 5, {"arm": 1}, recovery.plan_id)


def test_worker_that_was_taken_over_moves_nothing(recovery, now):
    zombie = recovery_get(recovery.id)
    move(recovery, "claiming", now, generation=5)
    move(recovery, "settling", now)
    events = Event.objects.count()
    with pytest.raises(Refused, match="another got there first: it is settling, and was read as requested"):
        move(zombie, "claiming", now, generation=4)
    with pytest.raises(Refused, match="another got there first"):
        recovery_finish(zombie, outcome=RecoveryOutcome.STOPPED, says="x", actor="worker", now=now)
    assert Event.objects.count() == events and recovery_get(recovery.id).generation == 5


def test_a_row_in_the_same_state_that_another_moved_meanwhile_is_not_ones_own(recovery, now):
    """A successor claims anew, so the state is as it was read: the state alone does not tell whose turn it is."""
    move(recovery, "claiming", now)
    zombie = recovery_get(recovery.id)
    move(recovery, "claiming", now, says="Claiming, another worker.")
    with pytest.raises(Refused, match="another got there first"):
        move(zombie, "arming", now, generation=4)
    with pytest.raises(Refused, match="another got there first"):
        recovery_finish(zombie, outcome=RecoveryOutcome.STOPPED, says="x", actor="worker", now=now)
    assert (recovery_get(recovery.id).state, recovery_get(recovery.id).generation) == ("claiming", None)


def test_zombie_that_reads_the_row_again_is_still_stopped_by_its_intent(recovery, now, later):
    queued = recovery.intents.get()
    dead = intent_take(queued.id, "one", now)
    intents_sweep(later(seconds=31))
    alive = intent_take(queued.id, "two", later(seconds=32))
    zombie = recovery_get(recovery.id)
    with pytest.raises(Refused, match="another worker holds it"):
        move(zombie, "claiming", later(seconds=33), intent=dead)
    assert move(recovery_get(recovery.id), "claiming", later(seconds=33), intent=alive).state == "claiming"


@pytest.mark.django_db(transaction=True)
def test_two_movers_at_the_same_moment_move_it_once(recovery, now):
    barrier = threading.Barrier(2)

    def claim(generation: int) -> int:
        mine = recovery_get(recovery.id)
        barrier.wait()
        try:
            move(mine, "claiming", now, generation=generation)
        except Refused:
            return 0
        finally:
            connection.close()
        return generation

    with ThreadPoolExecutor(2) as pool:
        moved = [generation for generation in pool.map(claim, [5, 6]) if generation]
    assert len(moved) == 1 and recovery_get(recovery.id).generation == moved[0]


def test_recovery_in_hand_stays_as_it_was_when_its_finish_is_refused(recovery, now, later):
    intent = intent_take(recovery.intents.get().id, "one", now)
    move(recovery, "claiming", now, generation=5)
    intents_sweep(later(seconds=31))
    with pytest.raises(Refused):
        recovery_finish(recovery, outcome="fenced", says="x", actor="one", now=later(seconds=32), intent=intent)
    assert (recovery.state, recovery.revision) == ("claiming", 1)
    assert recovery_get(recovery.id).state == "claiming"


def test_steps_are_not_skipped(recovery, now):
    with pytest.raises(Refused, match="requested is not followed by firing"):
        move(recovery, "firing", now)


def test_finish_ends_recovery_and_intent_together(recovery, now):
    intent = intent_take(recovery.intents.get().id, "worker", now)
    move(recovery, "claiming", now, generation=5)
    recovery_finish(
        recovery,
        outcome=RecoveryOutcome.FENCED,
        says="Fenced by 6.",
        actor="worker",
        now=now,
        certificate={"outcome": "fenced"},
        intent=intent,
    )
    intent.refresh_from_db()
    assert (intent.state, intent.result["outcome"], recovery.outcome) == ("done", "fenced", "fenced")
    with pytest.raises(Refused, match="it is finished: fenced"):
        recovery_finish(recovery, outcome=RecoveryOutcome.STOPPED, says="x", actor="worker", now=now)


def test_failed_work_leaves_the_recovery_to_be_settled(recovery, pipeline, now):
    intent = intent_take(recovery.intents.get().id, "worker", now)
    move(recovery, "claiming", now, generation=5)
    intent_fail(intent, Unreachable("mail", "refused").as_row(), now)
    kept = recovery_get("mail")
    assert kept.state == "claiming" and kept.problem["code"] == "unreachable"
    settle = recovery_settle_request(kept, actor="on-call", now=now)
    assert pipeline_status(pipeline, now).status == "unknown"
    assert move(recovery_get("mail"), "settling", now).problem is None
    assert pipeline_status(pipeline, now).status == "running"
    assert settle.action == "settle" and recovery_settle_request(kept, actor="other", now=now).id == settle.id


def test_unknown_outcome_is_unfinished_again_once_somebody_asks(recovery, now):
    intent = intent_take(recovery.intents.get().id, "worker", now)
    move(recovery, "claiming", now, generation=5)
    outcome = RecoveryOutcome.UNKNOWN
    recovery_finish(recovery, outcome=outcome, says="Away.", actor="worker", now=now, intent=intent)
    recovery_settle_request(recovery, actor="on-call", now=now)
    again = recovery_get(recovery.id)
    assert (again.state, again.outcome, again.finished_at) == ("settling", None, None)


def test_known_outcome_is_not_settled_again(recovery, now):
    recovery_want(recovery, Wanted.STOP, actor="on-call", now=now, reason="wrong plan")
    with pytest.raises(Refused, match="it is finished: stopped"):
        recovery_settle_request(recovery, actor="on-call", now=now)


def test_stop_before_anybody_began_ends_it_at_once(recovery, now):
    stopped = recovery_want(recovery, Wanted.STOP, actor="on-call", now=now, reason="wrong plan")
    assert (stopped.outcome, recovery.intents.get().state) == ("stopped", "cancelled")


def test_stop_of_a_running_one_is_a_wish_the_worker_reads(recovery, now):
    intent_take(recovery.intents.get().id, "worker", now)
    move(recovery, "claiming", now, generation=5)
    with pytest.raises(BadInput, match="reason"):
        recovery_want(recovery, Wanted.STOP, actor="on-call", now=now, reason="")
    asked = recovery_want(recovery_get(recovery.id), Wanted.STOP, actor="on-call", now=now, reason="wrong plan")
    assert asked.state == "claiming" and recovery_wanted(recovery) == "stop"
    move(recovery, "settling", now)  # a wish takes nobody's turn away


def test_claim_keeps_its_final_state(recovery, pipeline, now, later):
    generation_record(pipeline, 5, purpose="recoverer", asked_by="worker", now=now, recovery=recovery)
    assert claim_record(recovery, CLAIMED, now=now).state == "open"
    fired = {**CLAIMED, "state": "fired", "arm": 1, "landed_count": 3, "absorbed_count": 0}
    claim_settle(recovery, fired, actor="worker", now=later(seconds=1))
    late = claim_record(recovery, CLAIMED, now=later(seconds=2))
    assert (late.state, late.landed_count, late.said_at) == ("fired", 3, later(seconds=1))
    assert recovery.generations.get().fate == "fired"
    assert Event.objects.filter(kind="claim settled", says__contains="fired, 3 delivered").exists()


def test_generation_is_recorded_once(recovery, pipeline, now):
    generation_record(pipeline, 5, purpose="recoverer", asked_by="worker", now=now)
    with pytest.raises(Refused, match="a generation is allocated once"):
        generation_record(pipeline, 5, purpose="relay", asked_by="relay", now=now)


def test_claim_is_said_in_known_words(recovery, now):
    with pytest.raises(BadInput, match="unknown fields colour"):
        claim_record(recovery, {**CLAIMED, "colour": "red"}, now=now)
    with pytest.raises(BadInput, match="'gone' is no state"):
        claim_record(recovery, {**CLAIMED, "state": "gone"}, now=now)
