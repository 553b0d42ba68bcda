"""The life of a recovery: which state may follow which. Pure; the table's states are the model's.

Every unfinished state may go to `settling` (a successor reads the sink) and from there anywhere a sink can stand.
`firing` goes back to `arming` where the sink recomputed another batch than was armed; `verifying` goes back to `claiming` where a recovery is split by frontier: each part has its own claim and fire.
"""

from __future__ import annotations

REQUESTED, CLAIMING, ARMING, STAGING, FIRING, VERIFYING, HANDING_OVER, SETTLING, FINISHED = (
    "requested",
    "claiming",
    "arming",
    "staging",
    "firing",
    "verifying",
    "handing_over",
    "settling",
    "finished",
)
UNFINISHED = (REQUESTED, CLAIMING, ARMING, STAGING, FIRING, VERIFYING, HANDING_OVER, SETTLING)

MOVES: dict[str, frozenset[str]] = {
    REQUESTED: frozenset({CLAIMING, SETTLING}),
    CLAIMING: frozenset({CLAIMING, ARMING, VERIFYING, SETTLING}),
    ARMING: frozenset({CLAIMING, STAGING, VERIFYING, SETTLING}),
    STAGING: frozenset({CLAIMING, ARMING, FIRING, VERIFYING, SETTLING}),
    FIRING: frozenset({CLAIMING, ARMING, VERIFYING, SETTLING}),
    VERIFYING: frozenset({CLAIMING, HANDING_OVER, SETTLING}),
    HANDING_OVER: frozenset({CLAIMING, SETTLING}),
    SETTLING: frozenset({SETTLING, CLAIMING, VERIFYING, HANDING_OVER}),
    FINISHED: frozenset(),
}


def move_is_allowed(state: str, to: str) -> bool:
    """Whether a recovery in `state` may go to `to`.

    >>> move_is_allowed("firing", "verifying"), move_is_allowed("claiming", "firing")
    (True, False)
    """
    return to in MOVES[state]
