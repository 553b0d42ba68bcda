"""The one clock by which processes compare what they wrote: heartbeats, what is due, what is silent.

The law: a worker's own clock may be hours wrong. By that it would lose its work to others while it beats, or keep dead
work from them for hours; so liveness is told in the control database's time, and only there.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection


def now_get() -> datetime:
    """What the control database's clock says, aware."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    moment: datetime = now
    return moment
