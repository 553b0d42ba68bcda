"""`make bench`: ratios, measured in one run on one machine. `ARGS="audit landing fire latency admission lists writers judge image increment recovery fleet year oncall --rows 5000000"` chooses."""

from __future__ import annotations

import argparse
import os

import django

BENCHMARKS = (
    "audit",
    "landing",
    "fire",
    "latency",
    "admission",
    "lists",
    "writers",
    "judge",
    "image",
    "increment",
    "recovery",
    "fleet",
    "year",
    "oncall",
)
LONG = ("image", "increment", "recovery", "fleet", "year", "oncall")
"""Made by name alone: a quarter of an hour and more, and, of 20 million, about 16 GB of disk."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench ARGS=…", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHMARKS)} (all)")
    parser.add_argument("--rows", type=int, action="append", help="obligations of the audit (1000000 and 5000000)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (5)")
    parser.add_argument("--by", choices=["coordinate", "payload"], help="how the audit matches (both)")
    parser.add_argument("--pipelines", type=int, default=1000, help="of the year (1000)")
    parser.add_argument("--days", type=int, default=365, help="of the year (365)")
    given = parser.parse_args()
    names = given.names or [name for name in BENCHMARKS if name not in LONG]
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    if "audit" in names:
        from tests.benchmarks import audit

        for rows in given.rows or [1_000_000, 5_000_000]:
            audit.run(rows, given.rounds, given.by)
    if "landing" in names:
        from tests.benchmarks import landing

        landing.run(given.rounds)
    if "fire" in names:
        from tests.benchmarks import fire

        fire.run(given.rounds)
    if "latency" in names:
        from tests.benchmarks import latency

        latency.run(given.rounds)
    if "admission" in names:
        from tests.benchmarks import admission

        admission.run(given.rounds)
    if "lists" in names:
        from tests.benchmarks import lists

        lists.run(given.rounds)
    if "writers" in names:
        from tests.benchmarks import writers

        writers.run(given.rounds)
    if "image" in names:
        from tests.benchmarks import image

        image.run(given.rows or [1_000_000, 5_000_000, 20_000_000], given.rounds)
    if "increment" in names:
        from tests.benchmarks import increment

        increment.run(given.rows or [1_000_000, 5_000_000, 20_000_000], given.rounds)
    if "recovery" in names:
        from tests.benchmarks import recovery

        recovery.run(given.rows or [5_000_000], given.rounds)
    if "year" in names:
        from tests.benchmarks import year

        year.run(given.pipelines, given.days)
    if "fleet" in names:
        from tests.benchmarks import fleet

        fleet.run(given.rows or [1_000])
    if "oncall" in names:
        from tests.benchmarks import oncall

        oncall.run(given.rounds)
    if "judge" in names:
        from tests.benchmarks import judge

        for rows in given.rows or [judge.ROWS]:
            judge.run(rows, given.rounds)


if __name__ == "__main__":
    main()
