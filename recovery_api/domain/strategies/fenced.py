"""The strategy of a sink that owns a fence: claim, read under the claim, arm, stage, fire, verify, hand over.

Every unfinished state may move to `settling`, where a successor asks the sink, and from there to any state that the
sink can be in. `firing` goes back to `arming` where the sink computed another batch than was armed. `verifying` goes
back to `claiming` where a recovery is split by frontier: each part has its own claim and fire.
"""

from __future__ import annotations

from recovery_api.domain.attestations import LATER_EVENTS_CONFIRMED
from recovery_api.domain.capabilities import Archetype
from recovery_api.domain.drills import DrillName
from recovery_api.domain.outcomes import Outcome
from recovery_api.domain.recovery_states import (
    ARMING,
    CLAIMING,
    FINISHED,
    FIRING,
    HANDING_OVER,
    REQUESTED,
    SETTLING,
    STAGING,
    VERIFYING,
)
from recovery_api.domain.strategies.base import Fact, Strategy, StrategyStep

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

STEPS = (
    StrategyStep(
        CLAIMING,
        "Claim",
        "Raise the sink's fence: nothing of an older relay run gets in any more.",
        frozenset({Fact.CLAIMED, Fact.FIRED}),
    ),
    StrategyStep(
        ARMING,
        "Read and prepare",
        "Read both ends again; fix exactly what is still missing.",
        frozenset({Fact.ARMED, Fact.FIRED}),
    ),
    StrategyStep(
        STAGING,
        "Stage",
        "Bring the batch to the sink, beside its record. Nothing is delivered yet.",
        frozenset({Fact.FIRED}),
    ),
    StrategyStep(
        FIRING,
        "Deliver",
        "The whole batch in one transaction of the sink, or nothing of it.",
        frozenset({Fact.FIRED}),
    ),
    StrategyStep(
        VERIFYING, "Verify", "Audit the sink again. Only this decides the outcome.", frozenset({Fact.VERIFIED})
    ),
    StrategyStep(
        HANDING_OVER,
        "Hand over",
        "Check where the sink lets the next relay run start.",
        frozenset({Fact.HANDED_OVER}),
    ),
)

OBEYS_BEFORE = {
    REQUESTED: "the claim",
    CLAIMING: "reading under the claim",
    ARMING: "arming",
    STAGING: "the fire",
    FIRING: "the verification; the fire itself is not taken back",
    SETTLING: "a new claim",
}

DRILLS = {
    DrillName.CHECKPOINT_CRASH: "What a dead relay delivered and did not check off is not sent again by a recovery, and what "
    "it sends again itself after the hand-over is absorbed.",
    DrillName.IN_FLIGHT_STRAGGLER: "A send of an older generation that arrives after the claim is rejected at admission, "
    "however late.",
    DrillName.SPLIT_BRAIN_WORKER: "Of two recoverers only the one with the newest claim lands its batch; the other is refused "
    "and told by whom.",
    DrillName.EXPIRED_DEDUPLICATION: "A recovery decides by the acceptance record, not by a window; the oldest identity is "
    "still remembered, and other content at its coordinate is told, not accepted.",
    DrillName.CRASH_INSIDE_RECOVERY: "A recoverer that dies after any step leaves what a successor settles from the sink: "
    "nothing doubled, nothing lost.",
}

FENCED = Strategy(
    name="fenced",
    archetype=Archetype.FENCED,
    does="A recovery claims, arms and fires",
    promise="exactly once at f{given}, once verified",
    applying="Applying stops older relay runs at the sink, reads both ends again, and sends exactly what is still missing of "
    "this plan.",
    pausing="Holds before the next step; a delivery that has begun is not taken back. A claim already taken stays open, so "
    "a relay that asks for a generation waits too.",
    stopping="Ends it at the next safe point and gives the claim up. The relay must ask the sink for a new generation before "
    "it goes on. What was delivered stays.",
    settling="A worker asks the sink what became of this recovery, waits for a delivery that may still run there, and goes "
    "on from that. What is remembered here decides nothing.",
    relay_next="Start the relay: it asks the sink for a generation and is told where to begin.",
    evidence_lasts="The acceptance record keeps every identity; its rows have no expiry at this sink.",
    steps=STEPS,
    moves=MOVES,
    obeys_before=OBEYS_BEFORE,
    next_part="the next part's claim",
    holds_claim=frozenset({CLAIMING, ARMING, STAGING, FIRING, SETTLING}),
    conditions=("P1", "P2", "P3", "P4", "C1", "record", "content", "order", "floor", "horizon"),
    attestations=(LATER_EVENTS_CONFIRMED,),
    outcomes=frozenset(Outcome),
    drills=DRILLS,
)
