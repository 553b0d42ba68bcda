"""Was the sink restored, or is our memory old? (THEORY section 4, step 9)

The sink owns its fence, counter and record; the control database only remembers what the sink said. Both can come
back from a backup, and the two cases are told apart by who is behind. The one law: a memory is never lowered silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class SinkMemory:
    """One reading of a sink's protocol tables. `identity` is the server and timeline; `last_entry` None: no record."""

    identity: str
    counter: int
    fence: int
    last_entry: int | None = None


class Standing(StrEnum):
    """How what the sink says now compares with what it said before."""

    FIRST_SEEN = "first seen"
    """Nothing was remembered: keep what was said."""
    AGREES = "agrees"
    """The sink is where it was, or further: keep the greater of both."""
    RESTORED = "sink restored"
    """The sink lies behind the memory, or is another server or timeline: nothing fires until a full audit."""


@dataclass(frozen=True, slots=True)
class RestoreFinding:
    """What was found. `memory` is what to keep; `counter_floor` must be passed by the next generation allocated."""

    standing: Standing
    memory: SinkMemory
    counter_floor: int
    behind: tuple[str, ...] = ()

    @property
    def is_restored(self) -> bool:
        return self.standing is Standing.RESTORED

    @property
    def says(self) -> str:
        if not self.is_restored:
            return f"The sink stands at generation {self.memory.counter}, fence {self.memory.fence}."
        return (
            f"The sink was restored or replaced: {'; '.join(self.behind)}. Nothing fires until its counter is raised "
            f"above {self.counter_floor} and a full audit has run; earlier certificates are void."
        )


def restore_find(remembered: SinkMemory | None, said: SinkMemory) -> RestoreFinding:
    """Whether the sink lies behind what is remembered of it, and what to remember from now on.

    >>> restore_find(SinkMemory("a", 7, 6, 100), SinkMemory("a", 5, 5, 80)).behind
    ('its counter is 5 and was 7', 'its fence is 5 and was 6', 'its last entry is 80 and was 100')
    >>> restore_find(SinkMemory("a", 5, 5, 80), SinkMemory("a", 7, 6, 100)).memory.counter
    7
    """
    if remembered is None:
        return RestoreFinding(Standing.FIRST_SEEN, said, said.counter)
    behind = tuple(_behind(remembered, said))
    memory = SinkMemory(
        identity=remembered.identity if behind else said.identity,
        counter=max(remembered.counter, said.counter),
        fence=max(remembered.fence, said.fence),
        last_entry=_greater(remembered.last_entry, said.last_entry),
    )
    standing = Standing.RESTORED if behind else Standing.AGREES
    return RestoreFinding(standing, memory, max(memory.counter, memory.fence), behind)


def _behind(remembered: SinkMemory, said: SinkMemory) -> list[str]:
    found = []
    if said.identity != remembered.identity:
        found.append(f"its identity is {said.identity} and was {remembered.identity}")
    if said.counter < remembered.counter:
        found.append(f"its counter is {said.counter} and was {remembered.counter}")
    if said.fence < remembered.fence:
        found.append(f"its fence is {said.fence} and was {remembered.fence}")
    if remembered.last_entry is not None and (said.last_entry is None or said.last_entry < remembered.last_entry):
        found.append(f"its last entry is {_shown(said.last_entry)} and was {remembered.last_entry}")
    return found


def _greater(one: int | None, other: int | None) -> int | None:
    known = [number for number in (one, other) if number is not None]
    return max(known) if known else None


def _shown(entry: int | None) -> str:
    return "none" if entry is None else str(entry)
