"""psycopg's exceptions as the product's errors: the one place where they are mapped.

One law: every exception of the driver has an entry here, and what leaves is never the driver's text with a secret in
it: a refused connection string is not quoted, a server's DETAIL (which quotes rows) is left out, and the driver's
exception is chained without its connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from recovery_api.domain.errors import (
    AccessDenied,
    BadInput,
    FencepostError,
    NotFound,
    OutOfRoom,
    Refused,
    SinkBusy,
    SnapshotLost,
    TerminalError,
    TransientError,
    Unreachable,
    Unsuitable,
)

LONGEST_REASON = 300

Made = Callable[[str, str], FencepostError]
"""From the endpoint and the server's message to the error."""


def _unreachable(endpoint: str, message: str) -> FencepostError:
    return Unreachable(endpoint, message)


def _snapshot_lost(endpoint: str, message: str) -> FencepostError:
    return SnapshotLost(endpoint, message)


def _transient(endpoint: str, message: str) -> FencepostError:
    return TransientError(f"{endpoint}: {message}. Try again.")


def _busy(endpoint: str, message: str) -> FencepostError:
    return SinkBusy(f"another transaction's lock at {endpoint} ({message})", "the configured")


def _no_room(what: str, remedy: str) -> Made:
    return lambda endpoint, _: OutOfRoom(endpoint, what, remedy)


def _denied(endpoint: str, message: str) -> FencepostError:
    return AccessDenied(endpoint, message, "Grant the role what it needs, or use another credential.")


def _not_found(endpoint: str, message: str) -> FencepostError:
    return NotFound(message.removesuffix(" does not exist"), endpoint, "")


def _unsuitable(endpoint: str, message: str) -> FencepostError:
    return Unsuitable(endpoint, message, "What is there cannot serve as it is mapped.")


def _refused(endpoint: str, message: str) -> FencepostError:
    return Refused(f"A statement at {endpoint}", message, "")


def _terminal(endpoint: str, message: str) -> FencepostError:
    return TerminalError(f"{endpoint}: {message}")


BY_SQLSTATE: dict[str, Made] = {
    "22P05": _unsuitable,
    "25006": _refused,
    "25P03": _snapshot_lost,
    "25P04": _snapshot_lost,
    "42501": _denied,
    "42P01": _not_found,
    "42703": _not_found,
    "42704": _not_found,
    "42883": _not_found,
    "42P02": _terminal,
    "53000": _no_room("it says that its resources are used up", "Look at its log."),
    "53100": _no_room("no disk space is left there", "Make room on its disk; the work is tried again."),
    "53200": _no_room("no memory is left there", "Lower what runs beside it, or give it more."),
    "53300": _no_room("all its connections are taken", "Raise max_connections, or end what idles."),
    "53400": _no_room("a limit of its configuration is reached", "Look at its log."),
    "55P03": _busy,
    "55006": _busy,
    "57014": _transient,
    "57P04": _not_found,
    "58P01": _terminal,
}
"""Exact states, before their class."""

BY_CLASS: dict[str, Made] = {
    "02": _terminal,
    "03": _terminal,
    "08": _unreachable,
    "09": _refused,
    "0A": _unsuitable,
    "0B": _terminal,
    "0F": _terminal,
    "0L": _denied,
    "0P": _denied,
    "0Z": _terminal,
    "10": _unsuitable,
    "20": _terminal,
    "21": _unsuitable,
    "22": _unsuitable,
    "23": _refused,
    "24": _terminal,
    "25": _terminal,
    "26": _terminal,
    "27": _refused,
    "28": _denied,
    "2B": _refused,
    "2D": _terminal,
    "2F": _terminal,
    "34": _terminal,
    "38": _terminal,
    "39": _terminal,
    "3B": _terminal,
    "3D": _not_found,
    "3F": _not_found,
    "40": _snapshot_lost,
    "42": _unsuitable,
    "44": _refused,
    "53": _no_room("it says that its resources are used up", "Look at its log."),
    "54": _unsuitable,
    "55": _unsuitable,
    "57": _unreachable,
    "58": _transient,
    "72": _snapshot_lost,
    "F0": _terminal,
    "HV": _terminal,
    "P0": _refused,
    "XX": _terminal,
}
"""The first two characters of an SQLSTATE."""

BY_EXCEPTION: dict[type[Exception], Made] = {
    psycopg.errors.ConnectionTimeout: _unreachable,
    psycopg.errors.CancellationTimeout: _unreachable,
    psycopg.DataError: _unsuitable,
    psycopg.IntegrityError: _refused,
    psycopg.InternalError: _terminal,
    psycopg.NotSupportedError: _unsuitable,
    psycopg.ProgrammingError: _terminal,
    psycopg.OperationalError: _unreachable,
    psycopg.InterfaceError: _unreachable,
    psycopg.DatabaseError: _terminal,
    psycopg.Error: _terminal,
    psycopg.Warning: _terminal,
}
"""The driver's own exceptions, which carry no SQLSTATE; the first that fits."""

REFUSED_CONNECTION: tuple[tuple[re.Pattern[str], Made], ...] = (
    (re.compile(r"password authentication failed|no password supplied|authentication failed", re.I), _denied),
    (
        re.compile(r"no pg_hba\.conf entry|role .* does not exist|not permitted to log in|permission denied", re.I),
        _denied,
    ),
    (re.compile(r"too many clients|connection slots are reserved|too many connections", re.I), BY_SQLSTATE["53300"]),
    (re.compile(r'database "?.*"? does not exist', re.I), _not_found),
    (re.compile(r"invalid channel binding|certificate|SSL .*required|server does not support SSL", re.I), _denied),
)
"""libpq gives a refused connection no SQLSTATE, only the server's words."""


@contextmanager
def driver_errors(endpoint: str) -> Iterator[None]:
    """Inside it the driver's exceptions leave as the product's errors. `endpoint` names the place, without a secret."""
    try:
        yield
    except (psycopg.Error, psycopg.Warning) as error:
        raise error_from_driver(error, endpoint) from _without_connection(error)


@contextmanager
def connecting_errors(endpoint: str) -> Iterator[None]:
    """The same while connecting, where only the words tell a wrong password from a host that does not answer."""
    try:
        yield
    except psycopg.ProgrammingError as error:
        if error.sqlstate:
            raise error_from_driver(error, endpoint) from _without_connection(error)
        problem, remedy = "is not a connection string that libpq can read", "Write a URL or key=value pairs."
        raise BadInput(endpoint, problem, remedy) from None  # the driver's text quotes the password
    except psycopg.OperationalError as error:
        message = _first_line(str(error))
        for words, make in REFUSED_CONNECTION:
            if words.search(message):
                raise make(endpoint, message) from _without_connection(error)
        raise error_from_driver(error, endpoint) from _without_connection(error)


def error_from_driver(error: Exception, endpoint: str) -> FencepostError:
    """The product's error for one of psycopg's. A state that only a user's function can raise is a refusal."""
    sqlstate = getattr(error, "sqlstate", None)
    message = _message(error)
    if sqlstate:
        return (BY_SQLSTATE.get(sqlstate) or BY_CLASS.get(sqlstate[:2], _refused))(endpoint, message)
    return next(make for kind, make in BY_EXCEPTION.items() if isinstance(error, kind))(endpoint, message)


def _message(error: Exception) -> str:
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return _first_line(said or str(error))


def _first_line(text: str) -> str:
    lines = text.strip().splitlines() or ["no reason given"]
    said = lines[0].removeprefix("connection failed: ").rstrip(".")
    return said if len(said) <= LONGEST_REASON else said[:LONGEST_REASON] + "…"


def _without_connection(error: Exception) -> Exception:
    """The same exception without the connection it came from, which holds the password in plain."""
    if isinstance(error, psycopg.Error):
        error._pgconn = None
    return error
