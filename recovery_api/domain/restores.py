"""Was the sink restored, or is our memory old? (THEORY section 4, step 9)

The sink owns its record, and its fence and counter where it has them; the control database only remembers what the sink
said. Both can come back from a backup, and the two cases are told apart by who is behind. The one law: a memory is never
lowered silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class SinkMemory:
    """What tells a sink as it is now from what it was.

    `incarnation`: whatever names it (system identifier, timeline, table, …), compared as a whole and never taken apart;
    "" where it cannot be seen. The others only ascend; None: it keeps none.
    """

    incarnation: str
    counter: int | None = None
    fence: int | None = None
    last_entry: int | None = None


class Standing(StrEnum):
    """How what the sink says now compares with what it said before."""

    FIRST_SEEN = "first seen"
    """Nothing was remembered: keep what was said."""
    AGREES = "agrees"
    """The sink is where it was, or further: keep the greater of both."""
    RESTORED = "sink restored"
    """The sink lies behind the memory, or is another incarnation: nothing fires until a full audit."""


@dataclass(frozen=True, slots=True)
class RestoreFinding:
    """What was found. `memory` is what to keep; `counter_floor` must be passed by the next generation allocated (0 where
    the sink allocates none)."""

    standing: Standing
    memory: SinkMemory
    counter_floor: int
    behind: tuple[str, ...] = ()

    @property
    def is_restored(self) -> bool:
        return self.standing is Standing.RESTORED

    @property
    def says(self) -> str:
        keeps_counter = self.memory.counter is not None
        if not self.is_restored:
            stands = f"stands at generation {self.memory.counter}, fence {self.memory.fence}"
            return f"The sink {stands if keeps_counter else 'is the one that was seen before'}."
        raised = f"its counter is raised above {self.counter_floor} and " if keeps_counter else ""
        return (
            f"The sink was restored or replaced: {'; '.join(self.behind)}. Nothing fires until {raised}a full audit has "
            "run; earlier certificates are void."
        )


def restore_find(remembered: SinkMemory | None, said: SinkMemory) -> RestoreFinding:
    """Whether the sink lies behind what is remembered of it, and what to remember from now on.

    >>> restore_find(SinkMemory("a", 7, 6, 100), SinkMemory("a", 5, 5, 80)).behind
    ('its counter is 5 and was 7', 'its fence is 5 and was 6', 'its last entry is 80 and was 100')
    >>> restore_find(SinkMemory("a", 5, 5, 80), SinkMemory("a", 7, 6, 100)).memory.counter
    7
    """
    if remembered is None:
        return RestoreFinding(Standing.FIRST_SEEN, said, said.counter or 0)
    behind = tuple(_behind(remembered, said))
    memory = SinkMemory(
        incarnation=remembered.incarnation if behind or not said.incarnation else said.incarnation,
        counter=_greater(remembered.counter, said.counter),
        fence=_greater(remembered.fence, said.fence),
        last_entry=_greater(remembered.last_entry, said.last_entry),
    )
    standing = Standing.RESTORED if behind else Standing.AGREES
    return RestoreFinding(standing, memory, _greater(memory.counter, memory.fence) or 0, behind)


def _behind(remembered: SinkMemory, said: SinkMemory) -> list[str]:
    found = []
    if remembered.incarnation and said.incarnation and said.incarnation != remembered.incarnation:
        found.append(f"its identity is {said.incarnation} and was {remembered.incarnation}")
    for what, before, now in (
        ("counter", remembered.counter, said.counter),
        ("fence", remembered.fence, said.fence),
        ("last entry", remembered.last_entry, said.last_entry),
    ):
        if before is not None and (now is None or now < before):
            found.append(f"its {what} is {_shown(now)} and was {before}")
    return found


def _greater(one: int | None, other: int | None) -> int | None:
    known = [number for number in (one, other) if number is not None]
    return max(known) if known else None


def _shown(number: int | None) -> str:
    return "none" if number is None else str(number)
