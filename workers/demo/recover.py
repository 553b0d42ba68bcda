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
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.utils import timezone

from recovery_api.domain.errors import Refused
from recovery_api.selectors.workers import worker_presence
from workers.demo.incident import ROOT
from workers.demo.narrator import Narrator
from workers.demo.world import World

ON_CALL, TEAM_LEAD = "on-call", "team-lead"
STOP_SECONDS = 20
ADMINISTRATOR = "FENCEPOST_END_DEMO_ADMINISTRATOR"
"""The variable that holds the address of whoever installs the kit, for as long as that takes."""
ON_THE_ENGINE = {"FENCEPOST_IN_PROCESS_ROWS": "0"}
"""The demo shows the way of large sides, and says so: its few events would be worked on in the worker's own process."""
HURRY = ("--option", "margin_seconds=600", "--option", "operator_delay_seconds=1800")
"""By when a recovery must have ended before an end forgets, and how long it takes somebody to see that one is needed."""
TESTED = ("--timeout", "300")
"""Seconds for a connection test: a worker that has just been started on a busy machine takes its time."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed as JSON, and its exit code."""

    code: int
    body: dict[str, Any]

    @property
    def counts(self) -> dict[str, int]:
        """Of an audit."""
        return {name: int(self.body[name]) for name in ("lost", "duplicates", "premature")}


class Operator:
    """Whoever is on call: says each command before running it, so that a slow one can be seen to run."""

    def __init__(self, world: World, tell: Narrator, has_bar: bool = False) -> None:
        """`has_bar`: the commands' own progress bars are shown, at a terminal; else their lines are told."""
        self.world = world
        self._tell = tell
        self._has_bar = has_bar

    def install(self) -> None:
        """The sink kit into `mail`, and its groups to the relay's and the recoverer's logins."""
        world = self.world
        trades = {"relay": "mail_relay", "recoverer": "mail_recoverer", "auditor": "mail_driller"}
        grants = [f"{trade}={world.login(role)}" for trade, role in trades.items()]
        given = [word for grant in grants for word in ("--grant", grant)]
        os.environ[ADMINISTRATOR] = world.mail
        try:
            self._run("sink_install", "--file", self._file("sink"), "--as", f"env:{ADMINISTRATOR}", *given)
        finally:
            del os.environ[ADMINISTRATOR]

    def register(self, author_may_approve: bool = False) -> None:
        """Source, sink and pipeline, each tested by the worker before it is registered.

        Nobody is signed in here, so the second pair of eyes is a typed name: the pipeline is told to take one.
        """
        world = self.world
        self._run("sources", "add", "--file", self._file("source"), *TESTED, "--actor", ON_CALL)
        self._run("sinks", "add", "--file", self._file("sink"), *TESTED, "--actor", ON_CALL)
        ends = ("--source", world.end_name("orders"), "--sink", world.end_name("mail"))
        rule = ("--author-may-approve",) if author_may_approve else ("--option", "approval_by_command=true")
        self._run("pipelines", "add", world.pipeline, *ends, *rule, *HURRY, *TESTED, "--actor", ON_CALL)

    def audit(self, frontier: int | None = None) -> Said:
        """A verdict, whatever it is but unknown. Without a frontier: at the safe one."""
        at = () if frontier is None else ("--frontier", str(frontier))
        return self._run("audit", self.world.pipeline, *at, "--full", "--wait", "--actor", ON_CALL, codes=(0, 1, 4))

    def plan(self, frontier: int) -> Said:
        words = (self.world.pipeline, "--frontier", str(frontier), "--wait", "--actor", ON_CALL)
        return self._run("plan", *words, codes=(0, 1))

    def approve(self, planned: Said) -> Said:
        """By another name than the author's, and by the digest that was seen."""
        return self._run("approve", planned.body["plan"], "--digest", planned.body["digest"], "--actor", TEAM_LEAD)

    def redrive(self, planned: Said, attested: Sequence[str] = ()) -> Said:
        """`attested`: what the person on call gives their word for, each as the plan says it is written."""
        reason = f"the relay died in incident {self.world.incident}"
        attest = [word for one in attested for word in ("--attest", one)]
        words = ("--reason", reason, "--confirm", self.world.pipeline, *attest, "--wait", "--actor", ON_CALL)
        return self._run("redrive", planned.body["plan"], *words, codes=(0, 1, 4))

    def _file(self, word: str) -> str:
        """What is registered, as a file that stays to be looked at."""
        world = self.world
        registered = {
            "source": (world.end_name("orders"), "postgresql_outbox", world.source_options()),
            "sink": (world.end_name("mail"), world.sink_kind, world.sink_options()),
        }[word]
        file = world.credentials.parent / f"{world.prefix}incident-{world.incident}" / f"{word}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        row = dict(zip(("name", "kind", "options"), registered, strict=True))
        file.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")
        return str(file)

    def _run(self, *words: str, codes: tuple[int, ...] = (0,)) -> Said:
        """`manage.py WORDS --json`. Raises: Refused where it ends with another code than one of `codes`."""
        line = shlex.join(["manage.py", *words])
        self._tell.command(line)
        printed, problems, code = io.StringIO(), _Told(self._tell), 0
        try:
            call_command(*words, "--json", stdout=printed, stderr=None if self._has_bar else problems)
        except SystemExit as ended:
            code = int(ended.code or 0)
        if code not in codes:
            raise Refused(line, f"it ended with {code}: {problems.getvalue()}{printed.getvalue()}", "See var/demo.")
        return Said(code, json.loads(printed.getvalue().strip().splitlines()[-1]))


class _Told(io.StringIO):
    """What a command writes to stderr: kept, and told as progress line by line."""

    def __init__(self, tell: Narrator) -> None:
        super().__init__()
        self._tell = tell

    def write(self, text: str) -> int:
        for line in text.splitlines():
            if line.strip():
                self._tell.progress(line.strip())
        return super().write(text)


def worker_await(worker: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until a worker says that it is there. Raises: Refused where this one ended before it did."""
    pause = threading.Event()
    while worker_presence(timezone.now()).is_missing:
        if worker.poll() is not None:
            raise Refused("starting a worker", f"it ended with {worker.returncode}", f"See {log}.")
        pause.wait(0.2)


@contextmanager
def worker_running(log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Celery worker of its own process, ended by its process id on the way out. It sweeps, as every worker does."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as to:
        worker = subprocess.Popen(  # nosec B603 # a list of our own words, no shell
            [
                *(sys.executable, "-m", "celery", "--app", "workers.celery", "worker"),
                *("--queues", "spark,default", "--concurrency", "1"),
                *("--without-mingle", "--without-gossip", "--hostname", f"demo-{os.getpid()}@%h"),
            ],
            stdout=to,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={"LOG_LEVEL": "INFO", **os.environ, **ON_THE_ENGINE, "PYTHONPATH": str(ROOT)},
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
