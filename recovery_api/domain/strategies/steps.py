"""The steps of a recovery as a person follows them: which one it is at, which are done, which it never reached."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from recovery_api.domain import recovery_states as states
from recovery_api.domain.strategies.base import Fact, Strategy


class StepStanding(StrEnum):
    """Where one step stands."""

    DONE = "done"
    """It is behind the recovery."""
    NOW = "now"
    """The recovery is at it."""
    WAITING = "waiting"
    """Not yet."""
    NOT_REACHED = "not reached"
    """The recovery ended before it."""


@dataclass(frozen=True, slots=True)
class Step:
    number: int
    name: str
    says: str
    standing: StepStanding


def steps_of(strategy: Strategy, state: str, facts: AbstractSet[Fact]) -> list[Step]:
    """The numbered steps of a recovery in `state`. The facts decide where it is finished, or being settled.

    >>> from recovery_api.domain.strategies.fenced import FENCED
    >>> [step.standing.value for step in steps_of(FENCED, "staging", {Fact.CLAIMED, Fact.ARMED})]
    ['done', 'done', 'now', 'waiting', 'waiting', 'waiting']
    """
    order = [step.state for step in strategy.steps]
    if state in order:
        at = order.index(state)
        standings = [
            StepStanding.DONE if index < at else StepStanding.NOW if index == at else StepStanding.WAITING
            for index in range(len(order))
        ]
    else:
        rest = StepStanding.NOT_REACHED if state == states.FINISHED else StepStanding.WAITING
        standings = [StepStanding.DONE if step.shown_by & facts else rest for step in strategy.steps]
    return [
        Step(number, step.name, step.says, standing)
        for number, (step, standing) in enumerate(zip(strategy.steps, standings, strict=True), start=1)
    ]
