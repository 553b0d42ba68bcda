"""That work which talks to an end goes on, told to whoever listens: an intent's heart beats on this and on nothing else.

One law: a beat is said only after an end, or the engine, was heard or seen at work. That this process is alive is no
progress. On executors nobody listens; there a beat says nothing to anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[], None]

_listener: ContextVar[Listener | None] = ContextVar("progress listener", default=None)


@contextmanager
def progress_heard(listener: Listener) -> Iterator[None]:
    """Inside it `listener` is called at each beat of this thread's work. It is called often: it must be quick."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def progress_beat() -> None:
    """An end answered, sent a block of rows, or was seen at work for us."""
    if (listener := _listener.get()) is not None:
        listener()
