"""The history's pure half: how long an observation counts, what thinning keeps, where nothing was observed."""

from __future__ import annotations

import datetime as dt
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.charts.history import history_figure, spark_of, strip_blocks
from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.history import (
    AUDITS_KEPT,
    HOURS_KEPT,
    SPANS,
    Bucket,
    Grain,
    Observed,
    Stretch,
    buckets,
    counts_until,
    hours,
    interval_begin,
    strip,
    thin_before,
    worst_of,
)
from recovery_api.domain.outcomes import WORST_FIRST, Status

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)


def seen(minute: float, lasts: float = 5, status: Status = Status.EXACTLY_ONCE, **more: object) -> Observed:
    at = NOON + MINUTE * minute
    return Observed(at, at + MINUTE * lasts, status, **more)  # type: ignore[arg-type]


def spans(stretches: list[Stretch]) -> list[tuple[str | None, float]]:
    return [(one.status and one.status.value, (one.until - one.since) / MINUTE) for one in stretches]


def test_observation_counts_until_the_status_would_be_unknown_for_want_of_the_next() -> None:
    stale = 15 * MINUTE
    assert counts_until(NOON, stale, None) == NOON + stale
    assert counts_until(NOON, stale, NOON + 10 * MINUTE) == NOON + 10 * MINUTE
    assert counts_until(NOON, stale, NOON + 20 * MINUTE, NOON + 3 * MINUTE) == NOON + 3 * MINUTE
    assert counts_until(NOON, stale, NOON - MINUTE) == NOON, (
        "a clock that jumped: it counts for no time, never for less"
    )


def test_worst_of_an_interval_has_the_worst_of_every_figure_and_says_how_much_it_covers() -> None:
    rows = [
        seen(0, owed=0, lag_events=9, headroom=Standing.OK, headroom_seconds=900, accepted_per_second=5.0),
        seen(5, status=Status.HAZARD, hazards=2, lag_seconds=7),
        seen(20, status=Status.OWED, owed=4, oldest_owed_seconds=60, headroom=Standing.LOW, headroom_seconds=30),
        seen(25, accepted_per_second=0.5, headroom=Standing.UNKNOWN),
    ]
    worst = worst_of(rows, Grain.HOUR)
    assert (worst.status, worst.owed, worst.lag_events, worst.hazards) == (Status.HAZARD, 4, 9, 2)
    assert (worst.oldest_owed_seconds, worst.lag_seconds, worst.accepted_per_second) == (60, 7, 0.5)
    assert (worst.headroom, worst.headroom_seconds) == (Standing.LOW, 30)
    assert (worst.at, worst.until, worst.audits) == (rows[0].at, rows[-1].until, 4)
    assert (worst.covered_seconds, worst.uncovered_seconds) == (20 * 60, 10 * 60)


STATUSES = st.sampled_from([one for one in Status if one is not Status.RUNNING])
COUNTS = st.none() | st.integers(0, 9)
ROWS = st.lists(st.tuples(st.integers(0, 200), STATUSES, COUNTS, COUNTS), min_size=1, max_size=40)


@given(ROWS, st.randoms(use_true_random=False))
def test_thinning_twice_keeps_what_thinning_once_keeps(
    rows: list[tuple[int, Status, int | None, int | None]], chance: random.Random
) -> None:
    """Audits to hours to days, in whatever order: the same worst as of all audits together. Nothing is lost on the way."""
    ordered = sorted(rows, key=lambda row: row[0])
    ends = [*(row[0] for row in ordered[1:]), 205]
    made = [
        seen(minute, min(5, end - minute), status, owed=owed, hazards=hazards)
        for (minute, status, owed, hazards), end in zip(ordered, ends, strict=True)
    ]
    by_hour = [
        worst_of(list(group), Grain.HOUR)
        for _, group in itertools.groupby(made, key=lambda one: interval_begin(one.at, Grain.HOUR))
    ]
    chance.shuffle(by_hour)
    day, whole = worst_of(by_hour, Grain.DAY), worst_of(made, Grain.DAY)
    assert (day.status, day.owed, day.hazards, day.audits) == (whole.status, whole.owed, whole.hazards, whole.audits)
    assert day.status is min((one.status for one in made), key=WORST_FIRST.index)
    assert (day.at, day.until) == (whole.at, whole.until)
    assert day.covered_seconds == pytest.approx(whole.covered_seconds)


def test_only_whole_hours_and_days_that_are_over_are_thinned() -> None:
    assert thin_before(NOON + 59 * MINUTE, Grain.HOUR) == NOON - AUDITS_KEPT
    assert thin_before(NOON + 59 * MINUTE, Grain.DAY) == NOON.replace(hour=0) - HOURS_KEPT


def test_strip_shows_what_no_audit_covers_as_not_observed() -> None:
    rows = [seen(0), seen(5), seen(30, status=Status.OWED), seen(35, lasts=0), seen(50, lasts=30)]
    found = strip(rows, NOON - 10 * MINUTE, NOON + 60 * MINUTE)
    assert spans(found) == [
        (None, 10),
        ("exactly_once", 10),
        (None, 20),
        ("owed", 5),
        (None, 15),
        ("exactly_once", 10),
    ]
    assert found[0].unobserved_seconds == 600 and found[1].audits == 2


def test_strip_of_nothing_is_one_gap_and_an_hour_that_became_one_row_says_what_it_leaves_open() -> None:
    assert spans(strip([], NOON, NOON + 60 * MINUTE)) == [(None, 60)]
    hour = worst_of([seen(0), seen(30, 30, Status.OWED)], Grain.HOUR)
    (one,) = strip([hour], NOON, NOON + 60 * MINUTE)
    assert (one.status, one.unobserved_seconds, one.audits) == (Status.OWED, 25 * 60, 2)


def test_strip_of_a_clock_that_jumped_back_has_no_time_twice() -> None:
    rows = [seen(0, 20), seen(10, 20, Status.OWED)]
    found = strip(rows, NOON, NOON + 40 * MINUTE)
    assert spans(found) == [("exactly_once", 20), ("owed", 10), (None, 10)]
    assert all(before.until == after.since for before, after in itertools.pairwise(found))


@given(st.lists(st.tuples(st.integers(-60, 120), st.integers(0, 90), STATUSES), max_size=20))
def test_strip_covers_its_time_once_whatever_the_rows(rows: list[tuple[int, int, Status]]) -> None:
    made = [seen(minute, lasts, status) for minute, lasts, status in sorted(rows, key=lambda row: row[0])]
    found = strip(made, NOON, NOON + 60 * MINUTE)
    assert found[0].since == NOON and found[-1].until == NOON + 60 * MINUTE
    assert all(before.until == after.since for before, after in itertools.pairwise(found))
    assert all(before.status is not after.status for before, after in itertools.pairwise(found))


def test_buckets_keep_the_worst_even_of_an_observation_that_lasted_no_time() -> None:
    """Two audits at once: the second cuts the first short at once, and what the first saw is told all the same."""
    rows = [seen(3, 0, Status.HAZARD, hazards=1), seen(3, 12, lag_events=4)]
    first, second, third = buckets(rows, NOON, NOON + 45 * MINUTE, 15 * MINUTE)
    assert first.worst is not None and (first.worst.status, first.worst.hazards) == (Status.HAZARD, 1)
    assert (first.worst.audits, first.unobserved_seconds) == (2, 180)
    assert second.worst is None and third.worst is None and third.unobserved_seconds == 900


def test_observation_that_reaches_into_the_next_bucket_counts_there_and_its_audit_once() -> None:
    first, second = buckets([seen(10, 10, lag_events=7)], NOON, NOON + 30 * MINUTE, 15 * MINUTE)
    assert first.worst and second.worst and (first.worst.lag_events, second.worst.lag_events) == (7, 7)
    assert (first.worst.audits, second.worst.audits) == (1, 0)
    assert (first.unobserved_seconds, second.unobserved_seconds) == (600, 600)


def test_every_span_is_drawn_from_rows_that_are_kept_as_long() -> None:
    for back, width in SPANS.values():
        assert back % width == dt.timedelta(0) and 80 <= back // width <= 100
    assert SPANS["24h"][0] <= AUDITS_KEPT and SPANS["30d"][0] <= HOURS_KEPT


def test_pictures_break_where_nothing_was_observed_and_say_what_they_show() -> None:
    rows = [seen(0, 15, lag_events=8, owed=0), seen(30, 15, Status.OWED, lag_events=2, owed=2)]
    found = buckets(rows, NOON, NOON + 45 * MINUTE, 15 * MINUTE)
    figure = history_figure(found)
    assert figure is not None
    lines = {one["name"]: one["y"] for one in figure["data"]}
    assert lines == {"not accepted": [8, 8, None, 2, 2], "owed": [0, 0, None, 2, 2]}
    assert not any(one["connectgaps"] for one in figure["data"])
    spark = spark_of(
        hours([(0, 900, 900, Status.EXACTLY_ONCE, 8), (1800, 2700, 900, Status.OWED, 2)], 900, 3), "in words"
    )
    assert (len(spark.runs), [one.tone for one in spark.foot]) == (2, ["good", "gap", "warn"])
    drawn = strip_blocks(strip(rows, NOON, NOON + 45 * MINUTE), lambda one: str(one.status))
    assert [(one.x, one.tone) for one in drawn] == [(0, "good"), (333.3, "gap"), (666.7, "warn")]


def test_nothing_known_draws_nothing() -> None:
    found = buckets([seen(0, status=Status.UNKNOWN)], NOON, NOON + 30 * MINUTE, 15 * MINUTE)
    assert history_figure(found) is None
    assert history_figure(buckets([], NOON, NOON + 30 * MINUTE, 15 * MINUTE)) is None
    assert spark_of(hours([(0, 900, 900, Status.UNKNOWN, None)], 900, 2), "").runs == []


@given(st.lists(st.tuples(st.integers(-60, 119), st.integers(0, 90), STATUSES, COUNTS), max_size=12))
def test_hours_of_a_spark_line_are_the_buckets_of_a_chart(rows: list[tuple[int, int, Status, int | None]]) -> None:
    """Rows as audits leave them: each cut short by the next."""
    ordered = sorted({row[0]: row for row in rows}.values())
    ends = [*(row[0] for row in ordered[1:]), 999][: len(ordered)]
    made = [
        seen(minute, min(lasts, end - minute), status, lag_events=lag)
        for (minute, lasts, status, lag), end in zip(ordered, ends, strict=True)
    ]
    expected = buckets(made, NOON, NOON + 120 * MINUTE, 60 * MINUTE)
    reaching = [one for one in made if one.until > NOON or one.at >= NOON]
    given = [
        ((one.at - NOON) / dt.timedelta(seconds=1), (one.until - NOON) / dt.timedelta(seconds=1), one.covered_seconds)
        for one in reaching
    ]
    pairs = zip(given, reaching, strict=True)
    found = hours([(*numbers, one.status, one.lag_events) for numbers, one in pairs], 3600, 2)
    for hour, bucket in zip(found, expected, strict=True):
        assert hour.status is (bucket.worst.status if bucket.worst else None)
        assert hour.lag_events == (bucket.worst.lag_events if bucket.worst else None)
        assert hour.unobserved_seconds == pytest.approx(bucket.unobserved_seconds)


def test_times_are_drawn_in_the_unit_that_the_longest_asks_for() -> None:
    """Not 0.0015 hours: six seconds are seconds, ten days are days, each in its own panel."""
    noon = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
    later = noon + dt.timedelta(hours=1)
    seen = Observed(noon, later, Status.OWED, lag_seconds=6, headroom_seconds=864_000)
    figure = history_figure([Bucket(noon, later, seen)])
    assert figure is not None
    titles = [axis["title"]["text"] for name, axis in figure["layout"].items() if name.startswith("yaxis")]
    assert titles == ["seconds waiting", "days left"]
    assert [one["y"] for one in figure["data"]] == [[6.0, 6.0], [10.0, 10.0]]
