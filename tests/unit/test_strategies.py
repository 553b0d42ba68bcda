"""What each strategy declares, and which one a tested capability allows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recovery_api.domain import recovery_states as states
from recovery_api.domain.capabilities import Archetype, Capability, archetype_weaker
from recovery_api.domain.errors import Refused
from recovery_api.domain.outcomes import Outcome
from recovery_api.domain.strategies import STRATEGIES, strategy_named, strategy_of
from recovery_api.domain.strategies.attested import ATTESTED
from recovery_api.domain.strategies.base import Strategy
from recovery_api.domain.strategies.fenced import FENCED

KIT = Capability(Archetype.FENCED, True, True, True, True, True)
DRIVEN = [one for one in STRATEGIES.values() if one.is_driven]


@pytest.mark.parametrize("strategy", DRIVEN, ids=lambda one: one.name)
def test_every_step_can_be_reached_from_the_request_and_every_unfinished_state_can_be_taken_over(
    strategy: Strategy,
) -> None:
    reached, fresh = {states.REQUESTED}, {states.REQUESTED}
    while fresh:
        fresh = {to for state in fresh for to in strategy.moves[state]} - reached
        reached |= fresh
    assert {step.state for step in strategy.steps} <= reached
    assert reached | {states.FINISHED} == set(strategy.moves)
    assert all(states.SETTLING in strategy.moves[state] for state in reached)
    assert Outcome.UNKNOWN in strategy.outcomes


def test_only_a_fence_may_end_green() -> None:
    assert {one.name for one in STRATEGIES.values() if Outcome.EXACTLY_ONCE in one.outcomes} == {"fenced"}


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=lambda one: one.name)
def test_a_strategy_promises_one_thing_in_one_sentence(strategy: Strategy) -> None:
    assert strategy.sentence().endswith(f"{strategy.promise_says()}.")
    assert "{" not in strategy.sentence()
    assert strategy.is_driven or not (strategy.outcomes or strategy.steps or strategy.drills)


def test_what_rests_on_something_is_promised_given_that() -> None:
    assert FENCED.promise_says(["that older commits are final"]) == (
        "exactly once at f, given that older commits are final, once verified"
    )


def test_a_sink_that_lost_its_fence_is_not_recovered_as_a_fenced_one() -> None:
    assert strategy_of(KIT) is FENCED
    assert not strategy_of(replace(KIT, has_fence=False)).is_driven
    assert not strategy_of(replace(KIT, archetype=Archetype.QUERYABLE, has_fence=False)).is_driven
    assert not strategy_of(replace(KIT, archetype=Archetype.BLIND)).is_driven


def test_only_a_table_that_may_be_read_and_appended_to_now_is_appended_to() -> None:
    """By what was tested of it, whatever its kind is called."""
    table = Capability(Archetype.QUERYABLE, True, True, False, True, True, may_append=True)
    assert strategy_of(table) is ATTESTED
    assert not strategy_of(replace(table, may_append=False)).is_driven
    assert not strategy_of(replace(table, can_read_record=False)).is_driven
    assert strategy_of(replace(table, has_fence=True)) is ATTESTED, "a fence of a sink that is not a fenced one is none"


def test_the_weaker_of_what_is_declared_and_what_was_tested_counts() -> None:
    order = [Archetype.BLIND, Archetype.DEDUPLICATING, Archetype.QUERYABLE, Archetype.FENCED]
    for at, weak in enumerate(order):
        for strong in order[at:]:
            assert archetype_weaker(weak.value, strong) is archetype_weaker(strong.value, weak) is weak
    assert archetype_weaker(None, Archetype.FENCED) is Archetype.FENCED


def test_what_rests_on_an_attestation_is_promised_given_that_and_never_without() -> None:
    assert "never without what was attested" in ATTESTED.promise_says()
    assert ", given that the relay was stopped" in ATTESTED.promise_says(["that the relay was stopped"])


def test_a_strategy_of_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(Refused, match="'telepathic'"):
        strategy_named("telepathic")
