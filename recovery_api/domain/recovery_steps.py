"""The steps of a recovery as a person follows them: where it is, what is done, what was never reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from recovery_api.domain import recovery_states as states


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


STEPS: Sequence[tuple[str, str, str]] = (
    (states.CLAIMING, "Claim", "Raise the sink's fence: nothing of an older relay run gets in any more."),
    (states.ARMING, "Read and prepare", "Read both ends again; fix exactly what is still missing."),
    (states.STAGING, "Stage", "Bring the batch to the sink, beside its record. Nothing is delivered yet."),
    (states.FIRING, "Deliver", "The whole batch in one transaction of the sink, or nothing of it."),
    (states.VERIFYING, "Verify", "Audit the sink again. Only this decides the outcome."),
    (states.HANDING_OVER, "Hand over", "Check where the sink lets the next relay run start."),
)
ORDER = [state for state, _, _ in STEPS]


def steps_of(state: str, *, claimed: bool, armed: bool, fired: bool, verified: bool, handed_over: bool) -> list[Step]:
    """The numbered steps of a recovery in `state`. The facts decide where it is finished, or being settled.

    >>> [step.standing.value for step in steps_of("staging", claimed=True, armed=True, fired=False, verified=False,
    ...     handed_over=False)]
    ['done', 'done', 'now', 'waiting', 'waiting', 'waiting']
    """
    if state in ORDER:
        at = ORDER.index(state)
        standings = [
            StepStanding.DONE if index < at else StepStanding.NOW if index == at else StepStanding.WAITING
            for index in range(len(ORDER))
        ]
    else:
        facts = (claimed or fired, armed or fired, fired, fired, verified, handed_over)
        rest = StepStanding.NOT_REACHED if state == states.FINISHED else StepStanding.WAITING
        standings = [StepStanding.DONE if holds else rest for holds in facts]
    return [
        Step(number, name, says, standing)
        for number, ((_, name, says), standing) in enumerate(zip(STEPS, standings, strict=True), start=1)
    ]
