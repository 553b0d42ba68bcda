"""Schedules in the control database: who asks, how often, what a restart changes, and what nobody answered."""

from __future__ import annotations

import datetime as dt
import itertools
import threading

import pytest
from django.db import connection

from recovery_api.domain.errors import BadInput
from recovery_api.domain.schedules import ACTOR
from recovery_api.models import Audit, Event, EventKind, Intent, IntentAction, IntentState, Schedule
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.fleet import fleet_status, pipeline_status
from recovery_api.selectors.fleet_pages import fleet_entries
from recovery_api.services.audits import audit_record, audit_request
from recovery_api.services.intents import intent_fail, intent_take, intent_take_next
from recovery_api.services.pipelines import pipeline_update
from recovery_api.services.recoveries import recovery_request
from recovery_api.services.retirement import pipeline_retire
from recovery_api.services.schedules import schedule_ask, schedule_forget, schedules_sweep
from tests.integration.control.conftest import FRONTIER, make_pipeline
from workers.presence import sweep

DAY = dt.timedelta(days=1)
DAILY = {"audit_every_seconds": 86_400, "stale_after_seconds": 3 * 86_400, "audit_jitter_percent": 0}


def asked(pipeline=None):
    """The audits that schedules asked for, oldest first."""
    found = Intent.objects.filter(action=IntentAction.AUDIT, created_by=ACTOR).order_by("created_at")
    return list(found.filter(pipeline=pipeline) if pipeline else found)


def swept(start, minutes):
    """Sweeps every ten seconds for so long, as workers do; how many audits were asked for."""
    return sum(schedules_sweep(start + dt.timedelta(seconds=10 * n)) for n in range(6 * minutes))


def answered(intent, at, status="exactly_once", exit_code=0, **more):
    """The scheduled audit, taken and recorded by a worker."""
    taken = intent_take(intent.id, "worker", at)
    given = {"started_at": at, "now": at, "is_full": True, "says": "Judged.", "frontier": FRONTIER, **more}
    return audit_record(intent.pipeline, status=status, exit_code=exit_code, intent=taken, **given)


def status_of(name, now):
    """The word of the pipeline's page and of the overview, which are one, and its sentence."""
    found = pipeline_status(pipeline_get(name), now)
    entry = next(one for one in fleet_entries(now) if one.name == name)
    assert entry.word == found.status
    return str(found.status), found.says


def test_a_fresh_pipeline_is_audited_first_after_a_period_and_then_every_period(pipeline, now, later):
    assert swept(now, 4) == 0
    for minute in range(4, 64):
        if swept(later(minutes=minute), 1):
            answered(asked()[-1], later(minutes=minute, seconds=59))
    times = [one.created_at for one in asked()]
    gaps = [(after - before).total_seconds() for before, after in itertools.pairwise(times)]
    assert len(times) in (12, 13) and all(260 <= gap <= 310 for gap in gaps)
    assert all(one.arguments["is_scheduled"] for one in asked())
    assert status_of("mail", later(minutes=64))[0] == "exactly_once"


def test_a_daily_audit_outlives_ten_restarts_a_day_and_never_sleeps_a_day(db, now):
    """A loop that sleeps a day before its first run would never run: each of its processes dies before. When it is due
    next is stored, and no restart moves it; a day that nobody swept is overdue, and unknown (the next test)."""
    pipeline = make_pipeline("mail", now, options=DAILY)
    for day in range(1, 8):
        for restart in range(10):
            schedules_sweep(now + DAY * (day - 1) + DAY * restart / 10 + dt.timedelta(hours=1))
        assert len(asked(pipeline)) == day - 1
        schedules_sweep(now + DAY * day)
        assert len(asked(pipeline)) == day
        answered(asked()[-1], now + DAY * day)
    assert [one.created_at for one in asked()] == [now + DAY * day for day in range(1, 8)]


def test_a_day_that_nobody_swept_is_overdue_and_unknown_since_its_due_time(db, now):
    pipeline = make_pipeline("mail", now, options=DAILY)
    schedules_sweep(now)
    schedules_sweep(now + DAY)
    answered(asked()[-1], now + DAY)
    assert status_of("mail", now + 2.9 * DAY)[0] == "exactly_once"
    word, says = status_of("mail", now + 3.1 * DAY)
    assert word == "unknown" and says.startswith("Overdue since 2026-03-03 03:00 UTC: the audit due then was not made")
    assert says.endswith("when last audited: Judged.")
    schedules_sweep(now + 5.5 * DAY)  # a worker again: what was missed is one audit, and the next due time is its own
    (_, late) = asked(pipeline)
    assert Schedule.objects.get().next_due_at == now + 6 * DAY
    assert status_of("mail", now + 5.6 * DAY)[0] == "unknown"
    answered(late, now + 5.7 * DAY)
    assert status_of("mail", now + 5.8 * DAY)[0] == "exactly_once"


def test_audits_that_fail_again_and_again_are_overdue_since_the_first(pipeline, now, later):
    swept(now, 6)
    answered(asked()[0], later(minutes=5))
    for minute in range(6, 27):
        swept(later(minutes=minute), 1)
        for intent in Intent.objects.filter(state=IntentState.QUEUED):
            taken = intent_take(intent.id, "worker", later(minutes=minute))
            intent_fail(taken, {"code": "unreachable", "text": "The source is away."}, later(minutes=minute))
    assert len(asked()) > 4
    word, says = status_of("mail", later(minutes=16))
    assert word == "unknown" and says.startswith("Overdue since 2026-03-01 03:")
    told = Event.objects.filter(kind=EventKind.WORK_FAILED)
    assert told.count() == 1, "the timeline cannot be shortened: the same failure is told once"


def test_a_persons_audit_answers_what_was_due(pipeline, now, later):
    swept(now, 6)
    assert status_of("mail", later(minutes=20))[0] == "unknown"
    person = audit_request(pipeline, actor="ada", now=later(minutes=20), wake=False)
    answered(person, later(minutes=20))
    assert status_of("mail", later(minutes=21))[0] == "exactly_once"
    assert not Audit.objects.get().is_scheduled


def test_two_sweeps_at_once_ask_once(transactional_db, now, later):
    for number in range(5):
        make_pipeline(f"mail-{number}", now)
    schedules_sweep(now)
    ready, found = threading.Barrier(4), []

    def one():
        ready.wait()
        try:
            found.append(schedules_sweep(later(minutes=6)))
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(found) == 5 and len(asked()) == 5


def test_a_sweep_that_read_the_row_before_another_asked_and_was_answered_asks_for_nothing(pipeline, now, later):
    schedules_sweep(now)
    stale = Schedule.objects.select_related("pipeline").get()
    assert schedules_sweep(later(minutes=6)) == 1
    answered(asked()[0], later(minutes=6))
    assert not schedule_ask(stale, later(minutes=6))
    assert len(asked()) == 1 and Schedule.objects.get().due_at is None


def test_no_second_audit_is_asked_for_while_one_is_queued_or_running(pipeline, now, later):
    swept(now, 30)
    assert len(asked()) == 1
    intent_take(asked()[0].id, "worker", later(minutes=30))
    swept(later(minutes=30), 10)
    assert len(asked()) == 1


def test_recoveries_and_people_come_before_schedules(approved_plan, now, later):
    pipeline = approved_plan.pipeline
    swept(now, 6)
    person = audit_request(pipeline, actor="ada", now=later(minutes=7), wake=False)
    recovery = recovery_request(approved_plan.id, "why", "mail", "ada", now=later(minutes=8), wake=False)
    taken = [intent_take_next("spark", f"worker {n}", later(minutes=9)) for n in range(4)]
    assert [taken[0].recovery, taken[1].action, taken[2], taken[3]] == [recovery, "plan", person, asked()[0]]


def test_a_schedule_that_is_off_asks_for_nothing_and_says_so(db, now, later):
    make_pipeline("mail", now, options={"is_scheduled": False})
    assert swept(now, 20) == 0
    found = pipeline_status(pipeline_get("mail"), later(minutes=20))
    assert found.schedule.says == "Nothing audits it by itself: its schedule is turned off."
    assert found.says == "Nothing is known. Run manage.py audit mail."


def test_what_a_schedule_asked_for_keeps_nobody_from_retiring_a_pipeline(pipeline, now, later):
    swept(now, 6)
    pipeline_retire(pipeline, "mail", actor="ada", now=later(minutes=7))
    assert [one.state for one in asked()] == ["cancelled"]
    assert swept(later(minutes=7), 20) == 0


def change(pipeline, now, **options):
    kept = {"delivery": None, "scope": None, "requires_other_approver": True}
    pipeline_update(pipeline, **kept, options=options, actor="ada", now=now)


def test_another_period_counts_from_what_was_due_last(pipeline, now, later):
    swept(now, 6)
    last = Schedule.objects.get().last_due_at
    change(pipeline, later(minutes=6), audit_every_seconds=60, audit_jitter_percent=0)
    schedules_sweep(later(minutes=6))
    due = Schedule.objects.get().next_due_at
    assert (due - last).total_seconds() % 60 == 0 and later(minutes=6) < due <= later(minutes=7)
    change(pipeline, later(minutes=7), is_scheduled=False)
    assert swept(later(minutes=7), 10) == 0
    assert status_of("mail", later(hours=9))[1].startswith("Nothing is known.")  # stale perhaps, never overdue
    change(pipeline, later(hours=9))
    schedules_sweep(later(hours=9))
    assert later(hours=9) < Schedule.objects.get().next_due_at <= later(hours=9, minutes=5)
    with pytest.raises(BadInput, match="more than half of stale_after_seconds"):
        change(pipeline, later(hours=9), audit_every_seconds=900)


def test_pipelines_of_before_are_taken_in_by_the_sweep(pipeline, now, later):
    assert not Schedule.objects.exists()
    sweep(later(days=400))
    due = Schedule.objects.get().next_due_at
    assert later(days=400) < due <= later(days=400, minutes=5)
    sweep(later(days=400, minutes=2))
    assert Schedule.objects.get().next_due_at == due


def lived(now, hours):
    """So many hours of a pipeline that is audited hourly, and of workers that answer; what was asked for."""
    found = []
    for quarter in range(4 * hours):
        at = now + dt.timedelta(minutes=15) * quarter
        schedules_sweep(at)
        for intent in Intent.objects.filter(state=IntentState.QUEUED):
            found.append((at, answered(intent, at)))
    return found


HOURLY = {"audit_every_seconds": 3600, "stale_after_seconds": 7200}


def test_one_audit_a_day_is_in_full(db, now):
    make_pipeline("mail", now, options=HOURLY)
    full = [at for at, audit in lived(now, 30) if audit.intent.arguments["is_full"]]
    assert len(full) == 2 and dt.timedelta(hours=24) <= full[1] - full[0] <= dt.timedelta(hours=25, minutes=15)


def test_what_said_nothing_new_is_forgotten_after_a_day_and_what_is_told_is_kept(db, now):
    pipeline = make_pipeline("mail", now, options=HOURLY)
    found = [audit for _, audit in lived(now, 40)]
    schedule_forget(pipeline, found[-1].finished_at)
    kept = list(Audit.objects.order_by("finished_at"))
    assert kept[0] == found[0]  # the timeline tells of it
    assert kept[1:] == [one for one in found if one.finished_at >= found[-1].finished_at - DAY]
    assert set(Intent.objects.values_list("pk", flat=True)) == {one.intent_id for one in kept}


def test_a_schedule_tells_the_timeline_what_is_new(pipeline, now, later):
    found = ["exactly_once"] * 5 + ["owed"] * 5 + ["exactly_once"] * 5
    for number, status in enumerate(found):
        start = later(minutes=6 * number)
        swept(start, 6)
        lost = 3 if status == "owed" else 0
        at = start + dt.timedelta(minutes=6)
        answered(asked()[-1], at, status, 1 if lost else 0, lost_count=lost)
    told = Event.objects.filter(kind=EventKind.AUDIT_RECORDED).order_by("id")
    assert [event.audit.status for event in told] == ["exactly_once", "owed", "exactly_once"]
    assert not Event.objects.filter(kind=EventKind.AUDIT_REQUESTED).exists()
    assert all(status.schedule.last_read_at == later(minutes=90) for status in fleet_status(later(minutes=90)))
