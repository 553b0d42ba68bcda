"""The operator's part: the commands a person on call would type, and the real worker that does what they ask.

Everything goes through the product's own commands; nothing here reads a source or a sink.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management import call_command

from workers.demo.incident import ROOT
from workers.demo.world import World

ON_CALL, TEAM_LEAD = "on-call", "team-lead"
STOP_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed as JSON, its exit code, and the line a person would have typed."""

    line: str
    code: int
    body: dict[str, Any]


def command_run(name: str, *words: str) -> Said:
    """Runs `manage.py NAME WORDS --json`. Its exit code is a word of the answer, not an error here."""
    printed, code = io.StringIO(), 0
    try:
        call_command(name, *words, "--json", stdout=printed)
    except SystemExit as ended:
        code = int(ended.code or 0)
    line = " ".join(["manage.py", name, *(f"'{word}'" if " " in word else word for word in words)])
    lines = printed.getvalue().strip().splitlines()
    if not lines:
        raise RuntimeError(f"{line} ended with {code} and said nothing")
    try:
        body = json.loads(lines[-1])
    except ValueError:
        body = json.loads(printed.getvalue())
    return Said(line, code, body)


@contextmanager
def worker_running(log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Celery worker of its own process, ended by its process id on the way out."""
    with log.open("ab") as to:
        worker = subprocess.Popen(
            [
                *(sys.executable, "-m", "celery", "--app", "workers.celery", "worker"),
                *("--queues", "spark,default", "--concurrency", "1", "--loglevel", "INFO"),
                *("--without-mingle", "--without-gossip", "--hostname", "demo@%h"),
            ],
            stdout=to,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    try:
        yield worker
    finally:
        worker.terminate()
        try:
            worker.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
