"""Who is woken takes the most urgent work of its queue; equal audits that nobody has begun are one."""

from __future__ import annotations

from recovery_api.models import Event, EventKind, Intent, IntentAction, IntentState
from recovery_api.services.audits import audit_request
from recovery_api.services.intents import intent_create, intent_release, intent_take, intent_take_next
from recovery_api.services.plans import plan_request
from recovery_api.services.recoveries import recovery_request
from tests.integration.control.conftest import make_pipeline


def test_l7_a_recovery_asked_for_last_is_taken_before_the_audits_that_wait(approved_plan, now, later):
    pipeline = approved_plan.pipeline
    audits = [audit_request(pipeline, actor="x", now=later(seconds=n), frontier=str(n), wake=False) for n in range(30)]
    plan, _ = plan_request(pipeline, actor="x", now=later(minutes=1), wake=False)
    recovery = recovery_request(approved_plan.id, "why", "mail", "ada", now=later(minutes=2), wake=False)
    taken = [intent_take_next("spark", f"worker {n}", later(minutes=3)) for n in range(5)]
    assert [intent.action for intent in taken] == ["recover", "plan", "plan", "audit", "audit"]
    assert taken[0].recovery == recovery and taken[3:] == audits[:2] and taken[2].plan == plan


def test_l7_work_of_another_queue_and_work_that_is_not_due_is_left(pipeline, now, later):
    audit = audit_request(pipeline, actor="x", now=now, wake=False)
    assert intent_take_next("default", "light worker", now) is None
    intent_release(intent_take(audit.id, "one", now), {"code": "unreachable", "text": "away"}, now)
    assert intent_take_next("spark", "two", now) is None
    assert intent_take_next("spark", "two", later(seconds=3)) == audit
    intent_create(IntentAction.SINK_READ, actor="x", now=now, sink=pipeline.sink, wake=False)
    assert intent_take_next("default", "light worker", now).action == IntentAction.SINK_READ


def test_l7_equal_queued_audits_become_one_and_who_asked_is_told(pipeline, now, later):
    first = audit_request(pipeline, actor="ada", now=now)
    again = audit_request(pipeline, actor="grace", now=later(seconds=1))
    assert (again.id, again.is_joined, first.is_joined) == (first.id, True, False)
    assert audit_request(pipeline, actor="grace", now=later(seconds=1), frontier="42").id != first.id
    assert audit_request(pipeline, actor="grace", now=later(seconds=1), is_full=True).id != first.id
    assert audit_request(make_pipeline("other", now), actor="grace", now=now).id != first.id
    told = Event.objects.filter(kind=EventKind.AUDIT_REQUESTED, actor="grace").order_by("id").first()
    assert "it joined ada's" in told.says


def test_l7_an_audit_that_is_begun_answers_no_later_request(pipeline, now, later):
    begun = intent_take(audit_request(pipeline, actor="ada", now=now).id, "worker", now)
    assert audit_request(pipeline, actor="grace", now=later(seconds=1)).id != begun.id
    assert Intent.objects.filter(state=IntentState.QUEUED).count() == 1
