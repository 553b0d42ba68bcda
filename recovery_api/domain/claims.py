"""The life of a claim: what a fenced sink answers to each step, and what a recovery's claim became.

The law: every answer follows from what the sink holds now and the generation that asks, tested in one fixed order; the
first test that holds answers (THEORY section 4; the conformance cases). A sink kind without its own language for
conditions, like the in-memory one, asks these functions; the PostgreSQL kit says the same in SQL, and one set of cases
runs against both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class ClaimState(StrEnum):
    """What a claim is, at the sink."""

    OPEN = "open"
    """Granted and neither fired nor passed: its generation may arm and fire. A crash leaves it so."""
    FIRED = "fired"
    """Its batch landed and its generation is used up. Nothing moves it on."""
    SUPERSEDED = "superseded"
    """A newer generation passed the fence: it can never fire. Nothing moves it on."""
    RELEASED = "released"
    """A person gave it up: it can never fire; the fence stays. Nothing moves it on."""
    NONE = "none"
    """The sink has no such claim: it was never granted, or not yet."""


class Word(StrEnum):
    """What a sink answers to a step. The conformance cases' words, and the product's own beside them."""

    STARTED = "started"
    REFUSED = "refused"
    GRANTED = "granted"
    ACCEPTED = "accepted"
    ABSORBED = "absorbed"
    ALTERED = "altered"
    """Absorbed, and what was accepted at that coordinate has other content."""
    PAUSED = "paused"
    FENCED = "fenced"
    UNALLOCATED = "unallocated"
    """The sink never allocated this generation, or not to this login."""
    ALLOCATED = "allocated"
    WAIT = "wait"
    """A relay asked for a generation while a claim is open."""
    ARMED = "armed"
    NO_CLAIM = "no claim"
    NOT_ARMED = "not armed"
    LANDED = "landed"
    ALREADY_FIRED = "already fired"
    MISMATCH = "mismatch"
    """What is staged is not what was armed: nothing landed."""
    TOO_LARGE = "too large"
    """More entries than one fire lands: split by frontier."""
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class Standing:
    """What the sink holds now, as far as a step of one generation needs it."""

    fence: int
    is_allocated: bool
    claim_state: ClaimState = ClaimState.NONE
    arm: int | None = None
    """The arm that counts under the claim; None: nothing is armed."""


def begin_answer(generation: int, standing: Standing) -> Word:
    """`started` raises the fence to the generation."""
    if generation <= standing.fence:
        return Word.REFUSED
    return Word.STARTED if standing.is_allocated else Word.UNALLOCATED


def admission_answer(generation: int, standing: Standing) -> Word | None:
    """The word that refuses a delivery, or None: admitted, after the fence rose to the generation.

    >>> admission_answer(1, Standing(fence=2, is_allocated=True))
    <Word.FENCED: 'fenced'>
    """
    if generation < standing.fence:
        return Word.FENCED
    if not standing.is_allocated:
        return Word.UNALLOCATED
    if generation == standing.fence and standing.claim_state is ClaimState.OPEN:
        return Word.PAUSED
    return None


def identity_answer(accepted_digest: bytes | None, offered_digest: bytes) -> Word:
    """What becomes of an admitted event whose coordinate the record holds with `accepted_digest` (None: not at all)."""
    if accepted_digest is None:
        return Word.ACCEPTED
    return Word.ABSORBED if accepted_digest == offered_digest else Word.ALTERED


def claim_answer(generation: int, is_recoverer: bool, standing: Standing) -> Word:
    """`granted` raises the fence to the generation and disarms: what was read before counts no more."""
    if generation < standing.fence:
        return Word.REFUSED
    if not standing.is_allocated:
        return Word.UNALLOCATED
    is_again = generation == standing.fence and standing.claim_state is ClaimState.OPEN
    return Word.GRANTED if is_recoverer and (is_again or generation > standing.fence) else Word.REFUSED


def arm_answer(generation: int, entry_count: int, batch_limit: int, standing: Standing) -> Word:
    """`armed` takes the place of an earlier arm."""
    if generation < standing.fence:
        return Word.FENCED
    if standing.claim_state is not ClaimState.OPEN:
        return Word.NO_CLAIM
    if not standing.is_allocated:
        return Word.UNALLOCATED
    return Word.ARMED if entry_count <= batch_limit else Word.TOO_LARGE


def fire_answer(generation: int, arm: int, is_staged_as_armed: bool, standing: Standing) -> Word:
    """`landed`: all of the batch that the record does not hold, in coordinate order, or nothing at all."""
    if generation < standing.fence:
        return Word.FENCED
    if standing.claim_state is ClaimState.FIRED:
        return Word.ALREADY_FIRED
    if standing.claim_state is not ClaimState.OPEN or standing.arm != arm or not standing.is_allocated:
        return Word.NOT_ARMED
    return Word.LANDED if is_staged_as_armed else Word.MISMATCH


class SettlementOutcome(StrEnum):
    """What a recovery's claim became, as far as the sink's own word decides it."""

    FIRED = "fired"
    """The batch landed, with the figures the sink recorded."""
    SUPERSEDED = "superseded"
    """A newer generation passed it: nothing of it landed, nothing can."""
    RELEASED = "released"
    """A person gave it up: nothing of it landed, nothing can."""
    OPEN = "open"
    """Nothing has landed, and its holder may still fire: claim again as the holder, else supersede with a newer one."""
    UNCLAIMED = "unclaimed"
    """The sink has no such claim. A request still waiting there may yet be granted: supersede it with a newer one."""
    UNKNOWN = "unknown"
    """The sink was not reached, or the reading was not one that settles."""


@dataclass(frozen=True, slots=True)
class Settlement:
    outcome: SettlementOutcome
    says: str
    landed_count: int | None = None
    absorbed_count: int | None = None
    superseded_by: int | None = None
    start: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        """Whether nothing can still change it at the sink."""
        return self.outcome in (SettlementOutcome.FIRED, SettlementOutcome.SUPERSEDED, SettlementOutcome.RELEASED)


class ClaimAsRead(Protocol):
    """A claim as a connector reads it (workers.connectors.base.ClaimReading)."""

    @property
    def generation(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def landed_count(self) -> int | None: ...
    @property
    def absorbed_count(self) -> int | None: ...
    @property
    def start(self) -> Mapping[str, Any] | None: ...
    @property
    def superseded_by(self) -> int | None: ...


def settlement(claim: ClaimAsRead | None, generation: int, is_locked: bool) -> Settlement:
    """What the claim of `generation` became. `claim` None: the sink was not reached.

    `is_locked`: read by locking the claim, which waits for a fire still running. A plain reading settles only what can
    no longer change: fired, superseded, released.
    """
    if claim is None or claim.generation != generation:
        return Settlement(SettlementOutcome.UNKNOWN, "the sink did not say what became of the claim")
    match ClaimState(claim.state):
        case ClaimState.FIRED:
            return Settlement(
                SettlementOutcome.FIRED,
                f"generation {generation} fired: {claim.landed_count} landed, {claim.absorbed_count} absorbed",
                landed_count=claim.landed_count,
                absorbed_count=claim.absorbed_count,
                start=claim.start or {},
            )
        case ClaimState.SUPERSEDED:
            return Settlement(
                SettlementOutcome.SUPERSEDED,
                f"generation {claim.superseded_by} passed the claim of {generation}: nothing of it landed",
                superseded_by=claim.superseded_by,
            )
        case ClaimState.RELEASED:
            return Settlement(SettlementOutcome.RELEASED, f"the claim of {generation} was given up: nothing landed")
        case state if not is_locked:
            return Settlement(SettlementOutcome.UNKNOWN, f"read without its lock, {state} settles nothing")
        case ClaimState.OPEN:
            return Settlement(SettlementOutcome.OPEN, f"the claim of {generation} is open and has not fired")
        case _:
            return Settlement(SettlementOutcome.UNCLAIMED, f"the sink holds no claim of {generation}")


@dataclass(frozen=True, slots=True)
class SinkMemory:
    """What the sink said last, or what the control database remembers of it. None: not known."""

    counter: int
    fence: int
    identity: str
    last_entry: int | None = None


def restore_signs(remembered: SinkMemory, found: SinkMemory) -> list[str]:
    """A sentence for each sign that the sink was restored or replaced since; empty: none (THEORY section 4, step 9).

    >>> restore_signs(SinkMemory(9, 7, "a:1"), SinkMemory(8, 7, "a:1"))
    ['the generation counter went back from 9 to 8']
    """
    signs = []
    if found.identity != remembered.identity:
        signs.append(f"the sink was {remembered.identity} and is {found.identity} (system:database:timeline:kit)")
    if found.counter < remembered.counter:
        signs.append(f"the generation counter went back from {remembered.counter} to {found.counter}")
    if found.fence < remembered.fence:
        signs.append(f"the fence went back from {remembered.fence} to {found.fence}")
    if remembered.last_entry is not None and (found.last_entry is None or found.last_entry < remembered.last_entry):
        signs.append(f"the record's last entry went back from {remembered.last_entry} to {found.last_entry}")
    return signs
