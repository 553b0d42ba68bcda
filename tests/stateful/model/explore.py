"""Every reachable moment of a world, breadth first, so that the first broken property has a shortest story.

Moments are remembered by a 64-bit hash of their canonical form, each with its predecessor's: five million of them miss
one by accident with a probability below one in a million.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.stateful.model.machine import steps
from tests.stateful.model.progress import stuck_because
from tests.stateful.model.rules import World
from tests.stateful.model.state import Broken, State, canonical, state_first


@dataclass(frozen=True)
class Explored:
    """What was seen. `depth`: the longest shortest story. `broken` None: every property holds in every moment."""

    world: World
    states: int
    steps: int
    depth: int
    seconds: float
    broken: str | None = None
    story: tuple[str, ...] = ()
    is_whole: bool = True

    def __str__(self) -> str:
        size = f"{self.states:,} states, {self.steps:,} steps, depth {self.depth}, {self.seconds:.1f} s"
        if self.broken is None:
            return f"{size}: {'no property is broken' if self.is_whole else 'NOT WHOLE'}"
        told = "\n".join(f"  {number:2}. {line}" for number, line in enumerate(self.story, 1))
        return f"{size}: broken after {len(self.story)} steps\n{told}\n  => {self.broken}"


def explore(
    world: World, limit: int | None = None, progress: Callable[[int, int, int], None] | None = None
) -> Explored:
    """Every moment of `world`, or the shortest story that breaks a property. `limit`: give up after so many states."""
    began = time.monotonic()
    first = canonical(world, state_first(world))
    before: dict[int, int] = {hash(first): 0}
    layer = [first]
    depth = stepped = 0
    judged: dict[object, str | None] = {}
    while layer:
        following: list[State] = []
        for state in layer:
            try:
                for _, after in steps(world, state):
                    stepped += 1
                    after = canonical(world, after)
                    mark = hash(after)
                    if mark not in before:
                        before[mark] = hash(state)
                        following.append(after)
                if (problem := stuck_because(world, state, steps, judged)) is not None:
                    raise Broken(problem)
            except Broken as broken:
                story = _story(world, before, state)
                return Explored(world, len(before), stepped, depth, time.monotonic() - began, str(broken), story)
        if following:
            depth += 1
        if progress is not None:
            progress(depth, len(before), len(following))
        if limit is not None and len(before) > limit:
            return Explored(world, len(before), stepped, depth, time.monotonic() - began, is_whole=False)
        layer = following
    return Explored(world, len(before), stepped, depth, time.monotonic() - began)


def _story(world: World, before: dict[int, int], last: State) -> tuple[str, ...]:
    """The steps that led to `last`, found again along the remembered hashes; generations keep their numbers here."""
    marks = [hash(last)]
    while before[marks[-1]]:
        marks.append(before[marks[-1]])
    marks.reverse()
    state = state_first(world)
    told = []
    for mark in marks[1:]:
        for label, after in steps(world, state):
            if hash(canonical(world, after)) == mark:
                told.append(label)
                state = after
                break
    return tuple(told)
