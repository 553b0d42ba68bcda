"""What was asked of a running recovery, and what is so: two things, both shown.

The law: *paused* and *stopped* are said of what is, never of what was asked. Between the two the recovery goes on, and the
words say before which step it will obey.
"""

from __future__ import annotations

from dataclasses import dataclass

from recovery_api.domain import recovery_states as states
from recovery_api.domain.strategies.base import Strategy


@dataclass(frozen=True, slots=True)
class Steering:
    """`word`: running | frozen | pause asked | paused | stop asked | finished. `says`: a sentence; empty where nothing was asked."""

    word: str
    says: str
    is_paused: bool = False


def steering_of(
    strategy: Strategy,
    state: str,
    wanted: str,
    wanted_by: str,
    holds_before: str | None,
    has_part_left: bool,
    frozen_says: str = "",
) -> Steering:
    """How a recovery stands with what a person wants of it. `holds_before`: where it really waits. `frozen_says`: why, where
    nothing may be sent for its pipeline.

    >>> from recovery_api.domain.strategies.fenced import FENCED
    >>> steering_of(FENCED, "arming", "pause", "ada", None, True).says
    'ada asked it to pause. It will hold before arming.'
    >>> steering_of(FENCED, "arming", "pause", "ada", "the fire", True).word
    'paused'
    >>> steering_of(FENCED, "arming", "run", "", "arming", True, "every pipeline is frozen by ada: a bad deploy").says
    'It holds before arming, and its claim stays open: every pipeline is frozen by ada: a bad deploy'
    """
    if state == states.FINISHED:
        return Steering("finished", "")
    if frozen_says and holds_before is not None and wanted != "stop":
        claim = ", and its claim stays open" if state in strategy.holds_claim else ""
        return Steering("frozen", f"It holds before {holds_before}{claim}: {frozen_says}", is_paused=True)
    if wanted == "run":
        return Steering("running", "")
    who = f"{wanted_by or 'Somebody'} asked it to {wanted}."
    before = strategy.obeys_before.get(state)
    if state in (states.VERIFYING, states.HANDING_OVER) and has_part_left:
        before = strategy.next_part
    if wanted == "pause":
        if holds_before is not None:
            return Steering("paused", f"{who} It holds before {holds_before}.", is_paused=True)
        if before is None:
            return Steering("pause asked", f"{who} Everything has landed; what is left only reads, and goes on.")
        return Steering("pause asked", f"{who} It will hold before {before}.")
    if before is None or (state == states.FIRING and not has_part_left):
        return Steering("stop asked", f"{who} It has fired; what landed is verified before it ends.")
    return Steering("stop asked", f"{who} It will end before {before}.")
