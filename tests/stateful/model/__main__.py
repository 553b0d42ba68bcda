"""`make explore`: larger worlds than the test run's, with the states and depth of each. Exits 1 where a property breaks.

`--events`, `--restarts`, `--recoverers`, `--recoveries` change the size; `--only WORD` keeps the worlds whose line has it.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from tests.stateful.model.explore import explore
from tests.stateful.model.rules import Identity, World


def worlds(size: World) -> list[World]:
    """Three kinds of sink at full size, then one more thing that may go wrong each, at a size that stays in minutes."""
    none = replace(size, identity=Identity.NONE)
    fewer = replace(none, recoverers=max(2, size.recoverers - 1), relay_starts=max(2, size.relay_starts - 1))
    few = replace(fewer, events=2, committed=2)
    return [
        none,
        replace(size, identity=Identity.FORGETS),
        replace(size, identity=Identity.KEY),
        replace(none, committed=size.events - 1),
        replace(none, recoveries=size.recoveries + 1),
        replace(none, lands_one_by_one=True),
        replace(none, may_release=True),
        replace(fewer, has_late_stagers=True),
        replace(fewer, may_stop=True),
        replace(fewer, may_replan=True),
        replace(fewer, identity=Identity.KEY, has_copies=True),
        replace(few, may_restore_control=True),
        replace(few, identity=Identity.KEY, events=1, committed=1, may_restore_sink=True),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make explore", description=__doc__)
    parser.add_argument("--events", type=int, default=3)
    parser.add_argument("--restarts", type=int, default=2)
    parser.add_argument("--recoverers", type=int, default=3)
    parser.add_argument("--recoveries", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int, help="give a world up after so many states")
    given = parser.parse_args()
    size = World(
        events=given.events,
        committed=given.events,
        relay_starts=given.restarts + 1,
        recoverers=given.recoverers,
        recoveries=given.recoveries,
    )
    is_sound = True
    for world in worlds(size):
        if given.only not in str(world):
            continue
        print(world, flush=True)
        explored = explore(world, given.limit, _progress if sys.stderr.isatty() else None)
        print(f"  {explored}", flush=True)
        is_sound &= explored.broken is None and explored.is_whole
    return 0 if is_sound else 1


def _progress(depth: int, states: int, ahead: int) -> None:
    print(f"\r  depth {depth}, {states:,} states, {ahead:,} to follow   ", end="\r", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
