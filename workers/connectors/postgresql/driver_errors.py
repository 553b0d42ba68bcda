"""psycopg's exceptions as the product's errors: the one place where they are mapped.

One law: every exception of the driver has an entry here, and what leaves is our own sentence, never the driver's or the
server's text: it quotes values, rows and connection strings. The driver's exception is chained for who debugs, without
its connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
from workers.connectors.postgresql.sqlstates import connecting_sentence_of, sentence_of

Made = Callable[[str, str], FencepostError]
"""From the endpoint and our sentence to the error."""


def _unreachable(endpoint: str, message: str) -> FencepostError:
    return Unreachable(endpoint, message)


def _snapshot_lost(endpoint: str, message: str) -> FencepostError:
    return SnapshotLost(endpoint, message)


def _transient(endpoint: str, message: str) -> FencepostError:
    return TransientError(f"{endpoint}: {message}. Try again.")


def _busy(endpoint: str, message: str) -> FencepostError:
    return SinkBusy(f"another transaction's lock at {endpoint} ({message})", "the configured")


def _no_room(remedy: str) -> Made:
    return lambda endpoint, message: OutOfRoom(endpoint, message, remedy)


def _denied(endpoint: str, message: str) -> FencepostError:
    return AccessDenied(endpoint, message, "Grant the role what it needs, or use another credential.")


def _not_found(endpoint: str, message: str) -> FencepostError:
    return NotFound(f"What was asked for ({message})", endpoint, "Look at its options: schema, table and columns.")


def _unsuitable(endpoint: str, message: str) -> FencepostError:
    return Unsuitable(endpoint, message, "Look at its options: what is there cannot serve as it is mapped.")


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
    "53000": _no_room("Look at its log."),
    "53100": _no_room("Make room on its disk; the work is tried again."),
    "53200": _no_room("Lower what runs beside it, or give it more."),
    "53300": _no_room("Raise max_connections, or end what idles."),
    "53400": _no_room("Look at its log."),
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
    "53": _no_room("Look at its log."),
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

BY_EXCEPTION: dict[type[Exception], tuple[Made, str]] = {
    psycopg.errors.ConnectionTimeout: (_unreachable, "no answer came in time"),
    psycopg.errors.CancellationTimeout: (_unreachable, "a cancellation was not answered in time"),
    psycopg.DataError: (_unsuitable, "a value cannot be brought over"),
    psycopg.IntegrityError: (_refused, "a constraint does not hold"),
    psycopg.InternalError: (_terminal, "the server met a defect of its own"),
    psycopg.NotSupportedError: (_unsuitable, "the server cannot do this"),
    psycopg.ProgrammingError: (_terminal, "the driver was used wrongly"),
    psycopg.OperationalError: (_unreachable, "the connection broke"),
    psycopg.InterfaceError: (_unreachable, "the connection is closed"),
    psycopg.DatabaseError: (_terminal, "the database could not serve"),
    psycopg.Error: (_terminal, "the driver gave up"),
    psycopg.Warning: (_terminal, "the driver warned"),
}
"""The driver's own exceptions, which carry no SQLSTATE; the first that fits."""

REFUSED_CONNECTION: Mapping[str, Made] = {
    "the login or its password was not accepted": _denied,
    "its pg_hba.conf does not let this login in from here": _denied,
    "there is no such login, or it may not connect here": _denied,
    "there is no such database": _not_found,
    "the encrypted connection was not accepted (sslmode, certificates)": _denied,
    "it has no connection free": BY_SQLSTATE["53300"],
}
"""Sentences of `sqlstates.CONNECTING` that somebody must act on; every other may pass by itself."""


@contextmanager
def driver_errors(endpoint: str, names: Iterable[str] = ()) -> Iterator[None]:
    """Inside it the driver's exceptions leave as the product's errors. `endpoint` names the place, without a secret;
    `names` are ours: tables, columns and schemas as they were registered."""
    try:
        yield
    except (psycopg.Error, psycopg.Warning) as error:
        raise error_from_driver(error, endpoint, names) from _without_connection(error)


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
        if error.sqlstate:
            raise error_from_driver(error, endpoint) from _without_connection(error)
        sentence = connecting_sentence_of(str(error))
        made = REFUSED_CONNECTION.get(sentence, _unreachable)(endpoint, sentence)
        raise made from _without_connection(error)


def error_from_driver(error: Exception, endpoint: str, names: Iterable[str] = ()) -> FencepostError:
    """The product's error for one of psycopg's. A state that only a user's function can raise is a refusal."""
    sqlstate = getattr(error, "sqlstate", None)
    if sqlstate:
        make = BY_SQLSTATE.get(sqlstate) or BY_CLASS.get(sqlstate[:2], _refused)
        return make(endpoint, sentence_of(sqlstate, str(error), names))
    make, sentence = next(found for kind, found in BY_EXCEPTION.items() if isinstance(error, kind))
    return make(endpoint, sentence)


def _without_connection(error: Exception) -> Exception:
    """The same exception without the connection it came from, which holds the password in plain."""
    if isinstance(error, psycopg.Error):
        error._pgconn = None
    return error
