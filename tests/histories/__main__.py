"""`make histories ARGS="--count 1000 --seed S"`: random histories, and how many of them agreed."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from pathlib import Path

import django

from tests.benchmarks.measure import databases
from tests.histories.ends import Ends


def main() -> int:
    parser = argparse.ArgumentParser(prog="make histories ARGS=…", description=__doc__)
    parser.add_argument("--count", type=int, default=30, help="how many histories (30)")
    parser.add_argument("--seed", type=int, help="of the first; each further one's is the next number (drawn)")
    given = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    from tests.histories.history import Disagreement, History

    seed = given.seed if given.seed is not None else secrets.randbelow(2**31)
    print(f"histories from seed {seed}", flush=True)
    agreed = kept = gone_on = 0
    with databases("histories_source", "histories_sink") as dsns, tempfile.TemporaryDirectory() as place:
        ends = Ends(dsns["histories_source"], dsns["histories_sink"], Path(place))
        for number in range(given.count):
            with tempfile.TemporaryDirectory(dir=place) as evidence:
                history = History(ends, seed + number, Path(evidence))
                try:
                    history.run()
                    agreed += 1
                except Disagreement as error:
                    print(error, flush=True)
                kept, gone_on = kept + history.kept, gone_on + history.gone_on
    print(f"agreed {agreed} of {given.count}; {kept} stretches were not read, {gone_on} audits went on after a purge")
    return 0 if agreed == given.count else 1


if __name__ == "__main__":
    sys.exit(main())
