"""The status of a pipeline, from what was read of it and when."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.outcomes import CERTIFIES, OUTCOMES, Alert, ImageStatus, Outcome, Status
from recovery_api.domain.statuses import RecordReading, RecoveryRun, readings_standing, status_decide

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
LIMIT = timedelta(minutes=15)


def reading(minute: float, status: str, at: int, lane: str = "0", says: str = "") -> RecordReading:
    """Read `minute` minutes ago, judged at `at`."""
    frontier = {lane: {"position": str(at), "ordinal": "0"}}
    return RecordReading(NOW - timedelta(minutes=minute), Status(status), frontier, says or f"{status} at {at}.")


def ended(outcome: str, minute: float = 0, **more: object) -> RecoveryRun:
    return RecoveryRun("r", "finished", NOW - timedelta(minutes=minute), Outcome(outcome), "It ended.", **more)  # type: ignore[arg-type]


def decide(readings: list[RecordReading], run: RecoveryRun | None = None, **more: object):  # type: ignore[no-untyped-def]
    return status_decide(readings, run, now=NOW, stale_after=LIMIT, **more)  # type: ignore[arg-type]


def test_t10_a_shallower_success_takes_nothing_back_from_a_deeper_finding() -> None:
    owed = reading(5, "owed", 12200)
    for later in ([], [reading(1, "exactly_once", 9200)]):
        found = decide([reading(9, "exactly_once", 9200), owed, *later], ended("stopped"))
        assert found.status is Status.OWED and found.reading is owed
    assert decide([owed, reading(1, "exactly_once", 12200)]).status is Status.EXACTLY_ONCE


def test_t10_who_finished_last_does_not_matter_but_when_the_record_was_read() -> None:
    readings = [reading(3, "exactly_once", 50), reading(4, "owed", 50), reading(8, "hazard", 40)]
    assert {decide(list(order)).status for order in itertools.permutations(readings)} == {Status.EXACTLY_ONCE}


def test_t10_what_a_recovery_landed_after_the_reading_is_said() -> None:
    run = ended("stopped", fired_at=NOW - timedelta(minutes=1), landed_count=1000)
    assert "A recovery delivered 1,000 since then" in decide([reading(5, "owed", 50)], run).says


@pytest.mark.parametrize(
    "run",
    [
        ended("incomplete_altered"),
        ended("unknown"),
        ended("stopped"),
        RecoveryRun("r", "staging", None),
        RecoveryRun("r", "firing", None, problem="the sink is away"),
    ],
)
def test_t11_a_known_hazard_is_shown_whatever_a_recovery_does(run: RecoveryRun) -> None:
    assert decide([reading(1, "hazard", 50)], run).status is Status.HAZARD


def test_t11_an_outcome_that_no_reading_has_shown_yet_counts_at_once() -> None:
    assert decide([reading(5, "owed", 50)], ended("incomplete_altered")).status is Status.HAZARD
    assert decide([reading(5, "exactly_once", 50)], ended("incomplete")).status is Status.OWED
    assert decide([reading(1, "exactly_once", 50)], ended("incomplete", 5)).status is Status.EXACTLY_ONCE


def test_an_unfinished_recovery_is_running_and_one_in_trouble_unknown() -> None:
    owed = [reading(1, "owed", 50)]
    assert decide(owed, RecoveryRun("r", "staging", None)).status is Status.RUNNING
    assert decide(owed, RecoveryRun("r", "staging", None, problem="gone")).status is Status.UNKNOWN
    assert decide(owed, ended("unknown")).status is Status.UNKNOWN
    assert decide([reading(1, "owed", 50)], ended("unknown", 5)).status is Status.OWED


def test_stale_is_unknown_and_a_fresher_shallower_success_does_not_hide_it() -> None:
    found = decide([reading(20, "owed", 50), reading(1, "exactly_once", 40)])
    assert found.status is Status.UNKNOWN and found.is_stale


def test_a_reading_that_failed_takes_nothing_back_and_is_taken_back_by_any_that_did_not() -> None:
    assert decide([reading(5, "owed", 50), reading(1, "unknown", 60)]).status is Status.OWED
    assert decide([reading(5, "exactly_once", 50), reading(1, "unknown", 60)]).status is Status.UNKNOWN
    assert decide([reading(5, "unknown", 60), reading(1, "exactly_once", 50)]).status is Status.EXACTLY_ONCE


def test_nothing_known_and_a_restored_sink_are_unknown() -> None:
    assert decide([]).status is Status.UNKNOWN
    assert decide([reading(1, "exactly_once", 50)], restored="It was restored.").says == "It was restored."


READINGS = st.lists(
    st.builds(
        reading,
        st.integers(0, 30),
        st.sampled_from(["exactly_once", "exactly_once_given", "owed", "hazard", "acknowledged", "unknown"]),
        st.integers(0, 3),
        st.sampled_from(["a", "b"]),
    ),
    max_size=6,
    unique_by=lambda one: one.read_at,
)


@given(READINGS)
def test_letting_go_of_superseded_readings_one_by_one_changes_no_status(readings: list[RecordReading]) -> None:
    kept: list[RecordReading] = []
    for one in readings:
        kept = readings_standing([*kept, one])
    assert set(map(id, kept)) == set(map(id, readings_standing(readings)))
    assert decide(kept) == decide(readings)


@given(READINGS)
def test_green_has_no_fresh_trouble_beside_it(readings: list[RecordReading]) -> None:
    if decide(readings).status is Status.EXACTLY_ONCE:
        newest = max(readings, key=lambda one: one.read_at)
        assert newest.status is Status.EXACTLY_ONCE or newest.frontier != max(readings, key=str).frontier
        assert all(one.status is Status.EXACTLY_ONCE for one in readings_standing(readings))


def test_only_exactly_once_is_green_and_exits_zero() -> None:
    assert {str(word) for word, row in OUTCOMES.items() if row.is_green} == {"exactly_once"}
    of_state = {"mismatch_free"}  # another question: it says nothing of the record (Theorem 11)
    assert {str(word) for word, row in OUTCOMES.items() if row.exit_code == 0} == {"exactly_once", *of_state}
    assert {str(word) for word in (*Status, *Outcome, *ImageStatus)} == {str(word) for word in OUTCOMES}


def test_what_opens_an_alert_is_never_clean_and_only_a_clean_reading_takes_back_every_alert_on_the_record() -> None:
    record = {Alert.OWED, Alert.HAZARD, Alert.UNKNOWN}
    for word, row in OUTCOMES.items():
        assert not set(row.opens) & set(row.resolves), word
        assert not (row.is_clean and row.opens), word
        looked_for = record if word in CERTIFIES else record - {Alert.HAZARD}  # by identity nothing premature is seen
        assert not row.is_clean or looked_for <= set(row.resolves), word
        assert row.status not in (Status.OWED, Status.HAZARD, Status.UNKNOWN) or row.opens, word
    assert set(OUTCOMES[Status.UNKNOWN].resolves) == set()


def test_complete_by_identity_is_told_as_such_goes_stale_and_certifies_nothing_else() -> None:
    found = decide([reading(5, "complete_by_identity", 50)])
    assert found.status is Status.COMPLETE_BY_IDENTITY and not OUTCOMES[found.status].is_green
    assert decide([reading(16, "complete_by_identity", 50)]).status is Status.UNKNOWN
    assert decide([reading(5, "owed", 50), reading(1, "complete_by_identity", 40)]).status is Status.OWED
    assert OUTCOMES[Status.COMPLETE_BY_IDENTITY].exit_code == 4 and Status.COMPLETE_BY_IDENTITY not in CERTIFIES


def test_overdue_is_unknown_and_says_since_when_whatever_the_last_audit_found() -> None:
    since = NOW - timedelta(minutes=11)
    for word in ("exactly_once", "owed", "hazard"):
        found = decide([reading(9, word, 50)], overdue_since=since)
        assert (found.status, found.is_stale) == (Status.UNKNOWN, True)
        assert found.says.startswith(f"Overdue since {since:%Y-%m-%d %H:%M} UTC: the audit due then was not made")
        assert found.says.endswith(f"when last audited: {word} at 50.")
    assert "Nothing is known." in decide([], overdue_since=since, advice="Run it.").says
    running = RecoveryRun("r", "firing", None)
    assert decide([reading(9, "exactly_once", 50)], running, overdue_since=since).status is Status.RUNNING


def lasting(one: RecordReading, minute: int) -> RecordReading:
    """Its evidence lasts until so many minutes ago."""
    return replace(one, evidence_until=NOW - timedelta(minutes=minute))


def test_reading_whose_evidence_expired_is_unknown_and_says_what_it_found() -> None:
    found = decide([lasting(reading(1, "exactly_once", 50, says="Exactly once at 50."), 0)])
    assert (found.status, found.is_expired, found.is_stale) == (Status.UNKNOWN, True, False)
    assert found.says.startswith("Unknown: its evidence expired at ") and "Exactly once at 50." in found.says
    assert not decide([lasting(reading(1, "exactly_once", 50), -1)]).is_expired


def test_expired_deep_success_is_not_hidden_by_a_shallow_one_that_lasts() -> None:
    found = decide([lasting(reading(5, "exactly_once", 50), 1), reading(1, "exactly_once", 40)])
    assert found.is_expired and found.status is Status.UNKNOWN


def test_expired_reading_hides_nothing_that_is_owed_and_lasts() -> None:
    assert decide([lasting(reading(5, "exactly_once", 50), 1), reading(1, "owed", 40)]).status is Status.OWED


def test_stale_and_expired_reads_expired() -> None:
    assert decide([lasting(reading(20, "owed", 50), 1)]).is_expired
