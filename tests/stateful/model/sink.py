"""The sink's steps: recovery_api.domain.claims answers, this changes what the sink holds accordingly."""

from __future__ import annotations

from functools import cache

from recovery_api.domain import claims
from recovery_api.domain.claims import ClaimState, Standing, Word
from recovery_api.domain.hand_over import start_position
from tests.stateful.model.rules import Identity, Rule, World
from tests.stateful.model.state import Claim, Sink, events_of

BATCH_LIMIT = 100


@cache
def _standing(fence: int, is_allocated: bool, state: str, arm: int | None) -> Standing:
    return Standing(fence, is_allocated, ClaimState(state), arm)


@cache
def _admission(generation: int, standing: Standing) -> Word | None:
    return claims.admission_answer(generation, standing)


@cache
def _claim(generation: int, standing: Standing) -> Word:
    return claims.claim_answer(generation, True, standing)


@cache
def _arm(generation: int, entry_count: int, standing: Standing) -> Word:
    return claims.arm_answer(generation, entry_count, BATCH_LIMIT, standing)


@cache
def _fire(generation: int, arm: int, is_as_armed: bool, standing: Standing) -> Word:
    return claims.fire_answer(generation, arm, is_as_armed, standing)


@cache
def _passed(state: str) -> str:
    return claims.state_when_passed(ClaimState(state)).value


@cache
def _released(state: str) -> str:
    return claims.state_when_released(ClaimState(state)).value


def standing(sink: Sink, generation: int) -> Standing:
    held = sink.claim(generation)
    is_allocated = bool(sink.allocated >> generation & 1)
    if held is None:
        return _standing(sink.fence, is_allocated, "none", None)
    return _standing(sink.fence, is_allocated, held.state, held.arm if held.armed is not None else None)


def allocate(sink: Sink) -> Sink:
    """The new generation is the counter of what comes back."""
    number = sink.counter + 1
    allocated = sink.allocated if sink.allocated < 0 else sink.allocated | 1 << number
    return sink._replace(counter=number, allocated=allocated)


def has_open_claim(sink: Sink) -> bool:
    return any(held.state == "open" for held in sink.claims)


def fence_raise(sink: Sink, generation: int) -> Sink:
    """The fence at `generation`, and every open claim below it passed."""
    if generation <= sink.fence:
        return sink
    passed = tuple(
        held._replace(state=_passed(held.state), superseded_by=generation)
        if held.state == "open" and held.generation < generation
        else held
        for held in sink.claims
    )
    return sink._replace(fence=generation, claims=passed)


def relay_start(world: World, sink: Sink, has_waited: bool) -> Sink | None:
    """The sink after it gave a relay its generation; None: the relay waits."""
    if claims.allocation_answer(True, has_open_claim(sink) and not has_waited) is Word.WAIT:
        return None
    has_recovered = sink.start is not None and sink.start[1] == sink.fence
    if not world.has(Rule.START_IN_FIRE):  # then the claim itself is all that a relay can be asked to wait for
        has_recovered |= (held := sink.claim(sink.fence)) is not None and held.state == "fired"
    needs_recovery = world.identity is not Identity.KEY and world.has(Rule.RECOVERY_PER_RESTART)
    if needs_recovery and sink.fence and not has_recovered:
        return None
    sink = allocate(sink)
    return fence_raise(sink, sink.counter)


def deliver(world: World, sink: Sink, generation: int, event: int) -> tuple[Sink, str]:
    """One send that arrives, and the sink's word for it. `accepted again`: the record holds it twice."""
    word = _admission(generation, standing(sink, generation))
    if word is Word.FENCED and not world.has(Rule.FENCE):
        word = None
    if word is not None:
        return sink, word
    return accept(world, fence_raise(sink, generation), event)


def accept(world: World, sink: Sink, event: int) -> tuple[Sink, str]:
    bit = 1 << event - 1
    held = b"same" if sink.remembered & bit else None
    if claims.identity_answer(held, b"same") is Word.ABSORBED:
        return sink, Word.ABSORBED
    if sink.accepted & bit:
        return sink, "accepted again"
    remembered = sink.remembered if world.identity is Identity.NONE else sink.remembered | bit
    return sink._replace(accepted=sink.accepted | bit, remembered=remembered), Word.ACCEPTED


def claim(sink: Sink, generation: int, frontier: int) -> tuple[Sink, str]:
    word = _claim(generation, standing(sink, generation))
    if word is not Word.GRANTED:
        return sink, word
    sink = fence_raise(sink, generation)
    if sink.claim(generation) is None:
        return sink._replace(claims=(*sink.claims, Claim(generation, frontier))), word
    return sink.claim_keep(sink.claim(generation)._replace(armed=None)), word  # type: ignore[union-attr]


def arm(sink: Sink, generation: int, batch: int) -> tuple[Sink, str]:
    word = _arm(generation, batch.bit_count(), standing(sink, generation))
    held = sink.claim(generation)
    if word is not Word.ARMED or held is None:
        return sink, word
    sink = sink.claim_keep(held._replace(arm=held.arm + 1, armed=batch))
    return sink if batch else stage(sink, generation), word  # nothing to stage is all staged


def stage(sink: Sink, generation: int) -> Sink:
    """All rows of the current arm are there."""
    held = sink.claim(generation)
    return sink if held is None else sink.claim_keep(held._replace(staged=held.staged | 1 << held.arm))


def fire_answer(world: World, sink: Sink, generation: int, arm: int) -> str:
    held = sink.claim(generation)
    is_as_armed = held is not None and (not world.has(Rule.RECOMPUTED_DIGEST) or bool(held.staged >> arm & 1))
    return _fire(generation, arm, is_as_armed, standing(sink, generation))


def fire_land(world: World, sink: Sink, generation: int) -> tuple[Sink, str, int]:
    """The armed batch lands and the start is stored, in one step. Gives the sink, its word, and what landed.

    Where entries land one by one, the lowest that is missing lands, and the last one ends the claim.
    """
    held = sink.claim(generation)
    assert held is not None and held.armed is not None
    landed = 0
    is_staged = world.has(Rule.RECOMPUTED_DIGEST) or bool(held.staged >> held.arm & 1)
    batch = held.armed if is_staged else held.armed & (held.armed - 1)  # without its lowest row
    for event in events_of(batch & ~held.landed):
        sink, word = accept(world, sink, event)
        if word == "accepted again":
            return sink, word, landed
        landed |= 1 << event - 1
        if world.lands_one_by_one:
            break
    held = held._replace(landed=held.landed | landed)
    if world.lands_one_by_one and batch & ~held.landed:
        return sink.claim_keep(held), "landing", landed
    if world.has(Rule.START_IN_FIRE):
        sink = sink._replace(start=(start_position(held.frontier, None), generation))
    return sink.claim_keep(held._replace(state="fired")), Word.LANDED, landed


def release(sink: Sink, generation: int) -> tuple[Sink, str]:
    held = sink.claim(generation)
    if held is None:
        return sink, Word.NO_CLAIM
    state = _released(held.state)
    return sink.claim_keep(held._replace(state=state)), state
