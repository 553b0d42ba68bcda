"""What a task keeps from one range to its next: connections inside the one snapshot that all of its ranges are read in.

Opening one costs its server 5 to 8 ms of processor time, by runs with and without (docs/performance.md).

The law: kept is only what ended well and waits in its transaction; nothing outlives the task, and nothing is kept so long
that the other side could have given it up meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

KEPT_SECONDS = 30.0
"""A tenth of what a server lets a reader's transaction idle."""

_here = threading.local()


class Kept:
    """By key what was given back, and what closes it."""

    def __init__(self) -> None:
        self._idle: dict[Hashable, list[tuple[float, ExitStack, Any]]] = {}

    def take(self, key: Hashable) -> tuple[ExitStack, Any] | None:
        """One that nobody uses; None: there is none."""
        idle = self._idle.get(key, [])
        while idle:
            given_at, closing, thing = idle.pop()
            if time.monotonic() - given_at < KEPT_SECONDS:
                return closing, thing
            closing.close()
        return None

    def give(self, key: Hashable, closing: ExitStack, thing: Any) -> None:
        self._idle.setdefault(key, []).append((time.monotonic(), closing, thing))

    def close(self) -> None:
        with ExitStack() as all_of_them:
            for idle in self._idle.values():
                for _, closing, _ in idle:
                    all_of_them.push(closing)
            self._idle.clear()


@contextmanager
def kept_between_ranges() -> Iterator[None]:
    """What is opened for one range in here may serve the next. In one thread; what is left is closed at the end."""
    before, _here.kept = kept_here(), Kept()
    try:
        yield
    finally:
        _here.kept.close()
        _here.kept = before


def kept_here() -> Kept | None:
    """None: nothing is kept here."""
    return getattr(_here, "kept", None)
