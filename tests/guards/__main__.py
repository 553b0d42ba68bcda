"""`make guards`: take each protection out, in a copy, and see the tests turn red. Prints `noticed n of n` last.

    python -m tests.guards                 all of them
    python -m tests.guards --changed       those whose file, tests or entry changed since they were last noticed
    python -m tests.guards --only TEXT     those whose words hold TEXT

Exit code 0 where all that ran were noticed. What was noticed is kept in tests/guards/noticed.json.
Two lanes work side by side, each with a copy and servers of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.guards.guard import Guard, GuardStale
from tests.guards.lanes import ROOT, Lane, lane_open
from tests.guards.listed import GUARDS

NOTICED = Path(__file__).with_name("noticed.json")
LANES = 2


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.guards", allow_abbrev=False)
    parser.add_argument("--changed", action="store_true", help="only those that changed since they were last noticed")
    parser.add_argument("--only", metavar="TEXT", default="", help="only those whose words or file hold TEXT")
    options = parser.parse_args(arguments)
    wanted = options.only.lower()
    chosen = [guard for guard in GUARDS if wanted in guard.protects.lower() or wanted in guard.file]
    if options.changed:
        known = noticed_read()
        chosen = [guard for guard in chosen if known.get(guard.protects) != guard.digest(ROOT)]
    if not chosen:
        print(f"noticed 0 of 0: of {len(GUARDS)} listed, none is to be tried")
        return 0
    began = time.monotonic()
    missed = Trial(chosen).run()
    for guard, why in missed:
        print(f"MISSED: {guard.protects} ({guard.file}): {why}")
    print(f"{len(GUARDS)} listed, {len(chosen)} tried in {time.monotonic() - began:.0f} s")
    print(f"noticed {len(chosen) - len(missed)} of {len(chosen)}")
    return 1 if missed else 0


class Trial:
    """One run over `chosen`. Guards that need Spark are the first lane's; the rest go to whoever is free."""

    def __init__(self, chosen: Sequence[Guard]) -> None:
        self.chosen = chosen
        self.missed: list[tuple[Guard, str]] = []
        self._of_spark = deque(guard for guard in chosen if guard.needs_spark)
        self._others = deque(guard for guard in chosen if not guard.needs_spark)
        self._known = noticed_read()
        self._broken: set[str] = set()
        self._tried = 0
        self._lanes = min(LANES, len(chosen))
        self._green = threading.Barrier(self._lanes)
        self._lock = threading.Lock()

    def run(self) -> list[tuple[Guard, str]]:
        """Those that nothing noticed, with the reason. What was noticed is written down as it is seen."""
        with ThreadPoolExecutor(self._lanes) as pool:
            list(pool.map(self._lane, range(self._lanes)))
        return self.missed

    def _lane(self, number: int) -> None:
        try:
            with lane_open(has_spark=number == 0 and bool(self._of_spark)) as lane:
                self._green_first(lane, self._share(number))
                self._green.wait()
                while (guard := self._next(number)) is not None:
                    self._try(lane, guard)
        except BaseException:
            self._green.abort()
            raise

    def _share(self, lane: int) -> list[str]:
        """Of the tests, those that this lane shows green: all that need Spark are the first one's."""
        of_spark = {test for guard in self.chosen if guard.needs_spark for test in guard.tests}
        others = sorted({test for guard in self.chosen for test in guard.tests} - of_spark)
        mine = others[lane :: self._lanes]
        return [*sorted(of_spark), *mine] if lane == 0 else mine

    def _green_first(self, lane: Lane, tests: Sequence[str]) -> None:
        if not tests:
            return
        said = lane.tests_run(tests, is_stopping=False)
        with self._lock:
            if said.is_green:
                print(f"{len(tests)} tests are green with every protection in place", flush=True)
            else:
                self._broken |= said.broken or set(tests)
                print(f"not green with every protection in place:\n{said.end}", flush=True)

    def _next(self, lane: int) -> Guard | None:
        with self._lock:
            for waiting in (self._of_spark, self._others) if lane == 0 else (self._others,):
                if waiting:
                    return waiting.popleft()
        return None

    def _try(self, lane: Lane, guard: Guard) -> None:
        began = time.monotonic()
        why, by = self._judge(lane, guard)
        with self._lock:
            self._tried += 1
            if why is None:
                self._known[guard.protects] = guard.digest(lane.copy)  # of what was tried
                noticed_write(self._known)
            else:
                self.missed.append((guard, why))
            word = "MISSED" if why else "noticed"
            place = f"[{self._tried}/{len(self.chosen)}, {time.monotonic() - began:.0f} s]"
            print(f"{place} {word}: {guard.protects}{f' | {by}' if by else ''}", flush=True)

    def _judge(self, lane: Lane, guard: Guard) -> tuple[str | None, str]:
        """Why it was missed (None: it was noticed), and what failed."""
        if any(broken.startswith(test) for broken in self._broken for test in guard.tests):
            return "its tests are not green with it in place", ""
        try:
            with lane.protection_out(guard):
                said = lane.tests_run(guard.tests, is_stopping=True)
        except GuardStale as stale:
            return str(stale), ""
        if said.failed:
            return None, said.failed[0]
        return ("its tests stay green" if said.is_green else f"no test failed:\n{said.end}"), ""


def noticed_read() -> dict[str, str]:
    return json.loads(NOTICED.read_text()) if NOTICED.exists() else {}


def noticed_write(known: dict[str, str]) -> None:
    """Guards that are listed no more are forgotten."""
    kept = {guard.protects: known[guard.protects] for guard in GUARDS if guard.protects in known}
    NOTICED.write_text(json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
