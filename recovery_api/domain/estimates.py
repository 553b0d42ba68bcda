"""How long a recovery would take: an estimate, with the facts it is made from. Never a promise."""

from __future__ import annotations

from dataclasses import dataclass

LANDED_PER_SECOND = 10_000.0
"""Staged and fired by one worker, where the pipeline has not shown its own rate. A cautious fifth of what was measured."""
RATE_FROM_AT_LEAST = 10_000
"""Events a recovery must have landed for its rate to say anything about the next one."""


@dataclass(frozen=True, slots=True)
class Landing:
    """An earlier recovery of the pipeline: how many landed, and the seconds from its claim to its fire."""

    landed_count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds, and the sentence that says what they rest on."""

    seconds: float
    says: str


def recovery_estimate(batch_count: int, read_seconds: float, earlier: Landing | None) -> Estimate:
    """Two readings (under the claim, and to verify) as long as the plan's own, and the landing at a known rate.

    >>> recovery_estimate(30_000, 2.0, None).seconds
    7.0
    """
    rate, ground = LANDED_PER_SECOND, "10,000 events a second, the cautious rate for a pipeline without history"
    if earlier is not None and earlier.landed_count >= RATE_FROM_AT_LEAST and earlier.seconds > 0:
        rate = earlier.landed_count / earlier.seconds
        ground = f"{rate:,.0f} events a second, as its last large recovery landed"
    seconds = 2 * read_seconds + batch_count / rate
    return Estimate(
        seconds,
        f"Two readings of {read_seconds:,.0f} s, which is what the plan took, and {batch_count:,} events at {ground}. "
        "Waiting for a worker or for the sink's open transactions comes on top.",
    )
