"""What a person is told while work waits, and what becomes of work that is withdrawn."""

from __future__ import annotations

import pytest

from recovery_api.domain.errors import Refused
from recovery_api.models import EventKind, IntentState, PlanState
from recovery_api.selectors.intents import intent_waiting
from recovery_api.selectors.plans import approval_ends_at, plan_estimate
from recovery_api.selectors.recoveries import recovery_steps, timeline
from recovery_api.selectors.workers import worker_presence
from recovery_api.services.audits import audit_request
from recovery_api.services.intents import intent_take, intent_withdraw
from recovery_api.services.plans import plan_record, plan_request, plan_start
from recovery_api.services.recoveries import recovery_request
from recovery_api.services.workers import worker_say_gone, worker_say_present
from tests.integration.control.conftest import FRONTIER


def test_work_that_nobody_takes_says_so_and_what_to_do(pipeline, now, later):
    intent = audit_request(pipeline, actor="ada", now=now)
    assert not intent_waiting(intent, later(seconds=3)).is_alone
    waiting = intent_waiting(intent, later(minutes=3))
    assert waiting.is_alone and "Queued for 3 min; no worker has taken it. Nothing is lost." in waiting.says
    assert "make worker" in waiting.remedy


def test_a_worker_that_fell_silent_is_named(pipeline, now, later):
    intent = intent_take(audit_request(pipeline, actor="ada", now=now).id, "host/1/a", now)
    assert "Taken by a worker on host, attempt" in intent_waiting(intent, later(seconds=3)).says
    assert "Its worker on host has been silent for 25 s" in intent_waiting(intent, later(seconds=25)).says


def test_t18_a_process_that_died_with_the_work_and_no_worker_to_go_on_are_both_said(pipeline, now, later):
    intent = intent_take(audit_request(pipeline, actor="ada", now=now).id, "host/1/here", now)
    waiting = intent_waiting(intent, later(seconds=40))
    assert waiting.is_alone
    assert (
        "Its command on host has been silent for 40 s. No worker has been heard of. Nobody goes on with it"
        in waiting.says
    )
    assert "make worker" in waiting.remedy
    worker_say_present("host/2", ["spark", "default"], later(seconds=35))
    assert "offered to another worker" in intent_waiting(intent, later(seconds=40)).remedy


def test_t18_queued_work_says_when_the_last_worker_was_heard_of(pipeline, now, later):
    intent = audit_request(pipeline, actor="ada", now=now)
    worker_say_present("host/2", ["default"], now)
    assert intent_waiting(intent, later(seconds=3)).says.endswith("No worker that is running takes the queue spark.")
    says = intent_waiting(intent, later(minutes=4)).says
    assert says.endswith("No worker is running: the last one was heard of 4 min ago.")
    worker_say_present("host/3", ["spark"], later(minutes=4))
    assert "busy with other work" in intent_waiting(intent, later(minutes=4)).remedy
    worker_say_present("host/3", ["spark"], later(minutes=4), is_stopping=True)
    assert "No worker is running" in intent_waiting(intent, later(minutes=4)).says
    worker_say_gone("host/3")
    assert worker_presence(now).last_seen_at == now


def test_withdrawn_work_refuses_the_plan_it_was_for(pipeline, now):
    plan, intent = plan_request(pipeline, actor="ada", now=now)
    intent_withdraw(intent, actor="grace", now=now)
    plan.refresh_from_db()
    assert plan.state == PlanState.REFUSED and "grace withdrew it" in plan.says
    with pytest.raises(Refused, match="it is over"):
        intent_withdraw(intent, actor="grace", now=now)


def test_withdrawn_audit_stands_in_the_timeline(pipeline, now):
    intent = audit_request(pipeline, actor="ada", now=now)
    intent_withdraw(intent, actor="ada", now=now)
    intent.refresh_from_db()
    assert intent.state == IntentState.CANCELLED
    assert timeline(pipeline).last().kind == EventKind.WORK_FAILED


def test_taken_work_is_not_withdrawn(pipeline, now):
    intent = intent_take(audit_request(pipeline, actor="ada", now=now).id, "host/1/a", now)
    with pytest.raises(Refused, match="a worker has taken it"):
        intent_withdraw(intent, actor="ada", now=now)


def test_a_recoverys_work_is_stopped_and_not_withdrawn(approved_plan, now):
    recovery = recovery_request(approved_plan.id, "why", "mail", "ada", now=now)
    with pytest.raises(Refused, match="belongs to a recovery"):
        intent_withdraw(recovery.intents.get(), actor="ada", now=now)
    assert {step.standing.value for step in recovery_steps(recovery, None)} == {"waiting"}


def test_an_estimate_rests_on_the_plans_own_reading(pipeline, now, later):
    plan, intent = plan_request(pipeline, actor="ada", now=now)
    taken = intent_take(intent.id, "host/1/a", now)
    plan_record(
        plan_start(plan),
        digest="d",
        frontier=FRONTIER,
        conditions=[],
        batch={},
        batch_count=20_000,
        says="Owed.",
        now=later(seconds=30),
        intent=taken,
    )
    plan.refresh_from_db()
    estimate = plan_estimate(plan)
    assert estimate.seconds == 62 and "30 s, which is what the plan took" in estimate.says


def test_an_approval_says_until_when_it_holds(approved_plan, later):
    assert approval_ends_at(approved_plan) == later(days=1)
