"""Faults known to pass by themselves, as the product's own transient errors: they are tried again, with a bound.

What is not known here is a defect, and recorded as such.
"""

from __future__ import annotations

from collections.abc import Iterator

import django.db
import psycopg

from recovery_api.domain.errors import ControlDatabaseAway, TransientError
from workers.evidence.folder import folder_error

PASSING_STATES = ("08", "53", "57014", "57P", "40001", "40P01", "55P03", "25006", "58")
"""SQLSTATEs, or classes of them: no connection, no room, cancelled, shut down, serialization, deadlock, no lock in
time, read-only for now (a fail-over), an error of the system around the server."""


def passing_error(error: BaseException) -> TransientError | None:
    """The transient error that `error` is known to be, or None. Its text holds no value of any row."""
    for cause in _causes(error):
        if isinstance(cause, (psycopg.Error, django.db.Error)):
            state = getattr(cause, "sqlstate", None)
            if state is not None and state.startswith(PASSING_STATES):
                return ControlDatabaseAway(f"SQLSTATE {state}, {type(cause).__name__}").because(error)
            if state is None and isinstance(cause, (psycopg.OperationalError, psycopg.InterfaceError)):
                return ControlDatabaseAway("the connection ended").because(error)
        elif isinstance(cause, OSError) and (away := folder_error(cause)) is not None:
            return away.because(error)
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    for _ in range(10):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__
