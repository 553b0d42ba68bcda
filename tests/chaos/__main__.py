"""`python -m tests.chaos --rounds N --seed S`: faults in random order, each round compared with the oracle.

A round's `ended_after_seconds` runs from when the recovery's first worker started, the fault's own doing included, until
it has ended, by whatever workers were needed; the waits of the sweep and of back-off are left out.

Exit 0: no duplicate, no loss, no recovery unsettled. 1: a round went wrong; the seed repeats it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--only", action="append", default=[], metavar="FAULT", help="these faults; may be repeated")
    parser.add_argument("--each", action="store_true", help="every infrastructure fault once, in order")
    parser.add_argument("--list", action="store_true", help="name the faults and end")
    parser.add_argument("--keep", type=Path, help="work in this new directory and leave it there")
    given = parser.parse_args()
    from tests.chaos.servers import Servers

    with tempfile.TemporaryDirectory(prefix="fencepost-chaos-") as folder:
        directory = given.keep or Path(folder)
        directory.mkdir(exist_ok=True)
        directory.chmod(0o755)
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            "FENCEPOST_VAR_DIR": str(directory),
            "FENCEPOST_EVIDENCE_DIR": str(directory / "evidence"),
            "FENCEPOST_IN_PROCESS_ROWS": "0",  # what a worker does on the engine has more that can fail
            "LOG_LEVEL": "CRITICAL",
        }
        with Servers(directory / "servers") as servers:
            return _run(given, servers, directory)


def _run(given: argparse.Namespace, servers: object, directory: Path) -> int:
    import django

    django.setup()
    from django.core.management import call_command

    from tests.chaos.arena import Arena
    from tests.chaos.faults import FAULTS, INFRASTRUCTURE

    if given.list:
        print("\n".join(FAULTS))
        return 0
    call_command("migrate", verbosity=0)
    arena = Arena(servers, directory, given.seed)  # type: ignore[arg-type]
    chance = random.Random(given.seed)
    names = list(INFRASTRUCTURE) if given.each else given.only or list(FAULTS)
    order = (
        names
        if given.each
        else [name for _ in range(-(-given.rounds // len(names))) for name in _shuffled(names, chance)]
    )
    if not given.each:
        order = order[: given.rounds]
    print(f"seed {given.seed}, {len(order)} rounds", flush=True)
    counts: Counter[str] = Counter()
    wrong = 0
    longest = (0.0, "")
    for number, name in enumerate(order, 1):
        began = time.monotonic()
        row: dict[str, Any] = {"round": number, "fault": name}
        try:
            recovery = arena.prepare()
            disturbed = time.monotonic()
            says = FAULTS[name](arena, recovery)
            recovery = arena.settle(arena.latest())
            row["ended_after_seconds"] = round(time.monotonic() - disturbed, 1)
            arena.reap()
            arena.check(recovery)
            row |= {"held": True, "says": says, "outcome": recovery.outcome, "landed": recovery.landed_count}
            row |= {"generations": recovery.generations.count(), "parts": recovery.batches}
        except Exception as error:  # the edge of a round: told, counted, and the run goes on
            wrong += 1
            row |= {"held": False, "says": f"{type(error).__name__}: {error}"}
            arena.reap()
        counts[name] += 1
        longest = max(longest, (row.get("ended_after_seconds", 0.0), name))
        row["seconds"] = round(time.monotonic() - began, 1)
        print(json.dumps(row), flush=True)
    events = len(arena.keys)
    summary = {
        "seed": given.seed,
        "rounds": len(order),
        "wrong": wrong,
        "events": events,
        "longest_seconds_to_end_by_itself": longest[0],
        "longest_after": longest[1],
        "faults": dict(sorted(counts.items())),
    }
    print(json.dumps(summary), flush=True)
    return 1 if wrong else 0


def _shuffled(names: list[str], chance: random.Random) -> list[str]:
    return chance.sample(names, len(names))


if __name__ == "__main__":
    sys.exit(main())
