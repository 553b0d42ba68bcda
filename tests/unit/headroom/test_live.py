"""Headroom: the acceptance cases to the minute, and what is not known."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.headroom.live import headroom, pace_in_parts
from recovery_api.domain.headroom.terms import (
    FAR,
    Forgets,
    Part,
    Reach,
    anchor,
    by_age,
    by_entries,
    by_room,
    no_limit,
    purge_by_mark,
    unknown,
)
from tests.unit.headroom.cases import CASES, NOW, SAME_CLOCK, Case, at, hours, memory, minutes, pace


@pytest.mark.parametrize("case", CASES, ids=[one.number for one in CASES])
def test_acceptance_case_comes_out_to_the_minute(case: Case) -> None:
    found = case.judged()
    assert (found.standing, found.left, found.last_start, found.decide_by, found.is_bound) == (
        case.standing,
        case.left,
        case.start,
        case.decide,
        case.is_bound,
    )


def test_second_part_binds() -> None:
    assert next(one for one in CASES if one.number == "11").judged().part == 2


def test_unmarked_rows_have_no_limit_under_a_purge_by_mark() -> None:
    term = purge_by_mark(hours(6), 5_995, None, SAME_CLOCK, "Rows go 6 h after their mark.")
    found = headroom([term], pace(5_995), NOW)
    assert (term.reach, found.standing, found.left, found.last_start) == (Reach.NO_LIMIT, "ok", None, None)


def test_without_a_rate_what_is_left_stays_and_the_last_start_is_at_most() -> None:
    found = headroom([memory(hours(24), NOW - hours(14))], pace(90_000, rate=None), NOW)
    assert (found.standing, found.left, found.is_left_bound) == ("unknown", hours(10), False)
    assert (found.last_start, found.is_bound) == (at(21, 45), True)


def test_without_a_rate_it_is_gone_where_no_rate_would_be_fast_enough() -> None:
    assert headroom([memory(minutes(14), NOW)], pace(1, rate=None), NOW).standing == "gone"


def test_unmeasured_overhead_is_not_taken_for_none() -> None:
    slow = replace(pace(0), overhead=None)
    assert headroom([memory(hours(24), NOW)], slow, NOW).standing == "unknown"


def test_clock_that_was_not_measured_makes_it_unknown() -> None:
    found = headroom([memory(hours(24), NOW, None)], pace(0), NOW)
    assert (found.standing, found.left, found.is_left_bound) == ("unknown", None, True)


def test_moment_that_is_not_known_makes_it_unknown() -> None:
    assert by_age(Forgets.RECORD, hours(1), None, SAME_CLOCK, "It keeps 1 h.").reach is Reach.UNKNOWN


def test_known_term_that_is_gone_outweighs_an_unknown_one() -> None:
    terms = [memory(minutes(5), at(11, 58)), unknown(Forgets.SLOT, "Not read.")]
    assert headroom(terms, pace(0), NOW).standing == "gone"


def test_low_beside_an_unknown_is_unknown() -> None:
    terms = [memory(minutes(40), NOW), unknown(Forgets.SLOT, "Not read.")]
    found = headroom(terms, pace(0), NOW)
    assert (found.standing, found.left, found.is_left_bound) == ("unknown", minutes(40), True)


def test_nothing_declared_is_unknown_and_never_for_ever() -> None:
    found = headroom([], pace(0), NOW)
    assert (found.standing, found.left, found.last_start) == ("unknown", None, None)


def test_memory_without_a_limit_leaves_the_other_to_bind() -> None:
    found = headroom([no_limit(Forgets.SOURCE_PURGE, "It keeps unmarked rows."), memory(hours(2), NOW)], pace(0), NOW)
    assert (found.standing, found.binds) == ("ok", Forgets.SINK_MEMORY)


def test_expired_is_told_apart_from_too_near() -> None:
    assert headroom([memory(hours(1), at(11, 0))], pace(0), NOW).is_expired
    assert not headroom([memory(hours(1), at(11, 5))], pace(0), NOW).is_expired


def test_moment_of_the_last_start_itself_is_low_and_not_gone() -> None:
    assert headroom([memory(minutes(15), NOW)], pace(0), NOW).standing == "low"
    assert headroom([memory(minutes(45), NOW)], pace(0), NOW).standing == "ok"


def test_anchor_is_the_earlier_of_oldest_owed_and_certified() -> None:
    assert anchor(at(11, 0), at(10, 0)) == at(10, 0)
    assert anchor(None, at(10, 0)) == at(10, 0)
    assert anchor(None, None) is None


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_entries_and_bytes_without_a_rate_are_no_time(rate: float) -> None:
    with pytest.raises(ValueError, match="rate"):
        by_entries(10, 0, rate, NOW, "")
    with pytest.raises(ValueError, match="growth"):
        by_room(Forgets.SLOT, 10, rate, NOW, "")


def test_more_entries_than_the_memory_holds_leave_nothing() -> None:
    found = headroom([by_entries(10, 11, 1, NOW, "")], pace(0), NOW)
    assert (found.standing, found.is_expired) == ("gone", True)


def test_hardly_any_rate_leaves_no_arithmetic_outside_the_calendar() -> None:
    assert by_room(Forgets.SLOT, 2**62, 1e-9, NOW, "").expires_at == NOW + FAR
    assert headroom([memory(hours(1), NOW)], pace(10**15, 1e6, rate=1e-12), NOW).standing == "gone"


def test_growth_brings_the_parts_forward_too() -> None:
    parts = [Part(at(13, 0), minutes(15))]
    still = headroom([], pace(0), NOW, parts).last_start
    assert still == at(12, 35)
    assert headroom([], pace(0, 100), NOW, parts).last_start == NOW + timedelta(minutes=17, seconds=30)


def test_what_grows_until_the_start_makes_more_parts() -> None:
    terms = [memory(hours(24), NOW - hours(14))]
    assert pace_in_parts(terms, pace(90_000), NOW, 100_000).overhead == minutes(5)
    assert pace_in_parts(terms, pace(90_000, 25), NOW, 100_000).overhead == minutes(5) * 8
    assert pace_in_parts(terms, replace(pace(1), overhead=None), NOW, 1).overhead is None


@given(
    left=st.integers(0, 10**6),
    owed=st.integers(0, 10**7),
    growth=st.floats(0, 1000),
    rate=st.floats(0.1, 10**5),
    sent=st.floats(0, 1),
)
def test_recovery_begun_at_the_last_start_ends_a_margin_before_the_end(
    left: int, owed: int, growth: float, rate: float, sent: float
) -> None:
    ends = NOW + timedelta(seconds=left)
    term = replace(memory(hours(1), NOW), expires_at=ends, sent_seconds=sent)
    found = headroom([term], pace(owed, growth, rate), NOW)
    if found.last_start is None:
        assert found.standing == "gone"
        assert 900 + owed * (sent + 1 / rate) > left - 1e-3
        return
    waits = (found.last_start - NOW).total_seconds()
    batch = owed + growth * waits
    takes = waits + 300 + batch / rate + batch * sent + 600
    assert takes == pytest.approx(left, rel=1e-6, abs=1e-2)
