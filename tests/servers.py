"""A PostgreSQL and a Redis server of its own for each further process of a parallel run.

One law: a test sees nothing of a test beside it. An open transaction anywhere in a cluster holds back what is safe for
every database there, roles belong to the cluster, and a worker takes what it finds at its broker. So the first process
has the run's servers and each other one starts its own, by the product's launcher, before Django reads its settings.
Spark is shared: a session there belongs to its process.

Tests are handed out one by one, except those of TOGETHER, whose module takes longer to set up than to run. Nothing is walked by the garbage collector before all of them are known: each process
collects six thousand, and that was a third of its time.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

FIRST = "gw0"
OWN = {"postgres": "DATABASE_URL", "redis": "REDIS_URL"}
TELL = f"import json, os, sys; print(json.dumps([os.environ[v] for v in {list(OWN.values())}]), flush=True); sys.stdin.read()"

TOGETHER = ("tests/faults/test_infrastructure.py", "tests/spark/test_cluster.py")

_launcher: subprocess.Popen[str] | None = None


def server_start() -> None:
    """Starts this process's servers and names them; nothing where the run has none, or this is the first process."""
    global _launcher
    if os.environ.get("PYTEST_XDIST_WORKER", FIRST) == FIRST or not os.environ.get("DATABASE_URL"):
        return
    environment = {name: value for name, value in os.environ.items() if name not in OWN.values()}
    _launcher = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "workers.embedded",
            "--temporary",
            "--only",
            ",".join(OWN),
            "--",
            sys.executable,
            "-c",
            TELL,
        ],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert _launcher.stdout is not None
    told = _launcher.stdout.readline()
    if not told:
        raise pytest.UsageError(
            f"The servers of {os.environ['PYTEST_XDIST_WORKER']} did not start: {_launcher.wait()}."
        )
    os.environ |= zip(OWN.values(), json.loads(told), strict=True)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: Any) -> None:
    """The launcher stops its servers when its command's input ends."""
    if _launcher is not None:
        _launcher.communicate(timeout=60)


class ByTest(LoadScopeScheduling):
    """The longest modules first and each in one process; then every test by itself, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if file in TOGETHER else nodeid


def pytest_xdist_make_scheduler(config: Any, log: Any) -> LoadScopeScheduling:
    return ByTest(config, log)


gc.disable()  # until tests/conftest.py has seen the last of them
server_start()
