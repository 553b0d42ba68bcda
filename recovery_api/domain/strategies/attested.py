"""The strategy of a table that its owner declares to be the effect: no fence, so people attest what a fence would show.

Each part is one transaction at the sink, under a lock that keeps out every writer and every other recoverer. What is
missing is worked out again inside it, so a successor that finds a part half done simply runs it again: it finds
whatever the earlier session landed. Two things no lock can show, and people attest them: that nothing the relay sent is
still on its way (not needed where a unique constraint on the identity refuses what comes late), and that nothing else
recovers this sink.

The law: whatever it finds, it may say *exactly once at f* only together with what was attested.
"""

from __future__ import annotations

from recovery_api.domain.attestations import ONLY_RECOVERER, RELAY_DRAINED
from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.drills import DrillName
from recovery_api.domain.outcomes import Outcome
from recovery_api.domain.recovery_states import APPENDING, FINISHED, READING, REQUESTED, SETTLING, VERIFYING
from recovery_api.domain.strategies.base import Fact, Strategy, StrategyStep

MOVES: dict[str, frozenset[str]] = {
    REQUESTED: frozenset({READING, SETTLING}),
    READING: frozenset({READING, APPENDING, VERIFYING, SETTLING}),
    APPENDING: frozenset({READING, VERIFYING, SETTLING}),
    VERIFYING: frozenset({READING, VERIFYING, SETTLING}),
    SETTLING: frozenset({SETTLING, READING, VERIFYING}),
    FINISHED: frozenset(),
}

STEPS = (
    StrategyStep(
        READING,
        "Read and prepare",
        "Read both ends again; compare what is still missing with what was approved.",
        frozenset({Fact.ARMED, Fact.FIRED}),
    ),
    StrategyStep(
        APPENDING,
        "Append",
        "A part at a time: lock the table against every writer, add what is missing, read it back, commit.",
        frozenset({Fact.FIRED}),
    ),
    StrategyStep(
        VERIFYING, "Verify", "Audit the sink again. Only this decides the outcome.", frozenset({Fact.VERIFIED})
    ),
)

OBEYS_BEFORE = {
    REQUESTED: "the reading",
    READING: "appending",
    APPENDING: "the verification; a part that has begun is not taken back",
    SETTLING: "another reading",
}

DRILLS = {
    DrillName.CHECKPOINT_CRASH: "What a dead relay delivered and did not check off is not added again by a recovery.",
    DrillName.IN_FLIGHT_STRAGGLER: "A send that arrives while the table is locked waits; what comes after it is refused where "
    "a unique constraint stands on the identity, and comes in twice where none does.",
    DrillName.SPLIT_BRAIN_WORKER: "Of two recoverers the second waits for the first one's lock, and finds what that added.",
    DrillName.EXPIRED_DEDUPLICATION: "A recovery decides by the table's rows, not by a window; other content at a coordinate "
    "is told, and not replaced.",
    DrillName.CRASH_INSIDE_RECOVERY: "A recoverer that dies before or after its commit leaves what a successor finds: nothing "
    "doubled, nothing lost.",
}

ATTESTED = Strategy(
    name="attested",
    archetype=Archetype.QUERYABLE,
    does="A recovery adds what is missing under a lock on the table, once people attested what no fence can show",
    promise="exactly once at f{given}, once verified; never without what was attested",
    applying="Applying reads both ends again, and adds exactly what is still missing of this plan, under a lock that keeps "
    "every writer out of the table. It stops no relay: that it is stopped is attested, where the table asks for it.",
    pausing="Holds before the next step; a part that has begun is not taken back. Nothing is locked meanwhile, and what is "
    "attested has to stay true.",
    stopping="Ends it at the next safe point. What was added stays.",
    settling="A worker reads both ends again, waits for a part that may still be landing, and goes on from what it finds. "
    "What is remembered here decides nothing.",
    relay_next="Before the relay starts, move its cursor, or its sent flags, up to the frontier: this sink tells it nothing, "
    "and only a unique constraint would refuse what it sends again.",
    evidence_lasts="As long as nobody changes or deletes the table's rows: nothing keeps them but its owner's word.",
    steps=STEPS,
    moves=MOVES,
    obeys_before=OBEYS_BEFORE,
    next_part="the next part",
    conditions=("P1", "P2", "P3", "P4", "C1", "record", "content", "order", "floor", "horizon"),
    attestations=(RELAY_DRAINED, ONLY_RECOVERER),
    drills=DRILLS,
    outcomes=frozenset(Outcome) - {Outcome.EXACTLY_ONCE, Outcome.FENCED, Outcome.COMPLETE_HAND_OVER_UNVERIFIED},
)


def attestations_asked(capability: Capability) -> tuple[str, ...]:
    """What must be attested before anything is appended to a sink of this capability.

    >>> from dataclasses import replace
    >>> table = Capability(Archetype.QUERYABLE, True, True, False, True, True, may_append=True)
    >>> attestations_asked(table), attestations_asked(replace(table, absorbs_late_sends=True))
    (('relay-drained', 'only-recoverer'), ('only-recoverer',))
    """
    return (ONLY_RECOVERER,) if capability.absorbs_late_sends else (RELAY_DRAINED, ONLY_RECOVERER)
