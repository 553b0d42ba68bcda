"""Progress: no recovery stays unsettled once steps are fair."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.stateful.model.rules import World
from tests.stateful.model.state import Broken, Left, State, Worker, canonical

Steps = Callable[[World, State], Iterator[tuple[str, State]]]
SOLO_STEPS = 60


def stuck_because(world: World, state: State, steps: Steps, judged: dict[object, str | None]) -> str | None:
    """Why the recovery of this moment would never end, though one worker is left alone with it; None: it ends.

    Every worker there is dies; a fresh one takes over, and goes on until the recovery has ended. A fire that is under way
    at the sink lands at last, or never: both are tried.
    """
    if state.control.row is None:
        return None
    key = (state.sink, state.control, state.fires, state.committed)
    if key not in judged:
        judged[key] = _alone(world, state, steps) or _alone(world, state._replace(fires=()), steps)
    return judged[key]


def _alone(world: World, state: State, steps: Steps) -> str | None:
    nothing = Left(0, 0, 0, 0, 0, 0)
    state = state._replace(workers=(Worker("taken"),), relay=None, wire=(), left=nothing, backup=None)
    for _ in range(SOLO_STEPS):
        if state.control.row is None:
            return None
        try:
            following = [after for label, after in steps(world, state) if "worker" in label or "fire" in label]
        except Broken:
            return None  # another property's business, which has its own story
        if not following:
            return f"the recovery is {state.control.row.state}, and nothing can follow"
        state = canonical(world, following[0])
    return "a worker alone with the recovery does not end it"
