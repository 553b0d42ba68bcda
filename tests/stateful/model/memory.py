"""What the control database remembers of the sink, compared with what the sink says now."""

from __future__ import annotations

from recovery_api.domain.restores import SinkMemory, restore_find
from tests.stateful.model.rules import Rule, World
from tests.stateful.model.state import Sink, State


def memory_compare(world: World, state: State) -> tuple[State, bool]:
    """The memory of the sink, brought to what it says now, and whether it was found restored."""
    if not world.may_restore_sink:
        return state, False
    control, sink = state.control, state.sink
    counter, fence, entries, incarnation = control.memory
    finding = restore_find(SinkMemory(str(incarnation), counter, fence, entries or None), _says(sink))
    memory = finding.memory
    is_restored = control.is_restored or finding.is_restored
    control = control._replace(
        memory=(memory.counter or 0, memory.fence or 0, memory.last_entry or 0, int(memory.incarnation)),
        is_restored=is_restored,
    )
    return state._replace(control=control), is_restored and world.has(Rule.RESTORE_STOPS)


def sink_clear(state: State) -> State:
    """The counter above both sides, a full audit, and the sink trusted again."""
    control, sink = state.control, state.sink
    sink = sink._replace(counter=max(sink.counter, control.memory[0], control.memory[1]) + 1)
    said = _says(sink)
    memory = (sink.counter, sink.fence, said.last_entry or 0, sink.incarnation)
    return state._replace(sink=sink, control=control._replace(memory=memory, is_restored=False))


def _says(sink: Sink) -> SinkMemory:
    return SinkMemory(str(sink.incarnation), sink.counter, sink.fence, sink.accepted.bit_count() or None)
