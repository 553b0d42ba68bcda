"""The operator's part: the commands a person on call would type, and the real worker that does what they ask.

Everything goes through the product's own commands; nothing here reads a source or a sink.
"""

from __future__ import annotations

import io
import json
import os
import shlex
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

    @property
    def counts(self) -> dict[str, int]:
        """Of an audit."""
        return {name: int(self.body[name]) for name in ("lost", "duplicates", "premature")}


def command_run(*words: str, codes: tuple[int, ...] = (0,)) -> Said:
    """Runs `manage.py WORDS --json`. Raises: RuntimeError where it ends with another code than one of `codes`."""
    printed, problems, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command(*words, "--json", stdout=printed, stderr=problems)
    except SystemExit as ended:
        code = int(ended.code or 0)
    line = shlex.join(["manage.py", *words])
    if code not in codes:
        raise RuntimeError(f"{line} ended with {code}: {problems.getvalue()}{printed.getvalue()}")
    return Said(line, code, json.loads(printed.getvalue().strip().splitlines()[-1]))


def pipeline_register(world: World) -> list[str]:
    """Source, sink and pipeline, each tested by the worker and registered. Returns the lines typed."""
    folder = world.credentials.parent / f"{world.prefix}incident-{world.incident}"
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for word, name, options in (("source", "orders", world.source_options()), ("sink", "mail", world.sink_options())):
        kind = {"source": "postgresql_outbox", "sink": "postgresql_kit"}[word]
        registered = {"name": world.end_name(name), "kind": kind, "options": options}
        file = folder / f"{word}.json"
        file.write_text(json.dumps(registered, indent=2) + "\n", encoding="utf-8")
        lines.append(command_run(f"{word}s", "add", "--file", str(file), "--actor", ON_CALL).line)
    ends = ("--source", world.end_name("orders"), "--sink", world.end_name("mail"))
    lines.append(command_run("pipelines", "add", world.pipeline, *ends, "--actor", ON_CALL).line)
    return lines


def audit(world: World, frontier: str | None = None) -> Said:
    """A verdict, whatever it is but unknown."""
    at = () if frontier is None else ("--frontier", frontier)
    return command_run("audit", world.pipeline, *at, "--full", "--wait", "--actor", ON_CALL, codes=(0, 1))


def plan(world: World, frontier: str) -> Said:
    return command_run("plan", world.pipeline, "--frontier", frontier, "--wait", "--actor", ON_CALL, codes=(0, 1))


def approve(planned: Said) -> Said:
    """By another person than the author, and by the digest that was seen."""
    return command_run("approve", planned.body["plan"], "--digest", planned.body["digest"], "--actor", TEAM_LEAD)


def redrive(world: World, planned: Said) -> Said:
    reason = f"the relay died in incident {world.incident}"
    words = ("--reason", reason, "--confirm", world.pipeline, "--wait", "--actor", ON_CALL)
    return command_run("redrive", planned.body["plan"], *words, codes=(0, 1))


@contextmanager
def worker_running(log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Celery worker of its own process, ended by its process id on the way out."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as to:
        worker = subprocess.Popen(
            [
                *(sys.executable, "-m", "celery", "--app", "workers.celery", "worker"),
                *("--queues", "spark,default", "--concurrency", "1", "--loglevel", "INFO"),
                *("--without-mingle", "--without-gossip", "--hostname", f"demo-{os.getpid()}@%h"),
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
