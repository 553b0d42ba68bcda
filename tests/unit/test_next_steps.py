"""What follows from the sink's word: nothing is called ended that could still land."""

from __future__ import annotations

import pytest

from recovery_api.domain.claims import ClaimState, Settlement, Word
from recovery_api.domain.hand_over import is_handed_over, relay_starts_at, start_position
from recovery_api.domain.next_steps import Next, claim_next, end_next, fire_next, settle_next
from recovery_api.domain.outcomes import Outcome, Verified, outcome_conclude
from recovery_api.models import RecoveryOutcome

ENDS = {Next.FENCED, Next.STOPPED, Next.REFUSED}


@pytest.mark.parametrize("settled", list(Settlement))
@pytest.mark.parametrize("is_passed_by_ours", [True, False])
def test_only_a_claim_that_cannot_fire_ends_a_recovery(settled: Settlement, is_passed_by_ours: bool) -> None:
    then = settle_next(settled, is_passed_by_ours)
    assert (then is Next.LANDED) == (settled is Settlement.FIRED)
    if then in ENDS:
        assert settled.is_final


def test_claim_passed_by_a_generation_of_its_own_recovery_is_taken_up_again() -> None:
    assert settle_next(Settlement.SUPERSEDED, is_passed_by_ours=True) is Next.CLAIM
    assert settle_next(Settlement.SUPERSEDED, is_passed_by_ours=False) is Next.FENCED


@pytest.mark.parametrize("word", list(Word))
def test_record_is_read_under_a_granted_claim_only(word: Word) -> None:
    assert (claim_next(word) is Next.READ) == (word is Word.GRANTED)


@pytest.mark.parametrize("state", list(ClaimState))
@pytest.mark.parametrize("is_last", [True, False])
def test_mismatch_is_armed_again_until_the_last_attempt(state: ClaimState, is_last: bool) -> None:
    assert (fire_next(Word.MISMATCH, state, is_last) is Next.ARM_AGAIN) == (not is_last)
    assert fire_next(Word.ALREADY_FIRED, state, is_last) is Next.LANDED


@pytest.mark.parametrize(
    ("word", "state", "then"),
    [
        (Word.LANDED, ClaimState.FIRED, Next.LANDED),
        (Word.FENCED, ClaimState.SUPERSEDED, Next.FENCED),
        (Word.NOT_ARMED, ClaimState.RELEASED, Next.STOPPED),
        (Word.NOT_ARMED, ClaimState.SUPERSEDED, Next.FENCED),
        (Word.NO_CLAIM, ClaimState.OPEN, Next.REFUSED),
    ],
)
def test_what_follows_a_fire(word: Word, state: ClaimState, then: Next) -> None:
    assert fire_next(word, state, is_last_attempt=True) is then


@pytest.mark.parametrize("end", sorted(ENDS))
def test_recovery_of_which_a_batch_landed_unseen_does_not_end_as_if_nothing_had(end: Next) -> None:
    assert end_next(end, has_fired_unrecorded=True) is Next.LANDED
    assert end_next(end, has_fired_unrecorded=False) is end


def test_relay_starts_from_news_only() -> None:
    assert relay_starts_at(7, handed_over=None, started_from=None) == 7
    assert relay_starts_at(7, handed_over=9, started_from=3) == 9
    assert relay_starts_at(7, handed_over=3, started_from=3) == 7


def test_start_lies_below_the_lowest_event_that_stays_owed() -> None:
    assert start_position(9, 4) == 4
    assert is_handed_over(9, 9) and not is_handed_over(8, 9) and not is_handed_over(None, 9)


def test_outcomes_are_the_recovery_tables_words() -> None:
    assert [outcome.value for outcome in Outcome] == [str(outcome) for outcome in RecoveryOutcome]


@pytest.mark.parametrize(
    ("verified", "outcome"),
    [
        (None, Outcome.UNKNOWN),
        (Verified(False, 0, 0, 0, 0, True), Outcome.UNKNOWN),
        (Verified(True, 2, 1, 1, 0, True), Outcome.INCOMPLETE_ALTERED),
        (Verified(True, 2, 1, 0, 1, True), Outcome.INCOMPLETE),
        (Verified(True, 1, 1, 0, 1, True), Outcome.HAZARD),
        (Verified(True, 1, 1, 0, 0, True), Outcome.COMPLETE_WITH_ACKNOWLEDGED),
        (Verified(True, 0, 0, 0, 0, False), Outcome.COMPLETE_HAND_OVER_UNVERIFIED),
        (Verified(True, 0, 0, 0, 0, True), Outcome.EXACTLY_ONCE),
    ],
)
def test_outcome_is_the_strongest_word_that_is_true(verified: Verified | None, outcome: Outcome) -> None:
    assert outcome_conclude(verified) is outcome
