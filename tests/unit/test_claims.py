"""The answers of a fenced sink as values, and what a claim became."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain import claims
from recovery_api.domain.claims import ClaimState, Settlement, Standing, Word, settlement
from workers.connectors.protocols.fence import ClaimReading

standings = st.builds(
    Standing,
    fence=st.integers(0, 3),
    is_allocated=st.booleans(),
    claim_state=st.sampled_from(ClaimState),
    arm=st.none() | st.integers(1, 2),
)
generations = st.integers(0, 4)


@given(generations, standings)
def test_nothing_below_the_fence_enters_claims_arms_or_fires(generation: int, standing: Standing) -> None:
    if generation >= standing.fence:
        return
    assert claims.admission_answer(generation, standing) is Word.FENCED
    assert claims.begin_answer(generation, standing) is Word.REFUSED
    assert claims.claim_answer(generation, True, standing) is Word.REFUSED
    assert claims.arm_answer(generation, 0, 9, standing) is Word.FENCED
    assert claims.fire_answer(generation, 1, True, standing) is Word.FENCED


@given(generations, st.integers(1, 2), st.booleans(), standings)
def test_only_an_open_claim_that_armed_this_arm_lands(
    generation: int, arm: int, is_as_armed: bool, standing: Standing
) -> None:
    lands = claims.fire_answer(generation, arm, is_as_armed, standing) is Word.LANDED
    assert lands == (
        generation >= standing.fence
        and standing.claim_state is ClaimState.OPEN
        and standing.arm == arm
        and standing.is_allocated
        and is_as_armed
    )


@given(generations, standings)
def test_generation_never_allocated_never_moves_the_fence(generation: int, standing: Standing) -> None:
    if standing.is_allocated:
        return
    assert claims.begin_answer(generation, standing) is not Word.STARTED
    assert claims.claim_answer(generation, True, standing) is not Word.GRANTED
    assert claims.admission_answer(generation, standing) is not None


@given(generations, standings)
def test_delivery_pauses_exactly_under_its_own_open_claim(generation: int, standing: Standing) -> None:
    is_paused = claims.admission_answer(generation, standing) is Word.PAUSED
    assert is_paused == (
        generation == standing.fence and standing.is_allocated and standing.claim_state is ClaimState.OPEN
    )


def test_relays_generation_is_not_claimed() -> None:
    assert claims.claim_answer(2, False, Standing(fence=1, is_allocated=True)) is Word.REFUSED


@pytest.mark.parametrize(("held", "word"), [(None, Word.ACCEPTED), (b"same", Word.ABSORBED), (b"other", Word.ALTERED)])
def test_identity_is_accepted_once(held: bytes | None, word: Word) -> None:
    assert claims.identity_answer(held, b"same") is word


@pytest.mark.parametrize(
    ("state", "locked", "plain"),
    [
        ("fired", Settlement.FIRED, Settlement.FIRED),
        ("superseded", Settlement.SUPERSEDED, Settlement.SUPERSEDED),
        ("released", Settlement.RELEASED, Settlement.RELEASED),
        ("open", Settlement.OPEN, Settlement.UNKNOWN),
        ("none", Settlement.UNCLAIMED, Settlement.UNKNOWN),
    ],
)
def test_plain_reading_settles_only_what_cannot_change(state: str, locked: Settlement, plain: Settlement) -> None:
    claim = ClaimReading(4, state)
    assert settlement(claim, 4) is locked
    assert settlement(claim, 4, is_locked=False) is plain
    assert settlement(claim, 5) is Settlement.UNKNOWN


def test_sink_that_was_not_reached_settles_nothing() -> None:
    assert settlement(None) is Settlement.UNKNOWN
    assert not Settlement.UNKNOWN.is_final
