"""What a recoverer does next, from what the sink answered. Pure: the workers and the protocol's model ask the same.

The law: the sink's word decides. A recovery may say that nothing landed only of a claim that can no longer fire.
"""

from __future__ import annotations

from enum import StrEnum

from recovery_api.domain.claims import ClaimState, Settlement, Word


class Next(StrEnum):
    """The next step of a recoverer."""

    CLAIM = "claim"
    """Under a new generation: whatever the old claim could still do, the new one voids."""
    READ = "read"
    """The claim is granted: read the record under it."""
    ARM_AGAIN = "arm again"
    """What was staged is not what was armed: arm and stage once more under the same claim."""
    LANDED = "landed"
    """The batch landed: record the sink's figures, then verify."""
    FENCED = "fenced"
    """A newer generation passed: nothing of this one landed or can. It ends."""
    STOPPED = "stopped"
    """The claim was given up: nothing of it landed or can. It ends."""
    REFUSED = "refused"
    """It cannot go on, and nothing of it landed or can. It ends; plan again."""


def settle_next(settled: Settlement, is_passed_by_ours: bool) -> Next:
    """What follows from a claim that was settled. `is_passed_by_ours`: another generation of the same recovery passed it.

    Open, unclaimed or unknown is no end: a fire or a claim of it may still be under way, so a newer claim voids it.
    """
    match settled:
        case Settlement.FIRED:
            return Next.LANDED
        case Settlement.RELEASED:
            return Next.STOPPED
        case Settlement.SUPERSEDED if not is_passed_by_ours:
            return Next.FENCED
        case _:
            return Next.CLAIM


def claim_next(word: str) -> Next:
    """What follows from the sink's answer to a claim."""
    return Next.READ if word == Word.GRANTED else Next.FENCED


def fire_next(word: str, claim_state: str, is_last_attempt: bool) -> Next:
    """What follows from the answer to an arm or a fire, and the state of its claim read by locking it afterwards."""
    if word == Word.MISMATCH and not is_last_attempt:
        return Next.ARM_AGAIN
    if word in (Word.LANDED, Word.ALREADY_FIRED):
        return Next.LANDED
    if claim_state == ClaimState.RELEASED:
        return Next.STOPPED
    if word == Word.FENCED or claim_state == ClaimState.SUPERSEDED:
        return Next.FENCED
    return Next.REFUSED


def end_next(end: Next, has_fired_unrecorded: bool) -> Next:
    """What follows where a recovery would end with nothing landed: `end`, unless a claim of it fired that nobody recorded.

    A recovery has as many generations as workers took it. The last one's claim may have been refused or given up while an
    earlier worker's fire, thought lost, landed.
    """
    return Next.LANDED if has_fired_unrecorded else end
