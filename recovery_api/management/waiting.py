"""Waiting for an intent: its row is polled, its progress shown, and a missing worker said in plain words."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from contextlib import AbstractContextManager
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.utils.module_loading import import_string

from recovery_api.domain.errors import FencepostError
from recovery_api.domain.visible import visible
from recovery_api.management.base import UNKNOWN, Shown, error_code
from recovery_api.models import LIVE_STATES, Intent, IntentState
from recovery_api.rows import intent_as_row
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.intents import intent_get, intent_waiting
from recovery_api.services.intents import intents_sweep

RUNNER = "workers.runners.here_run"
NOBODY_AFTER_SECONDS = 5.0
OR_HERE = " Or run it in this process: --here."
SAY_AFTER_SECONDS = 2.0
AGAIN_SECONDS = 10.0
"""A step that lasts is said again so often where there is no bar to move."""


def wait_arguments(parser: CommandParser, *, seconds: float | None = None) -> None:
    """`--wait`, `--here` and `--timeout`; `seconds` is the default of the last."""
    parser.add_argument("--wait", action="store_true", help="wait for the result and show progress")
    parser.add_argument("--here", action="store_true", help="do the work in this process instead of a worker")
    parser.add_argument(
        "--timeout", type=float, default=seconds, metavar="SECONDS", help="stop waiting after so long; the work goes on"
    )


def is_waiting(options: dict[str, Any]) -> bool:
    return bool(options["wait"] or options["here"])


def intent_await(intent: Intent, options: dict[str, Any], stderr: Any) -> Intent:
    """The intent as it stands once it has ended, or the time-out has passed, or it was run here once."""
    if options["here"]:
        run_here(intent, stderr)
        return intent_get(intent.id)
    began, said, pause = time.monotonic(), "", 0.1
    with progress_shown(stderr) as show:
        while True:
            intent = intent_get(intent.id)
            waited = time.monotonic() - began
            if intent.state not in LIVE_STATES:
                return intent
            if options["timeout"] is not None and waited >= options["timeout"]:
                return intent
            if waited >= NOBODY_AFTER_SECONDS and (alone := _alone_says(intent)):
                key = f"{intent.state} {intent.attempts}"  # once for each way of standing still
                if key != said:
                    said = key
                    show.say(alone)
            if intent.progress:
                show.step(intent.progress)
            elif waited >= SAY_AFTER_SECONDS:
                show.step({"step": "waiting for a worker" if intent.state == IntentState.QUEUED else "begun"})
            threading.Event().wait(pause)
            pause = min(pause * 1.3, 1.0)


def _alone_says(intent: Intent) -> str:
    """What to say where nobody comes, or whoever came has fallen silent; empty where the work goes on."""
    waiting = intent_waiting(intent, now_get())
    if waiting is None or not (waiting.remedy or (intent.state == IntentState.QUEUED and intent.error)):
        return ""
    return f"{waiting.says} {waiting.remedy}{OR_HERE if waiting.remedy else ''}".strip()


def run_here(intent: Intent, stderr: Any) -> None:
    """Runs the intent in this process, through the runner the settings name.

    What a process before this one took and died of is offered again first: there may be no worker that sweeps.
    """
    intents_sweep(now_get())
    runner = import_string(getattr(settings, "FENCEPOST_INTENT_RUNNER", RUNNER))
    stderr.write(f"Working on {intent.action.replace('_', ' ')} in this process.")
    runner(str(intent.id), taken_by=f"{socket.gethostname()}/{os.getpid()}/here")


def intent_problem(intent: Intent, follow: str) -> Shown | None:
    """What to show where the intent did not end well. None: it is done. `follow` says how to look again."""
    if intent.state == IntentState.DONE:
        return None
    body = intent_as_row(intent)
    if intent.state == IntentState.FAILED:
        error = FencepostError.from_row(intent.error)
        return Shown({**body, "error": intent.error}, [str(error)], error_code(error))
    if intent.state == IntentState.CANCELLED:
        return Shown(body, ["It was cancelled."], UNKNOWN)
    waiting = intent_waiting(intent, now_get())
    if waiting is None:
        return None
    if waiting.remedy:
        says = f"{waiting.says} {waiting.remedy}{OR_HERE}"
    elif intent.state == IntentState.QUEUED:
        says = waiting.says
    else:
        says = f"{waiting.says} It is not ended yet; the work goes on without you."
    return Shown(body, [says, follow], UNKNOWN)


def progress_shown(stderr: Any) -> Any:
    """A progress bar on a terminal, plain lines elsewhere."""
    is_terminal = getattr(stderr, "isatty", lambda: False)() and sys.stderr.isatty()
    return _Bar() if is_terminal else _Lines(stderr)


class _Lines(AbstractContextManager["_Lines"]):
    """One line a step, and one more for every ten seconds that it lasts: a log of it stays short, and is never silent."""

    def __init__(self, stderr: Any) -> None:
        self._stderr, self._step = stderr, ""
        self._began = self._said_at = time.monotonic()

    def __exit__(self, *_: object) -> None:
        return None

    def say(self, text: str) -> None:
        self._stderr.write(visible(text))

    def step(self, progress: dict[str, Any]) -> None:
        now = time.monotonic()
        if progress.get("step") != self._step:
            self._step, self._began, self._said_at = str(progress.get("step")), now, now
            self._stderr.write(visible(progress_line(progress)))
        elif now - self._said_at >= AGAIN_SECONDS:
            self._said_at = now
            self._stderr.write(visible(f"{progress_line(progress)} ({now - self._began:.0f} s so far)"))


class _Bar(AbstractContextManager["_Bar"]):
    """rich's bar; removed when the work ends, so that the result stands alone."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("waiting for a worker", total=None)

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        self._bar.console.print(visible(text), highlight=False, markup=False)

    def step(self, progress: dict[str, Any]) -> None:
        total, done = progress.get("total"), progress.get("done")
        self._bar.update(self._task, description=visible(progress_line(progress)), total=total, completed=done or 0)


def progress_line(progress: dict[str, Any]) -> str:
    """A progress row in words: `reading: 1,200 of 5,000 events, 300/s`.

    >>> progress_line({"step": "staging", "done": 1200, "total": 5000, "unit": "events", "rate_per_second": 300.0})
    'staging: 1,200 of 5,000 events, 300/s'
    """
    parts = []
    if progress.get("done") is not None:
        of = f" of {progress['total']:,}" if progress.get("total") is not None else ""
        parts.append(f"{progress['done']:,}{of} {progress.get('unit', '')}".strip())
    if progress.get("rate_per_second"):
        parts.append(f"{progress['rate_per_second']:,.0f}/s")
    if progress.get("says"):
        parts.append(str(progress["says"]))
    step = str(progress.get("step") or "working")
    return f"{step}: {', '.join(parts)}" if parts else step
