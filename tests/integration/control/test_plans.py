"""Plans: approved by digest, superseded, lapsed, applied once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connection, transaction

from recovery_api.domain.errors import BadCoordinate, BadInput, NotFound, Refused
from recovery_api.models import Event, Plan, PlanState, Recovery
from recovery_api.services.intents import intent_take
from recovery_api.services.plans import (
    plan_approve,
    plan_record,
    plan_refuse,
    plan_request,
    plan_start,
    plans_sweep,
)
from tests.integration.control.conftest import FRONTIER, make_pipeline, make_ready

BATCH = {"conditions": [], "batch": {"provably missing": "1"}, "batch_count": 1, "says": "One is owed."}


def test_plan_is_computed_by_its_intent_and_both_end_together(pipeline, now):
    plan, queued = plan_request(pipeline, actor="author", now=now, frontier="42")
    assert (plan.state, plan.frontier) == (PlanState.DRAFT, FRONTIER)
    intent = intent_take(queued.id, "worker", now)
    plan_start(intent.plan)
    done = plan_record(plan, digest="d", frontier=FRONTIER, now=now, intent=intent, **BATCH)
    intent.refresh_from_db()
    assert (done.state, intent.state, intent.result["plan"]) == (PlanState.READY, "done", str(plan.id))


def test_worker_that_lost_its_intent_records_no_plan(pipeline, now, later):
    from recovery_api.services.intents import intents_sweep

    plan, queued = plan_request(pipeline, actor="author", now=now)
    dead = intent_take(queued.id, "worker", now)
    intents_sweep(later(seconds=31))
    intent_take(queued.id, "successor", later(seconds=32))
    with pytest.raises(Refused):
        plan_record(plan, digest="d", frontier=FRONTIER, now=now, intent=dead, **BATCH)
    plan.refresh_from_db()
    assert plan.state == PlanState.DRAFT and not Event.objects.filter(kind="plan recorded").exists()


def test_plan_with_nothing_to_send_is_a_success(pipeline, now):
    plan, _ = plan_request(pipeline, actor="author", now=now)
    done = plan_record(plan, digest="d", frontier=FRONTIER, now=now, **{**BATCH, "batch_count": 0})
    assert done.state == PlanState.NOTHING_OWED
    with pytest.raises(Refused, match="nothing owed, not ready"):
        plan_approve(plan.id, "d", "approver", now)


def test_plan_is_computed_once(pipeline, now):
    plan = make_ready(pipeline, now)
    for again in (
        lambda: plan_start(plan),
        lambda: plan_record(plan, digest="x", frontier=FRONTIER, now=now, **BATCH),
        lambda: plan_refuse(plan, conditions=[], says="no", now=now),
    ):
        with pytest.raises(Refused):
            again()
    plan.refresh_from_db()
    assert plan.digest == "d1"


def test_bad_frontier_is_refused_and_nothing_is_written(pipeline, now):
    with pytest.raises(BadCoordinate):
        plan_request(pipeline, actor="author", now=now, frontier="16/B374D848")
    with pytest.raises(BadInput, match="is empty"):
        plan_request(pipeline, actor="author", now=now, frontier=" ")
    assert not Plan.objects.exists()


def test_approval_needs_the_digest_that_is_there(ready_plan, now):
    with pytest.raises(Refused, match="its digest is d1, not d2"):
        plan_approve(ready_plan.id, "d2", "approver", now)
    assert plan_approve(ready_plan.id, "d1", "approver", now).state == PlanState.APPROVED


def test_author_does_not_approve_unless_the_pipeline_says_so(ready_plan, now):
    with pytest.raises(Refused, match="author is its author"):
        plan_approve(ready_plan.id, "d1", "author", now)
    lenient = make_ready(make_pipeline("lenient", now, requires_other_approver=False), now)
    assert plan_approve(lenient.id, "d1", "author", now).approved_by == "author"


def test_approving_twice_is_one_approval_by_the_first(ready_plan, now, later):
    plan_approve(ready_plan.id, "d1", "approver", now)
    again = plan_approve(ready_plan.id, "d1", "second", later(seconds=5))
    assert (again.approved_by, again.approved_at) == ("approver", now)
    assert Event.objects.filter(kind="plan approved").count() == 1


@pytest.mark.django_db(transaction=True)
def test_approvals_at_the_same_moment_are_one_approval(ready_plan, now):
    barrier = threading.Barrier(4)

    def approve(name: str) -> str:
        barrier.wait()
        try:
            return plan_approve(ready_plan.id, "d1", name, now).approved_by
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        said = set(pool.map(approve, ["a", "b", "c", "d"]))
    assert len(said) == 1
    assert Event.objects.filter(kind="plan approved").count() == 1


def test_newer_plan_lapses_the_waiting_one(approved_plan, pipeline, later):
    newer = make_ready(pipeline, later(minutes=1), digest="d2")
    approved_plan.refresh_from_db()
    assert (approved_plan.state, newer.state) == (PlanState.LAPSED, PlanState.READY)
    with pytest.raises(Refused, match="lapsed, not ready"):
        plan_approve(approved_plan.id, "d1", "approver", later(minutes=2))


def test_plan_that_ends_after_a_newer_one_is_recorded_as_lapsed(pipeline, now, later):
    slow, _ = plan_request(pipeline, actor="author", now=now)
    quick = make_ready(pipeline, later(seconds=1), digest="quick")
    slow = plan_record(slow, digest="slow", frontier=FRONTIER, now=later(seconds=9), **BATCH)
    quick.refresh_from_db()
    assert (slow.state, quick.state) == (PlanState.LAPSED, PlanState.READY)


def test_approval_lapses_of_age(approved_plan, later):
    assert plans_sweep(later(hours=23)) == 0
    assert plans_sweep(later(hours=25)) == 1
    approved_plan.refresh_from_db()
    assert approved_plan.state == PlanState.LAPSED


def test_plan_that_is_not_there_is_named(db, now):
    for plan_id in ("nonsense", "00000000-0000-0000-0000-000000000000"):
        with pytest.raises(NotFound, match=plan_id):
            plan_approve(plan_id, "d", "approver", now)


def test_database_itself_refuses_an_approval_of_another_digest(ready_plan):
    approval = {"approved_by": "x", "approved_at": ready_plan.created_at, "approved_digest": "other"}
    with pytest.raises(IntegrityError, match="an_approval_is_bound_to_the_digest"), transaction.atomic():
        Plan.objects.filter(id=ready_plan.id).update(state=PlanState.APPROVED, **approval)
    assert not Recovery.objects.exists()
