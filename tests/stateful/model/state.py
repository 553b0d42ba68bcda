"""What one moment of the machine is: nested tuples of numbers and words, so that equal moments are equal and hash fast.

Sets of events are bit masks: event n is bit n - 1, and n is its coordinate. `Broken` is raised by the step that breaks a
property. A moment is kept in a canonical form: workers in order, what can no longer matter left out, generations
renumbered without gaps (only their order means anything, as long as no sink is restored).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.stateful.model.rules import Identity, Rule, World


class Broken(Exception):
    """A property does not hold. `args`: the sentence."""


class Claim(NamedTuple):
    """One claim at the sink. `armed`: the batch, None: nothing is armed. `staged`: which arms have all their rows."""

    generation: int
    frontier: int
    state: str = "open"
    arm: int = 0
    armed: int | None = None
    staged: int = 0
    landed: int = 0
    superseded_by: int = 0


class Sink(NamedTuple):
    """What the sink holds. `start`: position and generation of the last hand-over. `allocated`: a mask, -1: every one."""

    counter: int = 0
    fence: int = 0
    accepted: int = 0
    remembered: int = 0
    claims: tuple[Claim, ...] = ()
    start: tuple[int, int] | None = None
    allocated: int = -1
    incarnation: int = 0

    def claim(self, generation: int) -> Claim | None:
        for held in self.claims:
            if held.generation == generation:
                return held
        return None

    def claim_keep(self, changed: Claim) -> Sink:
        return self._replace(
            claims=tuple(changed if held.generation == changed.generation else held for held in self.claims)
        )


class Row(NamedTuple):
    """The recovery in the control database. `ours`: its generations; `landed`: what it recorded of what they landed.

    `verified`: how many events were lost at f, None: not verified yet.
    """

    frontier: int
    approved: int
    state: str = "requested"
    generation: int = 0
    ours: tuple[int, ...] = ()
    landed: int = 0
    verified: int | None = None
    is_stop_wanted: bool = False


class Control(NamedTuple):
    """The control database. `plan`: frontier and batch of the waiting plan; `approved`: what somebody approved.

    `memory`: counter, fence, entries and incarnation as the sink last said them.
    """

    row: Row | None = None
    plan: tuple[int, int] | None = None
    approved: tuple[int, int] | None = None
    memory: tuple[int, int, int, int] = (0, 0, 0, 0)
    is_restored: bool = False


class Worker(NamedTuple):
    """One recoverer. `phase`: the step it takes next. `missing` of the events up to `read` were not in the record."""

    phase: str
    generation: int = 0
    is_holder: bool = True
    read: int = 0
    missing: int = 0
    word: str = ""


class Fire(NamedTuple):
    """A fire under way at the sink, with or without its worker. `running`: inside its transaction, holding the lock."""

    generation: int
    arm: int
    is_running: bool = False


class Relay(NamedTuple):
    """A run of the relay: everything committed up to `position` was sent, or passed by."""

    generation: int
    position: int


class Left(NamedTuple):
    """What may still happen: the sizes of the world, counting down."""

    relay_starts: int
    recoverers: int
    recoveries: int
    stops: int
    releases: int
    replans: int
    backups: int = 0
    restores: int = 0


class State(NamedTuple):
    committed: int
    sink: Sink
    control: Control
    relay: Relay | None
    cursor: int
    started_from: int | None
    wire: tuple[tuple[int, int], ...]
    """Sends in flight: generation and event. One that is lost is one that stays here: it needs no step of its own."""
    fires: tuple[Fire, ...]
    workers: tuple[Worker, ...]
    ended: tuple[int, ...]
    """Generations of recoveries that ended: nothing of them may land any more."""
    left: Left
    backup: Sink | Control | None = None

    @property
    def is_locked(self) -> bool:
        """Whether a fire is inside its transaction: claims, relay starts, releases and settling wait for it."""
        return any(fire.is_running for fire in self.fires)


def state_first(world: World) -> State:
    has_restores = world.may_restore_sink or world.may_restore_control
    return State(
        committed=(1 << world.committed) - 1,
        sink=Sink(allocated=1 if world.may_restore_sink else -1),
        control=Control(),
        relay=None,
        cursor=0,
        started_from=None,
        wire=(),
        fires=(),
        workers=(),
        ended=(),
        left=Left(
            world.relay_starts,
            world.recoverers,
            world.recoveries,
            int(world.may_stop),
            int(world.may_release),
            int(world.may_replan),
            int(has_restores),
            int(has_restores),
        ),
    )


def events_of(mask: int) -> Iterator[int]:
    """The coordinates in a mask, ascending."""
    number = 1
    while mask:
        if mask & 1:
            yield number
        mask >>= 1
        number += 1


def up_to(position: int) -> int:
    """The mask of every coordinate at or below `position`."""
    return (1 << position) - 1


def safe_frontier(state: State) -> int:
    """The highest coordinate below which no further commit can appear."""
    gap = ~state.committed
    return (gap & -gap).bit_length() - 1


def canonical(world: World, state: State) -> State:
    """The same moment without what can no longer matter."""
    sink, control = state.sink, state.control
    row = control.row
    is_unsure = world.may_restore_sink and bool(state.left.restores)  # the fence may still go back
    wire = state.wire
    if wire and world.has(Rule.FENCE) and not is_unsure:  # what is fenced is fenced for good
        wire = tuple(send for send in wire if send[0] >= sink.fence)
    relay = state.relay
    if world.has(Rule.FENCE) and relay is not None and relay.generation < sink.fence and not is_unsure:
        relay = None
    if world.identity is Identity.KEY and world.has(Rule.FENCE) and wire and not is_unsure:
        wire = tuple(send for send in wire if not sink.accepted >> send[1] - 1 & 1)  # it will be absorbed
    workers = tuple(
        sorted(worker for worker in state.workers if worker.is_holder or _matters(world, sink, worker, is_unsure))
    )
    acting = {worker.generation for worker in workers} | {fire.generation for fire in state.fires}
    ended = tuple(number for number in state.ended if number in acting)
    if world.may_restore_sink:
        return state._replace(relay=relay, wire=tuple(sorted(wire)), workers=workers, ended=ended)
    if row is not None:
        passing = {held.superseded_by for held in sink.claims if held.generation == row.generation}
        mine = [
            number
            for number in row.ours
            if number == row.generation
            or number in acting
            or number in passing
            or ((held := sink.claim(number)) is not None and (held.state == "open" or held.landed & ~row.landed))
        ]
        if len(mine) != len(row.ours):
            row = row._replace(ours=tuple(mine))
        acting.update(mine)
    claims = sink.claims
    if state.backup is None:
        claims = tuple(held for held in claims if held.generation in acting or held.state == "open")
    start = sink.start
    if start is not None and start[1] != sink.fence:
        start = (start[0], 0)
    if len(claims) != len(sink.claims) or start is not sink.start:
        sink = sink._replace(claims=claims, start=start)
    if state.backup is not None or state.left.backups:
        return state._replace(
            sink=sink,
            control=control._replace(row=row),
            relay=relay,
            wire=tuple(sorted(wire)),
            workers=workers,
            ended=ended,
        )
    used = acting | {0, sink.fence} | {held.generation for held in claims} | {held.superseded_by for held in claims}
    used |= {send[0] for send in wire}
    if relay is not None:
        used.add(relay.generation)
    wire = tuple(sorted(wire)) if len(wire) > 1 else wire
    if len(used) - 1 == max(used):  # without gaps already
        if sink.counter != len(used) - 1:
            sink = sink._replace(counter=len(used) - 1)
        if row is not control.row:
            control = control._replace(row=row)
        return State(
            state.committed,
            sink,
            control,
            relay,
            state.cursor,
            state.started_from,
            wire,
            state.fires,
            workers,
            ended,
            state.left,
        )
    name = {number: rank for rank, number in enumerate(sorted(used))}
    sink = sink._replace(
        counter=len(name) - 1,
        fence=name[sink.fence],
        claims=tuple(
            held._replace(generation=name[held.generation], superseded_by=name[held.superseded_by]) for held in claims
        ),
        start=None if start is None else (start[0], name[start[1]]),
    )
    if row is not None:
        row = row._replace(generation=name[row.generation], ours=tuple(name[number] for number in row.ours))
    return State(
        state.committed,
        sink,
        control._replace(row=row),
        None if relay is None else Relay(name[relay.generation], relay.position),
        state.cursor,
        state.started_from,
        tuple((name[number], event) for number, event in wire),
        tuple(fire._replace(generation=name[fire.generation]) for fire in state.fires),
        tuple(worker._replace(generation=name[worker.generation]) for worker in workers),
        tuple(name[number] for number in ended),
        state.left,
    )


def _matters(world: World, sink: Sink, worker: Worker, is_unsure: bool) -> bool:
    """Whether a worker that was taken over can still do anything at the sink before its next guarded write."""
    if worker.phase == "awaiting":
        return world.has_late_stagers
    if worker.phase == "claiming":
        return True  # its number will be drawn then
    if worker.phase == "claimed":
        return (held := sink.claim(worker.generation)) is not None and held.state == "open"
    if worker.phase not in ("reading", "arming"):
        return False
    return worker.generation >= sink.fence or not world.has(Rule.CLAIM_BEFORE_READ) or is_unsure
