"""What audits observe is written with their verdict, thinned by the sweep, and read without a hole filled in."""

from __future__ import annotations

import datetime as dt
import threading

import pytest
from django.db import connection

from recovery_api.domain.history import AUDITS_KEPT, Grain, Observed, worst_of
from recovery_api.domain.outcomes import Status
from recovery_api.models import Audit, Observation, Pipeline, Schedule
from recovery_api.selectors.history import COLUMNS, fleet_sparks, history_get
from recovery_api.services.audits import audit_record
from recovery_api.services.ends import sink_create
from recovery_api.services.grounds import audits_void
from recovery_api.services.history import history_thin
from recovery_api.services.retirement import pipeline_retire
from tests.integration.control.conftest import FRONTIER, make_pipeline

DAY = dt.timedelta(days=1)
KEPT = 400 * DAY
LANES = {"0": {"above_frontier_owed": "5", "counts": {"acknowledged": "1"}}}


def judged(pipeline, at, status="exactly_once", *, frontier=FRONTIER, **more):
    exits = {"exactly_once": 0, "unknown": 3}
    given = {"exit_code": exits.get(status, 1), "is_full": True, "says": "Judged.", "lanes": LANES, **more}
    return audit_record(pipeline, status=status, now=at, started_at=at, record_read_at=at, frontier=frontier, **given)


def rows(pipeline):
    return list(Observation.objects.filter(pipeline=pipeline).order_by("at", "id"))


def held(pipeline):
    """Each row's status and for how many minutes it counts."""
    return [(one.status, (one.until - one.at).total_seconds() / 60) for one in rows(pipeline)]


def test_audit_writes_what_it_observed_and_cuts_the_one_before_short(pipeline, now, later):
    judged(pipeline, now, accepted_count=100)
    Schedule.objects.filter(pk=pipeline.pk).update(waiting_since=later(minutes=1))
    judged(pipeline, later(minutes=5), "hazard", lost_count=4, duplicate_count=2, accepted_count=400)
    first, second = rows(pipeline)
    assert held(pipeline) == [("exactly_once", 5), ("hazard", 15)]
    assert (first.owed, first.lag_events, first.lag_seconds, first.accepted_per_second) == (0, 5, 0, None)
    assert (second.owed, second.lag_events, second.lag_seconds, second.hazards) == (3, 8, 240, 2)
    assert second.accepted_per_second == 1.0
    assert (second.headroom, second.headroom_seconds) == ("unknown", None)


def test_audit_that_read_nothing_tells_no_figure_and_no_zero(pipeline, now):
    judged(pipeline, now, "unknown", lanes={}, frontier={})
    (one,) = rows(pipeline)
    figures = (one.owed, one.oldest_owed_seconds, one.lag_events, one.lag_seconds, one.hazards)
    assert (one.status, figures, one.accepted_per_second) == ("unknown", (None,) * 5, None)


def test_fewer_entries_than_before_and_another_sort_of_audit_show_no_rate(pipeline, now, later):
    judged(pipeline, now, accepted_count=100)
    judged(pipeline, later(minutes=5), accepted_count=90)
    judged(pipeline, later(minutes=5, seconds=5), accepted_count=95)
    assert [one.accepted_per_second for one in rows(pipeline)] == [None, None, None]


def test_status_is_what_stands_of_all_readings_and_not_the_last_ones_word(pipeline, now, later):
    """A shallower reading takes nothing back: the strip goes on saying owed, as the page does."""
    deep = {"0": {"position": "99", "ordinal": "0"}}
    judged(pipeline, now, "owed", lost_count=2, frontier=deep)
    judged(pipeline, later(minutes=5))
    assert [one.status for one in rows(pipeline)] == ["owed", "owed"]


def test_observation_counts_no_longer_than_the_status_does_once_the_next_audit_is_overdue(pipeline, now, later):
    Schedule.objects.create(pipeline=pipeline, next_due_at=later(minutes=2), next_full_at=now)
    judged(pipeline, now)
    assert held(pipeline) == [("exactly_once", 7)]
    pipeline.options = {"is_scheduled": False}
    pipeline.save()
    judged(pipeline, later(minutes=1))
    assert held(pipeline) == [("exactly_once", 1), ("exactly_once", 15)]


def test_verdict_that_is_void_counts_no_longer_and_stays_as_it_was_told(pipeline, now, later):
    judged(pipeline, now)
    audits_void([pipeline], "The source is mapped otherwise.", later(minutes=3))
    assert held(pipeline) == [("exactly_once", 3)]
    found = history_get(pipeline, "24h", later(minutes=10))
    assert [one.status for one in found.stretches] == [None, Status.EXACTLY_ONCE, None]


def test_clock_that_jumped_back_leaves_no_time_twice_and_loses_no_observation(pipeline, now, later):
    judged(pipeline, later(hours=2), "owed", lost_count=2)
    judged(pipeline, now)
    judged(pipeline, later(minutes=5))
    assert held(pipeline) == [("owed", 5), ("owed", 15), ("owed", 15)], "a reading of the future still stands"
    found = history_get(pipeline, "24h", later(minutes=30))
    assert [one.status for one in found.stretches] == [None, Status.OWED, None]
    judged(pipeline, later(hours=1, minutes=58))
    assert held(pipeline)[-2:] == [("owed", 2), ("owed", 15)], "cut by the one that is later already"


@pytest.mark.django_db(transaction=True)
def test_two_audits_that_end_at_once_are_both_told_one_after_the_other(now):
    pipeline = make_pipeline("mail", now)
    gate = threading.Barrier(2)

    def record(status, **more):
        try:
            gate.wait()
            judged(pipeline, now, status, **more)
        finally:
            connection.close()

    both = [
        threading.Thread(target=record, args=("exactly_once",)),
        threading.Thread(target=record, args=("hazard",), kwargs={"duplicate_count": 1}),
    ]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert sorted(minutes for _, minutes in held(pipeline)) == [0, 15]
    assert {one.hazards for one in rows(pipeline)} == {0, 1}
    worst = [one.worst for one in history_get(pipeline, "24h", now + dt.timedelta(minutes=10)).buckets if one.worst]
    assert worst[0].status is Status.HAZARD and worst[0].hazards == 1


def test_history_of_no_audit_is_one_gap(pipeline, now):
    found = history_get(pipeline, "7d", now)
    assert (found.is_empty, [one.status for one in found.stretches], len(found.buckets)) == (True, [None], 84)
    assert fleet_sparks([pipeline.pk], now) == {}
    assert history_thin(now, KEPT) == 0


def observed(pipeline, at, minutes=5.0, **more):
    given = {"until": at + dt.timedelta(minutes=minutes), "status": "exactly_once", "owed": 0, "hazards": 0, **more}
    return Observation.objects.create(pipeline=pipeline, at=at, **given)


def as_observed(row):
    given = {name: getattr(row, name) for name in COLUMNS}
    return Observed(
        **{**given, "status": Status(row.status), "grain": Grain(row.grain), "headroom": row.headroom or None}
    )


def test_database_thins_as_the_domain_says_and_keeps_the_worst(pipeline, now):
    """An hour of twelve audits with a hazard and a gap, and one of a single audit, of two pipelines."""
    other = make_pipeline("other", now)
    begin = now - dt.timedelta(days=4)
    made = [observed(pipeline, begin + dt.timedelta(minutes=5 * n), owed=n % 3) for n in range(12) if n not in (6, 7)]
    made += [observed(pipeline, begin + dt.timedelta(minutes=31), 0, status="hazard", hazards=3, lag_seconds=90)]
    made += [observed(pipeline, begin + dt.timedelta(minutes=9), 1, status="unknown", owed=None, headroom="low")]
    alone = observed(other, begin, headroom_seconds=60, headroom="ok")
    expected = worst_of([as_observed(one) for one in made], Grain.HOUR)
    young = observed(pipeline, now - AUDITS_KEPT)
    assert history_thin(now, KEPT) == len(made) - 1
    hour, kept = rows(pipeline)
    assert as_observed(hour) == expected
    assert (expected.status, expected.hazards, expected.owed, expected.audits) == (Status.HAZARD, 3, 2, 12)
    assert kept == young
    assert [as_observed(one) for one in rows(other)] == [worst_of([as_observed(alone)], Grain.HOUR)]
    assert history_thin(now, KEPT) == 0, "an hour is thinned once"


def test_hours_become_days_and_days_go(pipeline, now):
    begin = (now - dt.timedelta(days=60)).replace(hour=0)
    for hour in range(24):
        status = "owed" if hour == 7 else "exactly_once"
        more = {"grain": "hour", "audits": 12, "observed_seconds": 3000.0}
        observed(pipeline, begin + dt.timedelta(hours=hour), 60, status=status, owed=int(hour == 7), **more)
    assert history_thin(now, KEPT) == 23
    (day,) = rows(pipeline)
    assert (day.grain, day.status, day.owed, day.audits, day.observed_seconds) == ("day", "owed", 1, 288, 72_000)
    assert history_thin(now + KEPT, KEPT) == 1
    assert rows(pipeline) == []


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_once_thin_each_hour_once(now):
    pipeline = make_pipeline("mail", now)
    for n in range(12):
        observed(pipeline, now - dt.timedelta(days=4) + dt.timedelta(minutes=5 * n), hazards=n)
    gate, gone = threading.Barrier(2), []

    def thin():
        try:
            gate.wait()
            gone.append(history_thin(now, KEPT))
        finally:
            connection.close()

    both = [threading.Thread(target=thin) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    (hour,) = rows(pipeline)
    assert (sorted(gone), hour.audits, hour.hazards) == ([0, 11], 12, 11)


def test_history_of_a_retired_pipeline_is_thinned_and_goes_by_age(pipeline, now):
    observed(pipeline, now - dt.timedelta(days=500))
    observed(pipeline, now - dt.timedelta(days=4))
    pipeline_retire(pipeline, pipeline.name, actor="owner", now=now)
    history_thin(now, KEPT)
    assert [one.grain for one in rows(pipeline)] == ["hour"]


def test_history_goes_with_a_pipeline_that_is_deleted(pipeline, now):
    """The product retires pipelines. Whoever deletes one by hand is not kept from it by what was observed of it."""
    fresh = Pipeline.objects.create(
        name="gone", source=pipeline.source, sink=_sink(now), created_at=now, created_by="x"
    )
    observed(fresh, now)
    fresh.delete()
    assert not Observation.objects.exists()


def _sink(now):
    return sink_create("another", "paper_sink", {"path": "x"}, actor="owner", now=now)


def test_sparks_of_many_are_one_query_and_say_the_worst_of_each_hour(pipeline, now, django_assert_num_queries):
    others = [make_pipeline(f"p{n}", now) for n in range(3)]
    for n in range(24 * 12):
        observed(pipeline, now - DAY + dt.timedelta(minutes=5 * n), lag_events=n)
    observed(pipeline, now - dt.timedelta(minutes=62), 0, status="hazard", hazards=1)
    observed(others[0], now - DAY - dt.timedelta(hours=1), 120)
    with django_assert_num_queries(1):
        found = fleet_sparks([pipeline.pk, *(one.pk for one in others)], now)
    assert sorted(found) == [pipeline.pk, others[0].pk]
    statuses = [one.status for one in found[pipeline.pk]]
    assert statuses == [Status.EXACTLY_ONCE] * 22 + [Status.HAZARD, Status.EXACTLY_ONCE]
    assert [one.lag_events for one in found[pipeline.pk]][:2] == [11, 23]
    assert [one.status is not None for one in found[others[0].pk]] == [True] + [False] * 23
    assert [one.unobserved_seconds for one in found[others[0].pk]][:2] == [0, 3600]


def test_observation_outlives_its_audit(pipeline, now, later):
    judged(pipeline, now)
    Audit.objects.all().update(is_standing=False)
    Audit.objects.filter(events__isnull=True).delete()
    assert not Audit.objects.filter(events__isnull=True).exists() and len(rows(pipeline)) == 1
