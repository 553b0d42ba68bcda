"""The life of a claim: what a fenced sink answers to each step, and what a recovery's claim became.

The law: every answer follows from what the sink holds now and the generation that asks, tested in one fixed order; the
first test that holds answers (THEORY section 4; the conformance cases). A sink kind without its own language for
conditions, like the in-memory one, asks these functions; the PostgreSQL kit says the same in SQL, and one set of cases
runs against both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


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


def allocation_answer(is_relay: bool, has_open_claim: bool) -> Word:
    """`wait`: a relay that starts now would void the open claim."""
    return Word.WAIT if is_relay and has_open_claim else Word.ALLOCATED


def state_when_passed(state: ClaimState) -> ClaimState:
    """What a claim becomes when a newer generation passes the fence."""
    return ClaimState.SUPERSEDED if state is ClaimState.OPEN else state


def state_when_released(state: ClaimState) -> ClaimState:
    """What a claim is after a release, which is also the answer: only an open one can still be given up."""
    return ClaimState.RELEASED if state is ClaimState.OPEN else state


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


class Settlement(StrEnum):
    """What a recovery's claim became, as far as the sink's own word decides it. The figures are in the reading."""

    FIRED = "fired"
    """The batch landed, with the figures the sink recorded. Final."""
    SUPERSEDED = "superseded"
    """A newer generation passed it: nothing of it landed, nothing can. Final."""
    RELEASED = "released"
    """A person gave it up: nothing of it landed, nothing can. Final."""
    OPEN = "open"
    """Nothing has landed, and its holder may still fire: a successor supersedes it with a newer claim."""
    UNCLAIMED = "unclaimed"
    """The sink has no such claim. A request still waiting there may yet be granted: a newer claim voids that too."""
    UNKNOWN = "unknown"
    """The sink was not reached, or the reading was not one that settles."""

    @property
    def is_final(self) -> bool:
        """Whether nothing can still change it at the sink."""
        return self in (Settlement.FIRED, Settlement.SUPERSEDED, Settlement.RELEASED)


class ClaimAsRead(Protocol):
    """A claim as a connector reads it (workers.connectors.protocols.fence.ClaimReading)."""

    @property
    def generation(self) -> int: ...
    @property
    def state(self) -> str: ...


def settlement(claim: ClaimAsRead | None, generation: int | None = None, is_locked: bool = True) -> Settlement:
    """What the claim became. `claim` None: the sink was not reached; `generation`: whose claim was asked for.

    `is_locked`: read by locking the claim, which waits for a fire still running. A plain reading settles only what can
    no longer change: fired, superseded, released.
    """
    if claim is None or (generation is not None and claim.generation != generation):
        return Settlement.UNKNOWN
    state = ClaimState(claim.state)
    found = Settlement.UNCLAIMED if state is ClaimState.NONE else Settlement(state.value)
    return found if found.is_final or is_locked else Settlement.UNKNOWN


@dataclass(frozen=True, slots=True)
class Apart:
    """A claim that the control database remembers otherwise than the sink says. The sink is right."""

    generation: int
    remembered: str
    said: str

    @property
    def is_contradiction(self) -> bool:
        """Whether a final state is contradicted. A claim remembered open has only moved on since."""
        return self.remembered != ClaimState.OPEN


def claims_apart(remembered: Mapping[int, str], said: Mapping[int, str]) -> list[Apart]:
    """Where memory and sink differ, of the claims that both name; generation -> state. Newest first.

    >>> [(one.generation, one.is_contradiction) for one in claims_apart({5: "fired", 6: "open"}, {5: "open", 6: "fired"})]
    [(6, False), (5, True)]
    """
    return [
        Apart(generation, remembered[generation], said[generation])
        for generation in sorted(remembered.keys() & said.keys(), reverse=True)
        if remembered[generation] != said[generation]
    ]
