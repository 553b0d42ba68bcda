"""The recoverers: worker processes that take the recovery, one step at a time.

A worker that dies is one that takes no further step: another may take the recovery over at any time, whether or not it
lives, so a death needs no step of its own. A phase names the step that comes next. Where a worker writes in the control database, the write is guarded by its still
holding the recovery; what it asks of the sink is not: a worker that was taken over goes on there until its next write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from recovery_api.domain.claims import ClaimState, Settlement, Word, settlement
from recovery_api.domain.hand_over import is_handed_over
from recovery_api.domain.next_steps import Next, claim_next, end_next, fire_next, settle_next
from recovery_api.domain.outcomes import Outcome, Verified, outcome_conclude
from recovery_api.domain.plans import approval_refusal
from tests.stateful.model import sink as at_sink
from tests.stateful.model.memory import memory_compare
from tests.stateful.model.rules import Identity, Rule, World
from tests.stateful.model.state import Broken, Claim, Fire, Row, State, Worker, events_of, up_to

Step = tuple[str, State]
ARMS = 2
ENDS = (Next.FENCED, Next.STOPPED, Next.REFUSED)


def recoverer_steps(world: World, state: State) -> Iterator[Step]:
    for index, worker in enumerate(state.workers):
        if index and state.workers[index - 1] == worker:
            continue  # two workers in one state are one case
        rest = state._replace(workers=state.workers[:index] + state.workers[index + 1 :])
        yield from PHASES[worker.phase](world, rest, worker)


def _taken(world: World, state: State, worker: Worker) -> Iterator[Step]:
    """From the state the row is in; a recovery half done is settled with the sink first."""
    row = _held(state, worker)
    if row is None:
        return
    if row.state in ("verifying", "handing over"):
        yield from PHASES[row.state](world, state, worker)
    elif row.state == "requested" or row.generation == 0:
        yield from _decide(world, state, worker)
    elif not world.has(Rule.SINK_SETTLES):
        yield "a worker believes the control database: nothing has landed", _to(state, worker, "deciding")
    elif not state.is_locked or not world.has(Rule.LOCKED_SETTLE):
        held = state.sink.claim(row.generation)
        settled = settlement(held or Claim(row.generation, 0, ClaimState.NONE.value), row.generation)
        is_passed_by_ours = held is not None and held.superseded_by in row.ours
        then = settle_next(settled, is_passed_by_ours)
        if settled is Settlement.OPEN and not world.has(Rule.NEWER_CLAIM):
            return
        yield from _go_on(
            world,
            state,
            worker._replace(generation=row.generation),
            then,
            f"a worker settles generation {row.generation}: {settled}",
        )


def _decide(world: World, state: State, worker: Worker) -> Iterator[Step]:
    """A safe point, then a claim of its own."""
    row = _held(state, worker)
    if row is None:
        return
    if row.is_stop_wanted:
        yield "a worker sees that a stop is wanted", _to(state, worker, "stopping", generation=row.generation)
        return
    yield from (_checked if world.may_restore_sink else _ask)(world, state, worker)


def _checked(world: World, state: State, worker: Worker) -> Iterator[Step]:
    """Where a sink may be restored: compared with what it said before, in a step of its own."""
    state, is_restored = memory_compare(world, state)
    if is_restored:
        row = _held(state, worker)
        if row is not None:
            yield from _give_up(world, state, worker, row, Next.REFUSED)
    else:
        yield "a worker compares the sink with what it said before", _to(state, worker, "asking")


def _ask(world: World, state: State, worker: Worker) -> Iterator[Step]:
    """Written down before the sink is asked: what comes of it is found there by the recoverer's name."""
    row = _held(state, worker)
    if row is None:
        return
    state = _found(world, state)
    state = _row(state, state.control.row._replace(state="claiming", generation=0))  # type: ignore[union-attr]
    phase = "claiming" if world.has(Rule.CLAIM_BEFORE_READ) else "reading"
    yield "a worker writes down that it claims", _to(state, worker, phase, generation=0)


def _claiming(world: World, state: State, worker: Worker) -> Iterator[Step]:
    """Number, fence and claim are one step. Whether a newer claim was made since is no matter of safety, so not tested."""
    if state.is_locked:
        return
    frontier = state.control.row.frontier if state.control.row else 0
    sink = at_sink.allocate(state.sink)
    number = sink.counter
    sink, word = at_sink.claim(sink, number, frontier)
    label = f"a worker claims at generation {number}: {word}"
    if claim_next(word) is Next.READ:
        yield label, _to(state._replace(sink=sink), worker, "claimed", generation=number)
    else:
        yield from _go_on(world, state, worker, Next.FENCED, label)


def _claimed(world: World, state: State, worker: Worker) -> Iterator[Step]:
    """Generation and claim are written down in one guarded write; whoever may not write releases what it claimed."""
    row = _held(state, worker)
    if row is None or row.generation or worker.generation in row.ours:
        if state.is_locked:
            return
        sink, word = at_sink.release(state.sink, worker.generation)
        state = state._replace(sink=sink) if world.has(Rule.FOUND_BY_NAME) else state
        if row is None or row.generation:
            yield f"{_name(worker)} was taken over: its claim is {word}, and it stops", state
        else:
            yield from _give_up(world, state, worker, row, Next.REFUSED)
        return
    state = _row(state, row._replace(state="arming", generation=worker.generation, ours=(*row.ours, worker.generation)))
    if row.is_stop_wanted:
        yield f"{_name(worker)} sees that a stop is wanted", _to(state, worker, "stopping")
        return
    yield (
        f"{_name(worker)} writes its claim down",
        _to(state, worker, "reading" if world.has(Rule.CLAIM_BEFORE_READ) else "arming"),
    )


def _found(world: World, state: State) -> State:
    """The claims at the sink that bear this recovery's name and that nobody wrote down: written down, and given up."""
    row = state.control.row
    if row is None or not world.has(Rule.FOUND_BY_NAME):
        return state
    sink = state.sink
    lost = [
        one.generation for one in sink.claims if one.generation not in row.ours and one.generation not in state.ended
    ]
    for number in lost:
        sink, _ = at_sink.release(sink, number)
    return _row(state._replace(sink=sink), row._replace(ours=(*row.ours, *lost))) if lost else state


def _reading(world: World, state: State, worker: Worker) -> Iterator[Step]:
    """One coordinate at a time; each part must show the fence at the claim's generation."""
    row, name = state.control.row, _name(worker)
    if row is None:
        yield f"{name} was taken over, and stops", state
        return
    if world.has(Rule.CLAIM_BEFORE_READ) and state.sink.fence != worker.generation:
        yield f"{name} reads, and the fence has passed", _to(state, worker, "refusing")
        return
    event, bit = worker.read + 1, 1 << worker.read
    missing = worker.missing | (bit & state.committed & ~state.sink.accepted)
    label = f"{name} reads {event}: {'missing' if missing & bit else 'accepted'}"
    if event < row.frontier:
        yield label, _to(state, worker, "reading", read=event, missing=missing)
        return
    if refusal := _refusal(world, state, row, missing):
        yield f"{label}; {refusal}", _to(state, worker, "refusing")
        return
    phase = "arming" if world.has(Rule.CLAIM_BEFORE_READ) else "claiming"
    yield label, _to(state, worker, phase, missing=missing)


def _refusal(world: World, state: State, row: Row, missing: int) -> str | None:
    """Why the batch must not be armed: it is not what was approved, or the relay would repeat what lies above f."""
    if world.has(Rule.BOUND_APPROVAL):
        unexplained = row.approved & ~missing & ~state.sink.accepted
        if refusal := approval_refusal((missing & ~row.approved).bit_count(), unexplained.bit_count()):
            return refusal
    is_covered = world.identity is Identity.KEY or state.sink.accepted.bit_length() <= row.frontier
    if not is_covered and world.has(Rule.FRONTIER_COVERS):
        return "something is accepted above f, and nothing would absorb its repetition"
    return None


def _arming(world: World, state: State, worker: Worker) -> Iterator[Step]:
    sink, word = at_sink.arm(state.sink, worker.generation, worker.missing)
    batch = " and ".join(map(str, events_of(worker.missing))) or "nothing"
    label = f"{_name(worker)} arms {batch}: {word}"
    if word == Word.ARMED and not world.has_late_stagers:
        sink = at_sink.stage(sink, worker.generation)
        label += ", and stages it"
    state = state._replace(sink=sink)
    yield label, _to(state, worker, "staging") if word == Word.ARMED else _to(state, worker, "answered", word=word)


def _staging(world: World, state: State, worker: Worker) -> Iterator[Step]:
    """Staged rows are all there or not: which of them are missing makes no difference to the fire."""
    held = state.sink.claim(worker.generation)
    name = _name(worker)
    if held is None:
        yield f"{name} finds no claim any more", _to(state, worker, "refusing")
        return
    if not held.staged >> held.arm & 1:
        staged = at_sink.stage(state.sink, worker.generation)
        yield f"{name} has staged everything", _to(state._replace(sink=staged), worker, "staging")
    row = _held(state, worker)
    if row is None or row.generation != worker.generation:
        yield f"{name} was taken over, and stops", state
        return
    if row.is_stop_wanted:
        yield f"{name} sees that a stop is wanted", _to(state, worker, "stopping")
        return
    state = _row(state, row._replace(state="firing"))
    fires = (*state.fires, Fire(worker.generation, held.arm))
    yield f"{name} sends its fire", _to(state._replace(fires=fires), worker, "awaiting")


def _awaiting(world: World, state: State, worker: Worker) -> Iterator[Step]:
    """A late stager may still add rows, whatever becomes of the worker."""
    held = state.sink.claim(worker.generation)
    if world.has_late_stagers and held is not None and held.state == "open" and not held.staged >> held.arm & 1:
        staged = at_sink.stage(state.sink, worker.generation)
        yield (
            f"a late stager of generation {worker.generation} is done",
            _to(state._replace(sink=staged), worker, "awaiting"),
        )


def _answered(world: World, state: State, worker: Worker) -> Iterator[Step]:
    if state.is_locked:
        return
    held = state.sink.claim(worker.generation)
    then = fire_next(worker.word, held.state if held else "none", held is None or held.arm >= ARMS)
    label = f"{_name(worker)} hears {worker.word!r}"
    if then is Next.REFUSED:
        yield label, _to(state, worker, "refusing")
    else:
        yield from _go_on(world, state, worker, then, label)


def _verifying(world: World, state: State, worker: Worker) -> Iterator[Step]:
    row = _held(state, worker)
    if row is None:
        return
    lost = (up_to(row.frontier) & state.committed & ~state.sink.accepted).bit_count()
    state, is_restored = memory_compare(world, state)
    if is_restored:
        yield from _finish(world, state, worker, Outcome.UNKNOWN, "a worker verifies, and finds the sink restored")
        return
    state = _row(state, row._replace(state="handing over", verified=lost))
    yield (
        f"a worker verifies at {row.frontier}: {lost} lost",
        _to(state, worker, "handing over", generation=row.generation),
    )


def _handing_over(world: World, state: State, worker: Worker) -> Iterator[Step]:
    row = _held(state, worker)
    if row is None:
        return
    if not world.has(Rule.START_IN_FIRE):
        state = state._replace(sink=state.sink._replace(start=(row.frontier, state.sink.fence)))
    state = _found(world, state)
    start = state.sink.start[0] if state.sink.start else None
    outcome = outcome_conclude(
        None if row.verified is None else Verified(True, row.verified, 0, 0, 0, is_handed_over(start, row.frontier))
    )
    yield from _finish(world, state, worker, outcome, "a worker checks the hand-over")


def _stopping(world: World, state: State, worker: Worker) -> Iterator[Step]:
    """Every claim of the recovery is given up; one that had fired is no stop."""
    row = _held(state, worker)
    if row is None or (state.is_locked and world.has(Rule.LOCKED_SETTLE)):
        return
    if not world.has(Rule.SINK_SETTLES):
        yield from _finish(world, state, worker, Outcome.STOPPED, "a worker believes the control database and stops")
        return
    yield from _give_up(world, state, worker._replace(generation=row.generation), row, Next.STOPPED)


def _refusing(world: World, state: State, worker: Worker) -> Iterator[Step]:
    """It cannot go on: the claim is given up, unless it has fired."""
    if state.is_locked:
        return
    row = _held(state, worker)
    if row is None:
        yield f"{_name(worker)} was taken over, and stops", state
        return
    yield from _give_up(world, state, worker, row, Next.REFUSED)


def _give_up(world: World, state: State, worker: Worker, row: Row, end: Next) -> Iterator[Step]:
    """Every claim of the recovery is released."""
    said = []
    for number in row.ours if world.has(Rule.ALL_SETTLED) else (row.generation,):
        if state.is_locked:  # only where nobody waits for the lock: a fire that runs is not seen
            continue
        sink, word = at_sink.release(state.sink, number)
        state = state._replace(sink=sink)
        said.append(f"{number} {word}")
    yield from _go_on(world, state, worker, end, f"a worker gives its claims up: {', '.join(said) or 'none'}")


def _go_on(world: World, state: State, worker: Worker, then: Next, label: str) -> Iterator[Step]:
    """What follows from the sink's word, if the recovery is still this worker's."""
    row = _held(state, worker)
    if row is None:
        yield f"{label}; it was taken over, and stops", state
        return
    if then in ENDS or then is Next.LANDED:
        state = _found(world, state)
        row = state.control.row
        assert row is not None
    if then in ENDS and world.has(Rule.ALL_SETTLED):
        claims = [state.sink.claim(number) for number in row.ours]
        then = end_next(then, any(held and held.state == "fired" and held.landed & ~row.landed for held in claims))
    if then is Next.LANDED or world.has(Rule.ALL_SETTLED):
        for number in row.ours if world.has(Rule.ALL_SETTLED) else (worker.generation,):
            state = _recorded(state, state.sink.claim(number))
        row = state.control.row
        assert row is not None
    match then:
        case Next.CLAIM:
            yield label, _to(_row(state, row._replace(state="settling")), worker, "deciding", generation=0)
        case Next.LANDED:
            yield label, _to(_row(state, row._replace(state="verifying")), worker, "verifying")
        case Next.ARM_AGAIN:
            yield label, _to(_row(state, row._replace(state="arming")), worker, "arming")
        case Next.FENCED:
            yield from _finish(world, state, worker, Outcome.FENCED, label)
        case Next.STOPPED:
            yield from _finish(world, state, worker, Outcome.STOPPED, label)
        case _:
            yield from _finish(world, state, worker, Outcome.REFUSED, label)


def _finish(world: World, state: State, worker: Worker, outcome: Outcome, label: str) -> Iterator[Step]:
    """The recovery ends with `outcome`. Raises: Broken where that says more, or less, than is true."""
    row = _held(state, worker)
    if row is None:
        return
    lost = up_to(row.frontier) & state.committed & ~state.sink.accepted
    if outcome is Outcome.EXACTLY_ONCE and lost and state.sink.incarnation == 0:
        raise Broken(f"{label}: it ends exactly once at {row.frontier}, and {lost.bit_count()} are lost")
    truth = row.landed
    for number in row.ours:
        truth |= held.landed if (held := state.sink.claim(number)) else 0
    if outcome is not Outcome.UNKNOWN and row.landed != truth:
        raise Broken(f"{label}: it ends {outcome} with {row.landed.bit_count()} landed, and {truth.bit_count()} have")
    is_settled = world.has(Rule.LOCKED_SETTLE) and world.has(Rule.SINK_SETTLES)  # without them worse follows, and later
    is_settled &= outcome is not Outcome.UNKNOWN and state.sink.incarnation == 0
    if is_settled and at_sink.has_open_claim(state.sink):
        raise Broken(f"{label}: it ends {outcome}, and a claim of it is open for nobody")
    others = tuple(held._replace(is_holder=False) for held in state.workers)
    control = state.control._replace(row=None, approved=None)
    ended = tuple(sorted({*state.ended, *row.ours}))
    yield f"{label}; the recovery ends {outcome}", state._replace(control=control, workers=others, ended=ended)


def _recorded(state: State, held: Claim | None) -> State:
    """The control database with what the sink says landed under a claim of the recovery."""
    row = state.control.row
    if held is None or row is None or not held.landed & ~row.landed or held.generation not in row.ours:
        return state
    return _row(state, row._replace(landed=row.landed | held.landed))


def _held(state: State, worker: Worker) -> Row | None:
    """The recovery, where this worker may still write in it."""
    return state.control.row if worker.is_holder else None


def _row(state: State, row: Row) -> State:
    return state._replace(control=state.control._replace(row=row))


def _to(state: State, worker: Worker, phase: str, **changes: Any) -> State:
    return state._replace(workers=(*state.workers, worker._replace(phase=phase, **changes)))


def _name(worker: Worker) -> str:
    return f"the worker of generation {worker.generation}" if worker.generation else "a worker"


PHASES: dict[str, Callable[[World, State, Worker], Iterator[Step]]] = {
    "taken": _taken,
    "deciding": _decide,
    "asking": _ask,
    "claiming": _claiming,
    "claimed": _claimed,
    "reading": _reading,
    "arming": _arming,
    "staging": _staging,
    "awaiting": _awaiting,
    "answered": _answered,
    "verifying": _verifying,
    "handing over": _handing_over,
    "stopping": _stopping,
    "refusing": _refusing,
}
