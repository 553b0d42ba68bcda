"""Intents: taken once, ended by their holder, offered again after a death."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from recovery_api.domain.errors import Refused, UnknownOption, Unreachable
from recovery_api.models import Event, Intent, IntentAction, IntentState, PlanState
from recovery_api.services.audits import audit_request
from recovery_api.services.intents import (
    intent_cancel,
    intent_create,
    intent_fail,
    intent_finish,
    intent_heartbeat,
    intent_progress,
    intent_release,
    intent_spark,
    intent_take,
    intents_sweep,
)
from recovery_api.services.plans import plan_request

TROUBLE = Unreachable("orders", "connection refused").as_row()


@pytest.fixture
def queued(pipeline, now):
    return audit_request(pipeline, actor="on-call", now=now)


def test_one_of_two_takers_gets_the_intent(queued, now, later):
    first = intent_take(queued.id, "one", now)
    assert first is not None and (first.state, first.attempts, first.taken_by) == ("taken", 1, "one")
    assert intent_take(queued.id, "two", now) is None
    intent_finish(first, {"says": "done"}, later(seconds=1))
    assert intent_take(queued.id, "two", now) is None


@pytest.mark.django_db(transaction=True)
def test_many_takers_on_their_own_connections_take_an_intent_once(now, pipeline):
    intents = [audit_request(pipeline, actor="on-call", now=now, frontier=str(n)) for n in range(20)]
    takers = 6
    barrier = threading.Barrier(takers)

    def take_all(name: str) -> int:
        barrier.wait()
        try:
            return sum(intent_take(intent.id, name, now) is not None for intent in intents)
        finally:
            connection.close()

    with ThreadPoolExecutor(takers) as pool:
        taken = list(pool.map(take_all, [f"taker {n}" for n in range(takers)]))
    assert sum(taken) == 20
    assert set(Intent.objects.values_list("attempts", flat=True)) == {1}


def test_a_taker_that_lost_its_intent_writes_nothing(queued, now, later):
    dead = intent_take(queued.id, "one", now)
    assert intents_sweep(later(seconds=31)).offered_count == 1
    # The same worker may even take it again: the attempt tells its two lives apart.
    alive = intent_take(queued.id, "one", later(seconds=32))
    assert alive.attempts == 2
    assert not intent_heartbeat(dead, later(seconds=33))
    assert not intent_progress(dead, {"step": "read"}, later(seconds=33))
    for ending in (
        lambda: intent_finish(dead, {}, now),
        lambda: intent_fail(dead, TROUBLE, now),
        lambda: intent_release(dead, TROUBLE, now),
        lambda: intent_spark(dead, "session", "tag", now),
    ):
        with pytest.raises(Refused, match="another worker holds it"):
            ending()
    assert intent_heartbeat(alive, later(seconds=33))


def test_sweep_leaves_a_beating_intent_and_offers_a_silent_one_again(pipeline, now, later):
    beating, silent = (audit_request(pipeline, actor="on-call", now=now, frontier=str(n)) for n in (1, 2))
    held = intent_take(beating.id, "one", now)
    intent_take(silent.id, "two", now)
    intent_progress(held, {"step": "read", "done": 1}, later(seconds=20))
    assert intents_sweep(later(seconds=31)).offered_count == 1
    beating.refresh_from_db()
    silent.refresh_from_db()
    assert (beating.state, silent.state) == (IntentState.TAKEN, IntentState.QUEUED)


def test_sweep_gives_up_what_its_takers_keep_dying_of(pipeline, now, later):
    plan, intent = plan_request(pipeline, actor="author", now=now)
    limit = IntentAction.PLAN.attempts
    for attempt in range(limit):
        assert intent_take(intent.id, f"taker {attempt}", later(minutes=attempt)) is not None
        report = intents_sweep(later(minutes=attempt, seconds=40))
    assert (report.given_up_count, report.offered_count) == (1, 0)
    intent.refresh_from_db()
    plan.refresh_from_db()
    assert intent.state == IntentState.FAILED and f"{limit} workers took this" in intent.error["text"]
    assert plan.state == PlanState.REFUSED and "workers took this" in plan.says


def test_released_intent_comes_back_later_each_time_and_fails_in_the_end(queued, now, later):
    held = intent_take(queued.id, "one", now)
    released = intent_release(held, TROUBLE, now)
    assert released.state == IntentState.QUEUED and released.error["code"] == "unreachable"
    assert intent_take(queued.id, "one", later(seconds=1)) is None
    moment = now
    for _ in range(IntentAction.AUDIT.attempts - 1):
        moment = released.not_before
        held = intent_take(queued.id, "one", moment)
        released = intent_release(held, TROUBLE, moment)
    assert released.state == IntentState.FAILED and released.finished_at == moment
    assert Event.objects.filter(kind="work failed", says__contains="Cannot reach orders").count() == 1


def test_intent_can_be_cancelled_until_it_is_taken(pipeline, now):
    one, other = (audit_request(pipeline, actor="on-call", now=now, frontier=str(n)) for n in (1, 2))
    assert intent_cancel(one, actor="on-call", now=now)
    assert not intent_cancel(one, actor="on-call", now=now)
    intent_take(other.id, "one", now)
    assert not intent_cancel(other, actor="on-call", now=now)


def test_unknown_argument_is_named(pipeline, now):
    """RC-75."""
    with pytest.raises(UnknownOption, match=r"audit\.frontir: no such option\. Did you mean 'frontier'"):
        intent_create(IntentAction.AUDIT, actor="x", now=now, pipeline=pipeline, arguments={"frontir": "1"})


def test_intent_whose_time_has_not_come_is_not_woken(queued, now, settings):
    assert intents_sweep(now).woken_count == 0  # no broker: the row waits all the same
    queued.refresh_from_db()
    assert queued.state == IntentState.QUEUED


@pytest.mark.parametrize("hours", [-1, 1])
def test_work_goes_on_when_the_control_databases_clock_jumps(pipeline, now, later, hours):
    """A dead worker's intent is offered again at once, and a live one takes it from there by beating."""
    dead, alive, put_off = (audit_request(pipeline, actor="on-call", now=now, frontier=str(n)) for n in (1, 2, 3))
    intent_take(dead.id, "one", now)
    held = intent_take(alive.id, "two", now)
    intent_release(intent_take(put_off.id, "three", now), TROUBLE, now)
    assert intents_sweep(now).offered_count == 0
    assert intent_heartbeat(held, later(hours=hours))
    assert intents_sweep(later(hours=hours)).offered_count == 1
    assert intent_take(dead.id, "four", later(hours=hours)) is not None
    assert intent_take(put_off.id, "four", later(hours=hours)) is not None
