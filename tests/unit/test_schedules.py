"""When an audit is due, and at which frontier it stands: properties of the domain's functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput
from recovery_api.domain.pipelines import pipeline_options_check, pipeline_options_parse
from recovery_api.domain.schedules import (
    Cadence,
    Pin,
    PinnedLane,
    Waiting,
    cadence_of,
    due_after,
    due_next,
    overdue_since,
    pins_aged,
    pins_keep,
    waiting_settle,
)

NOW = datetime(2026, 3, 1, 3, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EVERY_5 = Cadence(True, 5 * MINUTE, 0.1, MINUTE, timedelta(days=1))

cadences = st.builds(
    Cadence,
    st.just(True),
    st.timedeltas(timedelta(seconds=10), timedelta(days=30)),
    st.floats(0, 0.9),
    st.just(MINUTE),
    st.just(timedelta(days=1)),
)
moments = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))


def pin(at: datetime, position: int, incarnation: str = "T1") -> Pin:
    return Pin(at, {"0": PinnedLane(Coordinate(position), incarnation)})


@given(cadences, moments, st.text(max_size=5))
def test_what_follows_comes_within_a_period_and_no_sooner_than_the_jitter_allows(
    cadence: Cadence, due: datetime, seed: str
) -> None:
    gap = due_after(due, seed, cadence) - due
    assert cadence.period * (1 - cadence.jitter) - timedelta(microseconds=1) <= gap <= cadence.period
    assert due_after(due, seed, cadence) == due_after(due, seed, cadence)


@given(cadences, moments, st.timedeltas(timedelta(days=-1), timedelta(days=400)))
def test_next_is_after_now_and_within_a_period_of_it(cadence: Cadence, due: datetime, passed: timedelta) -> None:
    now = due + passed
    following = due_next(due, now, "7", cadence)
    assert following > now
    assert following == due if passed < timedelta(0) else following - now <= cadence.period


def test_pipelines_that_were_registered_together_spread() -> None:
    dues = {due_after(NOW, str(seed), EVERY_5) for seed in range(1000)}
    assert len(dues) == 1000
    assert max(dues) - min(dues) > timedelta(seconds=25)


def test_overdue_begins_a_period_after_the_due_time_and_ends_with_a_reading() -> None:
    def since(now: datetime, read_at: datetime | None = None, unanswered: datetime | None = None) -> datetime | None:
        return overdue_since(NOW, unanswered, read_at, now, "7", EVERY_5)

    assert since(NOW + 5 * MINUTE) is None
    assert since(NOW + 6 * MINUTE) == NOW
    assert since(NOW + 6 * MINUTE, read_at=NOW + MINUTE) is None
    asked = NOW - 20 * MINUTE
    assert since(NOW, unanswered=asked) == asked  # a worker asked, and nobody answered
    again = since(NOW + 60 * MINUTE, read_at=NOW + MINUTE)
    assert again is not None and NOW + MINUTE < again <= NOW + 6 * MINUTE
    off = Cadence(False, 5 * MINUTE, 0.1, MINUTE, timedelta(days=1))
    assert overdue_since(NOW, None, None, NOW + 60 * MINUTE, "7", off) is None


def test_a_verdict_stands_at_the_newest_frontier_that_is_a_window_old() -> None:
    pins = [pin(NOW - 10 * MINUTE, 5), pin(NOW - 2 * MINUTE, 9), pin(NOW - timedelta(seconds=59), 12)]
    assert pins_aged(pins, NOW, MINUTE) == {"0": PinnedLane(Coordinate(9), "T1")}
    assert pins_aged(pins, NOW + timedelta(seconds=1), MINUTE) == {"0": PinnedLane(Coordinate(12), "T1")}
    assert pins_aged(pins[2:], NOW, MINUTE) is None


def test_a_frontier_of_another_incarnation_takes_the_place_of_a_higher_one() -> None:
    pins = [pin(NOW - 10 * MINUTE, 900), pin(NOW - 5 * MINUTE, 54, "T2")]
    assert pins_aged(pins, NOW, MINUTE) == {"0": PinnedLane(Coordinate(54), "T2")}


@given(st.lists(st.integers(0, 600), max_size=200), st.integers(1, 600))
def test_few_pins_are_kept_and_none_that_is_needed_is_lost(gaps: list[int], window_seconds: int) -> None:
    """Whenever an audit comes, it finds a frontier as new as the window allows, but for an eighth of a window."""
    window, kept, every, now = timedelta(seconds=window_seconds), [], [], NOW
    for number, gap in enumerate(gaps):
        now += timedelta(seconds=gap)
        new = pin(now, number)
        every.append(new)
        kept = pins_keep(kept, new, window)
        assert len(kept) <= 10
        found, ideal = pins_aged(kept, now, window), pins_aged(every, now, window)
        assert (found is None) == (ideal is None)
        assert pins_aged(kept, now + window, window) is not None
        if found is not None and ideal is not None:
            at = every[found["0"].coordinate.position].at
            assert every[ideal["0"].coordinate.position].at - at <= window / 8


def test_a_lane_that_shows_nothing_now_stays_where_it_was() -> None:
    kept = pins_keep([pin(NOW, 9)], Pin(NOW + 5 * MINUTE, {}), MINUTE)
    assert kept[-1] == pin(NOW + 5 * MINUTE, 9)


def test_a_wait_is_counted_from_the_first_pin_above_and_never_from_another_incarnations() -> None:
    event = PinnedLane(Coordinate(8), "T1")
    pins = [pin(NOW - 9 * MINUTE, 5), pin(NOW - 4 * MINUTE, 9)]
    settled = waiting_settle({}, {"0": event}, pins, NOW)
    assert settled == {"0": Waiting(event, NOW - 4 * MINUTE)}
    later = NOW + 60 * MINUTE
    assert waiting_settle(settled, {"0": event}, [], later) == settled
    assert waiting_settle(settled, {}, [], later) == {}
    other = PinnedLane(Coordinate(8), "T2")
    assert waiting_settle(settled, {"0": other}, pins, later)["0"].since == later


def test_rows_read_as_they_were_written() -> None:
    one = Pin(NOW, {"a": PinnedLane(Coordinate(-(2**63), 2**63 - 1), "T1")})
    assert Pin.from_row(one.as_row()) == one
    waits = Waiting(PinnedLane(Coordinate(3, 4), ""), NOW)
    assert Waiting.from_row(waits.as_row()) == waits


def test_options_that_would_leave_it_unknown_between_two_audits_are_refused() -> None:
    pipeline_options_check(pipeline_options_parse({}))
    late = pipeline_options_parse({"audit_every_seconds": 600})
    with pytest.raises(BadInput, match=r"more than half of stale_after_seconds \(900 s\)"):
        pipeline_options_check(late)
    pipeline_options_check({**late, "is_scheduled": False})
    pipeline_options_check({**late, "stale_after_seconds": 1200})
    assert cadence_of(pipeline_options_parse({})) == EVERY_5
