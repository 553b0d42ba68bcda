"""How a recovery ended: the strongest word that its last verification supports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The words of recovery_api.models.RecoveryOutcome, which says what each means."""

    EXACTLY_ONCE = "exactly_once"
    COMPLETE_WITH_ACKNOWLEDGED = "complete_with_acknowledged"
    COMPLETE_HAND_OVER_UNVERIFIED = "complete_hand_over_unverified"
    INCOMPLETE = "incomplete"
    INCOMPLETE_ALTERED = "incomplete_altered"
    HAZARD = "hazard"
    FENCED = "fenced"
    REFUSED = "refused"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verified:
    """What the audit after the fire found at f. `hidden_count`: owed, and altered at the sink, acknowledged ones apart."""

    is_known: bool
    lost_count: int
    acknowledged_count: int
    hidden_count: int
    hazard_count: int
    is_handed_over: bool


def outcome_conclude(verified: Verified | None) -> Outcome:
    """The outcome of a recovery that has fired. None: it was never verified, so nothing may be concluded.

    >>> outcome_conclude(Verified(True, 0, 0, 0, 0, True)), outcome_conclude(None)
    (<Outcome.EXACTLY_ONCE: 'exactly_once'>, <Outcome.UNKNOWN: 'unknown'>)
    """
    if verified is None or not verified.is_known:
        return Outcome.UNKNOWN
    if verified.hidden_count:
        return Outcome.INCOMPLETE_ALTERED
    if verified.lost_count > verified.acknowledged_count:
        return Outcome.INCOMPLETE
    if verified.hazard_count:
        return Outcome.HAZARD
    if verified.acknowledged_count:
        return Outcome.COMPLETE_WITH_ACKNOWLEDGED
    return Outcome.EXACTLY_ONCE if verified.is_handed_over else Outcome.COMPLETE_HAND_OVER_UNVERIFIED
