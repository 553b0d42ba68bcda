"""Whether this worker was told to end: one byte that its processes share.

The main process sets it when it gets SIGTERM or SIGINT; the pool's processes, forked from it, see it between two steps
of their work and give the intent back. Shared memory and no lock: it can be set inside a signal handler.
"""

from __future__ import annotations

import mmap

_asked = mmap.mmap(-1, 1)
"""Anonymous memory is shared with every process forked later; a new main process has its own, unset."""


def stop_ask(*_: object, **__: object) -> None:
    """Told to end: nothing new is begun, and what runs stops at its next step."""
    _asked[0] = 1


def is_stop_asked() -> bool:
    return bool(_asked[0])
