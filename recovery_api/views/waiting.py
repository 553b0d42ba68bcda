"""`?wait=30`: a look that waits for the end of the work, so that a tool need not ask every second.

A waiting request occupies a thread of its web process. A few may; whoever comes beyond that is answered at once, with
`Retry-After`, as everybody was before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from rest_framework.response import Response

from recovery_api.rows import Row
from recovery_api.serializers.fields import Query, WholeWord
from recovery_api.views.base import LOOK_AGAIN_SECONDS, answer

WAIT_MOST = 60
PAUSE_SECONDS = 0.25
WAITERS = 8
"""So many requests of one web process wait at once."""
_places = threading.BoundedSemaphore(WAITERS)


class WaitQuery(Query):
    wait = WholeWord(
        min_value=0,
        max_value=WAIT_MOST,
        help_text="Answer once it has ended, or after so many seconds. A busy process answers sooner: mind Retry-After.",
    )


def answered_when_over(look: Callable[[], tuple[Row, bool]], asked: dict[str, Any]) -> Response:
    """What `look` shows (a row, and whether it has ended), looked at again until it has, or the time asked for is over.

    One that has not ended says when to look again.
    """
    row, is_over = look()
    seconds = asked.get("wait", 0)
    if not is_over and seconds and _places.acquire(blocking=False):
        try:
            until, pause = time.monotonic() + seconds, threading.Event()
            while not is_over and (left := until - time.monotonic()) > 0:
                pause.wait(min(PAUSE_SECONDS, left))
                row, is_over = look()
        finally:
            _places.release()
    response = answer(row)
    if not is_over:
        response["Retry-After"] = LOOK_AGAIN_SECONDS
    return response
