"""A lane: a copy of the product with servers of its own, in which one protection at a time is out.

Two lanes see nothing of each other (tests.servers says why that must be). Spark is started only where a guard's tests
need it, from the copy; its Python workers keep what they imported, so what runs on executors has guards whose tests need
no Spark.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.guards.guard import Guard

ROOT = Path(__file__).parents[2]
LONGEST_SECONDS = 420
TEST_SECONDS = 60
"""Of one test, with the protection and without: one that hangs without it has failed, and is not waited for."""

SERVERS = {"postgres": "DATABASE_URL", "redis": "REDIS_URL", "spark": "SPARK_REMOTE"}
TELL = "import json, os, sys; print(json.dumps(dict(os.environ)), flush=True); sys.stdin.read()"
FAILED = re.compile(r"^FAILED (.*)$", re.MULTILINE)
BROKEN = re.compile(r"^(?:FAILED|ERROR) ([^\[\s]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Said:
    """What pytest said. `failed`: what failed while it ran; a test that could not be set up shows nothing, and is `broken`."""

    is_green: bool
    failed: tuple[str, ...]
    broken: frozenset[str]
    end: str


@dataclass(frozen=True, slots=True)
class Lane:
    copy: Path
    environment: dict[str, str]

    def tests_run(self, tests: Sequence[str], *, is_stopping: bool) -> Said:
        """Without the protection a run that hangs was noticed, too."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--reuse-db", "--tb=no"]
        command += ["--timeout", str(TEST_SECONDS)]
        try:
            done = subprocess.run(
                [*command, *(["-x"] if is_stopping else []), *tests],
                cwd=self.copy,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=LONGEST_SECONDS if is_stopping else None,
            )
        except subprocess.TimeoutExpired:
            return Said(False, (f"did not end within {LONGEST_SECONDS} s",), frozenset(), "")
        said = done.stdout + done.stderr
        end = "\n".join(said.splitlines()[-25:])
        return Said(done.returncode == 0, tuple(FAILED.findall(said)), frozenset(BROKEN.findall(said)), end)

    @contextmanager
    def protection_out(self, guard: Guard) -> Iterator[None]:
        """Raises: GuardStale."""
        path = self.copy / guard.file
        whole = path.read_text(encoding="utf-8")
        path.write_text(guard.taken_out(whole), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(whole, encoding="utf-8")


@contextmanager
def lane_open(*, has_spark: bool) -> Iterator[Lane]:
    """What git tracks, and what it does not ignore, as it is in the working tree, and servers; gone at the end."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    with tempfile.TemporaryDirectory(prefix="fencepost-guards-") as made:
        copy = Path(made)
        for name in filter(None, names):
            if (ROOT / name).is_file():
                target = copy / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)
        with _servers(copy, has_spark=has_spark) as environment:
            yield Lane(copy, environment)


@contextmanager
def _servers(copy: Path, *, has_spark: bool) -> Iterator[dict[str, str]]:
    """The environment that names them."""
    started = [name for name in SERVERS if has_spark or name != "spark"]
    launch = [sys.executable, "-m", "workers.embedded", "--temporary", "--only", ",".join(started), "--"]
    own = {name: value for name, value in os.environ.items() if name not in SERVERS.values()}
    environment = {**own, "PYTHONDONTWRITEBYTECODE": "1", "FENCEPOST_VAR_DIR": str(copy / "var")}
    launcher = subprocess.Popen(
        [*launch, sys.executable, "-c", TELL],
        cwd=copy,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdout is not None
    if not (told := launcher.stdout.readline()):
        raise SystemExit(f"The servers did not start: {launcher.wait()}.")
    try:
        yield json.loads(told)
    finally:
        launcher.communicate(timeout=120)  # it stops them when its command's input ends
