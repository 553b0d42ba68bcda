"""The steps of everything but the recoverers: commits, relay, wire, fires at the sink, people, backups.

A step gives a sentence and the moment after it. It raises Broken where it breaks a property.
"""

from __future__ import annotations

from collections.abc import Iterator

from recovery_api.domain.claims import Word
from recovery_api.domain.hand_over import relay_starts_at
from tests.stateful.model import sink as at_sink
from tests.stateful.model.memory import sink_clear
from tests.stateful.model.recoverer import recoverer_steps
from tests.stateful.model.rules import Identity, Rule, World
from tests.stateful.model.state import (
    Broken,
    Control,
    Fire,
    Relay,
    Row,
    Sink,
    State,
    Worker,
    events_of,
    safe_frontier,
    up_to,
)

Steps = Iterator[tuple[str, State]]


def steps(world: World, state: State) -> Steps:
    """Every step that can follow, in every order that is possible."""
    yield from _source(world, state)
    yield from _relay(world, state)
    yield from _wire(world, state)
    yield from _fires(world, state)
    yield from _people(world, state)
    yield from recoverer_steps(world, state)
    if state.left.backups or state.left.restores:
        yield from _backups(world, state)


def _source(world: World, state: State) -> Steps:
    for event in events_of(world.everything & ~state.committed):
        yield f"event {event} commits", state._replace(committed=state.committed | 1 << event - 1)


def _relay(world: World, state: State) -> Steps:
    left = state.left
    if left.relay_starts and not state.is_locked:
        for has_waited in (False, True) if world.wait_passes and at_sink.has_open_claim(state.sink) else (False,):
            sink = at_sink.relay_start(world, state.sink, has_waited)
            if sink is None:
                continue
            start = state.sink.start[0] if state.sink.start is not None else None
            started_from = state.started_from if start is None else start
            position = state.cursor
            if world.has(Rule.HAND_OVER):
                position = relay_starts_at(state.cursor, start, state.started_from)
                if start is not None and (skipped := up_to(position) & state.committed & ~sink.accepted):
                    raise Broken(f"the relay starts after {position}, and the sink holds no {_names(skipped)}")
            label = f"relay starts in generation {sink.counter} after {position}"
            yield (
                label + (", having waited long enough" if has_waited else ""),
                state._replace(
                    sink=sink,
                    relay=Relay(sink.counter, position),
                    cursor=position,
                    started_from=started_from,
                    left=left._replace(relay_starts=left.relay_starts - 1),
                ),
            )
    run = state.relay
    if run is None or (run.generation != state.sink.fence and world.has(Rule.FENCE)):
        return  # fenced: nothing of it enters any more
    above = state.committed & ~up_to(run.position)
    if above:
        event = (above & -above).bit_length()
        yield (
            f"relay sends {event} in generation {run.generation}",
            state._replace(relay=run._replace(position=event), wire=(*state.wire, (run.generation, event))),
        )
    if run.position != state.cursor and not any(send[0] == run.generation for send in state.wire):
        yield f"relay keeps its cursor at {run.position}", state._replace(cursor=run.position)


def _wire(world: World, state: State) -> Steps:
    for index, (generation, event) in enumerate(state.wire):
        if index and state.wire[index - 1] == (generation, event):
            continue
        name = f"the send of {event} in generation {generation}"
        sink, word = at_sink.deliver(world, state.sink, generation, event)
        if word == "accepted again":
            raise Broken(f"{name} is accepted, and the record holds {event} already: a duplicate")
        if word == Word.ACCEPTED:
            if not state.committed >> event - 1 & 1:
                raise Broken(f"{name} is accepted, and {event} is not committed: premature")
            if generation < state.sink.fence:
                raise Broken(f"{name} is accepted, and generation {state.sink.fence} has claimed since")
        wire = state.wire[:index] + state.wire[index + 1 :]
        yield f"{name} arrives: {word}", state._replace(sink=sink, wire=wire)
        if world.has_copies and state.wire.count((generation, event)) < 2:
            yield f"the transport copies {name}", state._replace(wire=(*state.wire, (generation, event)))
    if world.identity is Identity.FORGETS:
        for event in events_of(state.sink.remembered):
            sink = state.sink._replace(remembered=state.sink.remembered & ~(1 << event - 1))
            yield f"the sink forgets that it knows {event}", state._replace(sink=sink)


def _fires(world: World, state: State) -> Steps:
    """A fire goes on at the sink whether or not its worker lives, and may never come to its end.

    While it runs it holds a lock, and whoever would notice waits: begin and landing are one step, unless the lock is
    not heeded.
    """
    for index, fire in enumerate(state.fires):
        others = state.fires[:index] + state.fires[index + 1 :]
        if not fire.is_running:
            word = at_sink.fire_answer(world, state.sink, fire.generation, fire.arm)
            if word != Word.LANDED:
                yield (
                    f"the fire of generation {fire.generation} is answered {word!r}",
                    answered(state._replace(fires=others), fire.generation, word),
                )
                continue
            if not world.has(Rule.LOCKED_SETTLE):
                running = (*others, fire._replace(is_running=True))
                yield f"the fire of generation {fire.generation} begins", state._replace(fires=running)
                continue
        yield _fire_lands(world, state, fire, others)


def _fire_lands(world: World, state: State, fire: Fire, others: tuple[Fire, ...]) -> tuple[str, State]:
    name = f"generation {fire.generation}"
    sink, word, landed = at_sink.fire_land(world, state.sink, fire.generation)
    if word == "accepted again":
        raise Broken(f"the fire of {name} lands what the record holds already: a duplicate")
    if premature := landed & ~state.committed:
        raise Broken(f"the fire of {name} lands {_names(premature)}, not committed: premature")
    if fire.generation < state.sink.fence:
        raise Broken(f"the fire of {name} lands, and generation {state.sink.fence} has claimed since")
    if landed and fire.generation in state.ended:
        raise Broken(f"the fire of {name} lands {_names(landed)}, after its recovery ended with nothing more to land")
    control = state.control
    is_ours = control.row is not None and fire.generation in control.row.ours
    if is_ours and control.approved is not None and (more := landed & ~control.approved[1]):
        raise Broken(f"the fire of {name} lands {_names(more)}, which nobody approved")
    state = state._replace(sink=sink)
    if word == "landing":
        return f"the fire of {name} lands {_names(landed)}", state
    return (
        f"the fire of {name} lands {_names(landed) or 'nothing, for nothing is missing'}",
        answered(state._replace(fires=others), fire.generation, word),
    )


def answered(state: State, generation: int, word: str) -> State:
    """The moment at which the worker that waits for this fire, if it lives, has its answer."""
    workers = tuple(
        worker._replace(phase="answered", word=str(word))
        if worker.phase == "awaiting" and worker.generation == generation
        else worker
        for worker in state.workers
    )
    return state._replace(workers=workers)


def _people(world: World, state: State) -> Steps:
    control, left = state.control, state.left
    for frontier in range(1, world.events + 1):
        if frontier > safe_frontier(state) and world.has(Rule.SAFE_FRONTIER):
            break
        batch = up_to(frontier) & state.committed & ~state.sink.accepted
        plan = (frontier, batch)
        if control.is_restored and world.has(Rule.RESTORE_STOPS):
            break
        if control.row is None and left.recoveries:
            if not world.may_replan:
                yield (
                    f"a plan at {frontier} for {_names(batch) or 'nothing'} is approved and applied",
                    _applied(state, plan, plan),
                )
            elif control.plan is None:
                approved = control._replace(plan=plan, approved=plan)
                yield f"a plan at {frontier} for {_names(batch)} is approved", state._replace(control=approved)
        if world.may_replan and control.row is None and control.plan not in (None, plan) and left.replans:
            lapsed = control._replace(plan=plan, approved=None if world.has(Rule.BOUND_APPROVAL) else control.approved)
            yield (
                f"somebody else plans at {frontier} for {_names(batch)}",
                state._replace(control=lapsed, left=left._replace(replans=left.replans - 1)),
            )
    if world.may_replan and control.row is None and control.plan is not None:
        if control.approved is not None and left.recoveries:
            yield "the plan is applied", _applied(state, control.plan, control.approved)
        elif control.approved is None:
            yield "the plan is approved", state._replace(control=control._replace(approved=control.plan))
    if control.is_restored and world.has(Rule.RESTORE_STOPS):
        yield "the restored sink's counter is raised, and it is audited in full", sink_clear(state)
    row = control.row
    if row is not None and left.stops and not row.is_stop_wanted:
        wanted = control._replace(row=row._replace(is_stop_wanted=True))
        yield "a person asks to stop", state._replace(control=wanted, left=left._replace(stops=left.stops - 1))
    if left.releases and not state.is_locked:
        for held in state.sink.claims:
            if held.state == "open":
                sink, word = at_sink.release(state.sink, held.generation)
                yield (
                    f"a person releases the claim of generation {held.generation}: {word}",
                    state._replace(sink=sink, left=left._replace(releases=left.releases - 1)),
                )
    if row is not None and left.recoverers:
        others = tuple(worker._replace(is_holder=False) for worker in state.workers)
        taken = state._replace(workers=(*others, Worker("taken")), left=left._replace(recoverers=left.recoverers - 1))
        yield "a worker takes the recovery" + (" over" if others else ""), taken


def _applied(state: State, plan: tuple[int, int], approved: tuple[int, int]) -> State:
    left = state.left._replace(recoveries=state.left.recoveries - 1)
    control = state.control._replace(row=Row(*plan), plan=None, approved=approved)
    return state._replace(control=control, left=left)


def _backups(world: World, state: State) -> Steps:
    left = state.left
    if left.backups:
        once = left._replace(backups=0)
        if world.may_restore_sink:
            yield "the sink is backed up", state._replace(backup=state.sink, left=once)
        else:
            yield "the control database is backed up", state._replace(backup=state.control, left=once)
        return
    once = left._replace(restores=0)
    if isinstance(state.backup, Sink):
        sink = state.backup._replace(incarnation=1)
        workers = tuple(worker for worker in state.workers if worker.phase != "awaiting")
        yield (
            "the sink is restored; sessions inside it end",
            state._replace(sink=sink, fires=(), workers=workers, backup=None, left=once),
        )
    elif isinstance(state.backup, Control):
        workers = tuple(worker._replace(is_holder=False) for worker in state.workers)
        yield (
            "the control database is restored",
            state._replace(control=state.backup, workers=workers, backup=None, left=once),
        )


def _names(mask: int) -> str:
    return " and ".join(str(event) for event in events_of(mask))
