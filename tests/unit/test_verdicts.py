"""What may be said of a lane, from its counts and the evidence behind them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.identity import Identity, Lifetime
from recovery_api.domain.outcomes import Status
from recovery_api.domain.verdicts import Below, Evidence, LaneCounts, verdict_make, verdict_total

CLEAN = {"obligations_retained": 9, "obligations_journal": 9, "history_rows": 9, "journal_rows": 9, "accepted_rows": 9}
BELOW = st.sampled_from(Below)
COUNTS = st.builds(
    LaneCounts,
    obligations_retained=st.integers(0, 1),
    **{
        name: st.integers(0, 2)
        for name in ("premature_altered", "duplicate_payloads", "justification_unknown", "floor_uncovered")
    },
    coordinates_ascending=st.booleans(),
)


def verdict(evidence=None, **counts):
    return verdict_make("0", "9", LaneCounts(**{**CLEAN, **counts}), evidence or Evidence())


def test_clean_counts_on_whole_evidence_are_exactly_once():
    made = verdict()
    assert (made.status, made.exit_code) == (Status.EXACTLY_ONCE, 0)
    assert made.retained.is_exactly_once and made.journal.is_exactly_once and made.is_floor_covered


@pytest.mark.parametrize(
    ("evidence", "counts", "status"),
    [
        (Evidence(), {"lost": 1, "lost_retained": 1, "lost_journal": 1}, Status.OWED),
        (Evidence(), {"lost": 1, "lost_retained": 0, "lost_journal": 1}, Status.OWED),
        (Evidence(), {"duplicate_payloads": 1, "duplicate_copies": 1}, Status.HAZARD),
        (Evidence(), {"premature_ahead": 1, "lost": 1, "lost_retained": 1, "lost_journal": 1}, Status.HAZARD),
        (
            Evidence(),
            {"lost": 2, "lost_retained": 1, "lost_journal": 2, "acknowledged": 2, "acknowledged_retained": 1},
            Status.ACKNOWLEDGED,
        ),
        (
            Evidence(),
            {"lost": 2, "lost_retained": 2, "lost_journal": 2, "acknowledged": 1, "acknowledged_retained": 1},
            Status.OWED,
        ),
        (Evidence(unread=("The record is torn.",)), {}, Status.UNKNOWN),
        (Evidence(unread=("The record is torn.",)), {"duplicate_payloads": 1}, Status.UNKNOWN),
        (Evidence(below=Below.JOURNAL, journal_reaches=False), {"lost": 1, "lost_journal": 1}, Status.UNKNOWN),
        (Evidence(below=Below.NOTHING), {}, Status.UNKNOWN),
        (Evidence(below=Below.NOTHING), {"lost": 1, "lost_retained": 1}, Status.OWED),
        (Evidence(), {"justification_unknown": 1}, Status.UNKNOWN),
        (Evidence(), {"justification_unknown": 1, "lost": 1, "lost_retained": 1, "lost_journal": 1}, Status.OWED),
        (Evidence(below=Below.CERTIFIED), {}, Status.EXACTLY_ONCE),
        (Evidence(), {"rows_by_coordinate": 18}, Status.EXACTLY_ONCE),
        (Evidence(), {"rows_by_coordinate": 18, "coordinates_ascending": False}, Status.UNKNOWN),
    ],
)
def test_status_follows_what_is_certain_then_what_is_unknown(evidence, counts, status):
    assert verdict(evidence, **counts).status is status


@given(COUNTS, BELOW, st.booleans(), st.booleans())
def test_only_whole_evidence_without_a_finding_is_exactly_once(counts, below, reaches, is_whole):
    made = verdict_make("0", "9", counts, Evidence(below, reaches, () if is_whole else ("Not read whole.",)))
    is_clean = counts.is_hazard_free and counts.justification_unknown == 0 and counts.lost == 0 and counts.is_judged
    is_known = is_whole and reaches and below is not Below.NOTHING
    assert (made.exit_code == 0) == (is_clean and is_known)
    assert (made.status is Status.EXACTLY_ONCE) == (made.exit_code == 0)
    assert made.exit_code in (0, 1, 3)
    if not is_whole:
        assert made.retained.is_exactly_once is None
        assert made.is_hazard_free is not True


def test_the_retained_grade_is_never_shown_as_the_journal_grade():
    made = verdict(Evidence(below=Below.NOTHING))
    assert made.retained.is_complete
    assert made.journal.is_complete is None
    assert made.is_floor_covered is None
    assert "The journal grade is unknown." in made.details


def test_where_coordinates_do_not_ascend_nothing_is_said_per_event():
    made = verdict(coordinates_ascending=False)
    assert made.says[0].startswith("Exactly once at 9, by payload: ")
    assert not made.is_keyed_sound
    assert any("no keyed matching" in weakness for weakness in made.weaknesses)


def test_matching_by_coordinate_names_its_weakness():
    made = verdict(rows_by_coordinate=18)
    assert made.matching == "by coordinate"
    assert "Contents were not compared" in made.weaknesses[0]
    assert verdict(rows_by_coordinate=18, premature_never_committed=1).is_keyed_sound is False


def test_altered_at_the_sink_is_said_with_its_number():
    made = verdict(lost=1, lost_retained=1, lost_journal=1, lost_hidden=1, premature_altered=1)
    assert any("no fire can deliver it" in line for line in made.says)
    assert made.as_row()["premature"] == 1


def test_t5_only_a_proven_ground_is_exactly_once_and_what_was_given_is_named():
    made = verdict(Evidence(given=("that commits end within 30 s of drawing a number",)))
    assert (made.status, made.exit_code) == (Status.EXACTLY_ONCE_GIVEN, 4)
    assert made.says[0].startswith("Exactly once at 9, given that commits end within 30 s of drawing a number: ")


@given(COUNTS)
def test_t5_what_was_given_changes_success_and_nothing_else(counts):
    plain, given_ = (verdict_make("0", "9", counts, Evidence(given=phrases)) for phrases in ((), ("so",)))
    expected = Status.EXACTLY_ONCE_GIVEN if plain.status is Status.EXACTLY_ONCE else plain.status
    assert given_.status is expected


def test_t4_nothing_judged_is_unknown_and_says_so():
    made = verdict_make("0", "9", LaneCounts(), Evidence())
    assert (made.status, made.exit_code) == (Status.UNKNOWN, 3)
    assert "Nothing was judged at 9" in made.unknown_because[0]


def test_t4_a_doubt_takes_a_success_away_and_no_finding():
    doubted = Evidence(doubts=("The history ends at 1.",))
    assert verdict(doubted).status is Status.UNKNOWN
    assert verdict(doubted, lost=1, lost_retained=1, lost_journal=1).status is Status.OWED
    assert verdict(doubted, duplicate_payloads=1, duplicate_copies=1).status is Status.HAZARD


def test_l11_all_lanes_are_one_number_in_the_sentence():
    lanes = {
        str(n): verdict_make(
            str(n), "before every commit", LaneCounts(accepted_rows=1, premature_never_committed=1), Evidence()
        )
        for n in range(1, 201)
    }
    total = verdict_total({"0": verdict(), **lanes})
    assert total.status is Status.HAZARD
    assert total.says[0] == "Hazard at 9: 200 accepted entries are not as committed (200 never committed)."


def test_a_lane_without_events_speaks_only_where_no_lane_was_judged():
    empty = verdict_make("b", "before every commit", LaneCounts(), Evidence())
    assert verdict_total({"a": verdict(), "b": empty}).status is Status.EXACTLY_ONCE
    assert verdict_total({"b": empty}).status is Status.UNKNOWN


BY_ID = Evidence(identity=Identity("uuid", Lifetime(1800, 60)))
ONE_LOST = {"lost": 1, "lost_retained": 1, "lost_journal": 1}


def test_a_record_of_ids_is_complete_by_identity_and_never_exactly_once():
    made = verdict(BY_ID)
    assert (made.status, made.exit_code, made.matching) == (Status.COMPLETE_BY_IDENTITY, 4, "by identity (uuid)")
    assert made.is_hazard_free is None and made.retained.is_exactly_once is None and made.retained.is_complete
    assert made.says == (
        "Complete by identity at 9: the ids of all 9 events are in the record, none of them twice.",
        "Events were matched by their ids alone: contents and premature entries were not judged.",
    )
    given = verdict(replace(BY_ID, given=("that ids are not used again",)))
    assert given.status is Status.COMPLETE_BY_IDENTITY and "given that ids are not used again" in given.says[0]
    assert verdict_total({"0": made}).says == made.says
    assert verdict(BY_ID, coordinates_ascending=False).instances == "per event"


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        (ONE_LOST, Status.OWED),
        ({"duplicate_payloads": 1, "duplicate_copies": 2}, Status.HAZARD),
        ({"absent_trimmed": 1}, Status.UNKNOWN),
        ({"absent_untimed": 1}, Status.UNKNOWN),
        ({"absent_unreadable": 1, "ids_unreadable": 1}, Status.UNKNOWN),
        ({"ids_missing": 1}, Status.UNKNOWN),
        ({"ids_unmatched": 4}, Status.COMPLETE_BY_IDENTITY),
        ({"ids_unreadable": 4}, Status.COMPLETE_BY_IDENTITY),
        ({**ONE_LOST, "absent_trimmed": 1}, Status.OWED),
        ({"absent_trimmed": 1, "absent_acknowledged": 1}, Status.ACKNOWLEDGED),
        ({**ONE_LOST, "acknowledged": 1, "acknowledged_retained": 1}, Status.ACKNOWLEDGED),
    ],
)
def test_what_ids_show_and_what_they_do_not(counts, status):
    made = verdict(BY_ID, **counts)
    assert made.status is status
    if status is Status.UNKNOWN:
        assert made.unknown_because
    if "ids_unmatched" in counts:
        assert "never committed" in " ".join(made.weaknesses)
