"""Every exception of the driver has its place in the product's error tree, and none carries a secret along."""

from __future__ import annotations

import inspect
from typing import Any

import psycopg
import pytest
from psycopg import errors

from recovery_api.domain.errors import (
    AccessDenied,
    BadInput,
    FencepostError,
    NotFound,
    OutOfRoom,
    SinkBusy,
    SnapshotLost,
    TerminalError,
    Unreachable,
)
from workers.connectors.postgresql.connection import endpoint_describe
from workers.connectors.postgresql.driver_errors import (
    BY_CLASS,
    BY_EXCEPTION,
    BY_SQLSTATE,
    connecting_errors,
    driver_errors,
    error_from_driver,
)

EXCEPTIONS = sorted(
    {
        one
        for module in (psycopg, errors)
        for _, one in inspect.getmembers(module, inspect.isclass)
        if issubclass(one, psycopg.Error | psycopg.Warning)
    },
    key=lambda one: (one.__module__, one.__name__),
)


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_every_exception_of_the_driver_is_mapped(kind: type[Exception]) -> None:
    sqlstate = getattr(kind, "sqlstate", None)
    if sqlstate:
        assert sqlstate in BY_SQLSTATE or sqlstate[:2] in BY_CLASS
    else:
        assert any(issubclass(kind, known) for known in BY_EXCEPTION)
    error = error_from_driver(kind("it did not work"), "orders at db")
    assert isinstance(error, FencepostError) and type(error) is not FencepostError
    assert "it did not work" not in repr(error.as_row()), "a server's text quotes rows"
    assert sqlstate is None or sqlstate in str(error)


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_s1_no_text_of_the_server_passes_while_connecting(kind: type[Exception]) -> None:
    with pytest.raises(FencepostError) as raised, connecting_errors("orders at db"), driver_errors("orders at db"):
        raise kind('connection failed: FATAL: database "hush" does not exist\nDETAIL: (hush)')
    assert "hush" not in repr(raised.value.as_row())


@pytest.mark.parametrize("words", ['FATAL: password authentication failed for user "hush"', "hush cannot be described"])
def test_s1_words_without_a_state_choose_the_sentence_and_stay_behind(words: str) -> None:
    """libpq gives a connection that was not made no SQLSTATE: its words are all there is, and they quote names."""
    with pytest.raises(FencepostError) as raised, connecting_errors("orders at db"):
        raise psycopg.OperationalError(f"connection failed: {words}")
    assert "hush" not in repr(raised.value.as_row())


def test_s1_only_names_of_ours_are_named() -> None:
    said = errors.UndefinedColumn('column "kee" does not exist\nHINT: Perhaps you meant "hush".')
    error = error_from_driver(said, "db", ["kee", "outbox"])
    assert "'kee'" in str(error) and "hush" not in str(error) and "outbox" not in str(error)
    held = error_from_driver(errors.InvalidTextRepresentation('invalid input: "kee"'), "db", ["kee"])
    assert "kee" not in str(held), "a value is not named, even where a name of ours is spelled like it"


def test_the_driver_has_exceptions_to_map() -> None:
    assert len(EXCEPTIONS) > 200


@pytest.mark.parametrize(
    ("kind", "expected", "is_transient"),
    [
        (errors.InsufficientPrivilege, AccessDenied, False),
        (errors.InvalidPassword, AccessDenied, False),
        (errors.InvalidCatalogName, NotFound, False),
        (errors.UndefinedTable, NotFound, False),
        (errors.UndefinedColumn, NotFound, False),
        (errors.LockNotAvailable, SinkBusy, True),
        (errors.SerializationFailure, SnapshotLost, True),
        (errors.AdminShutdown, Unreachable, True),
        (errors.CannotConnectNow, Unreachable, True),
        (errors.TooManyConnections, OutOfRoom, True),
        (errors.DiskFull, OutOfRoom, True),
        (errors.OutOfMemory, OutOfRoom, True),
        (psycopg.OperationalError, Unreachable, True),
        (errors.ConnectionTimeout, Unreachable, True),
        (errors.DataCorrupted, TerminalError, False),
    ],
)
def test_what_may_succeed_later_is_told_from_what_someone_must_mend(
    kind: type[psycopg.Error], expected: type[FencepostError], is_transient: bool
) -> None:
    error = error_from_driver(kind("said so"), "db")
    assert isinstance(error, expected)
    assert error.is_transient is is_transient


def test_a_state_that_only_a_users_function_raises_is_terminal() -> None:
    class OwnState(psycopg.DatabaseError):
        sqlstate = "ZZ001"

    assert not error_from_driver(OwnState("no"), "db").is_transient


def test_only_the_first_line_of_a_servers_message_leaves() -> None:
    error = error_from_driver(errors.UniqueViolation("duplicate key\nDETAIL: Key (card)=(4111) exists"), "db")
    assert "4111" not in str(error)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('FATAL:  password authentication failed for user "x"', AccessDenied),
        ("fe_sendauth: no password supplied", AccessDenied),
        ('FATAL:  no pg_hba.conf entry for host "h"', AccessDenied),
        ('FATAL:  role "x" is not permitted to log in', AccessDenied),
        ('FATAL:  database "nope" does not exist', NotFound),
        ("connection to server failed: Connection refused", Unreachable),
        ("FATAL:  the database system is starting up", Unreachable),
        ("FATAL:  sorry, too many clients already", OutOfRoom),
        ("timeout expired", Unreachable),
    ],
)
def test_a_refused_connection_is_read_from_the_servers_words(words: str, expected: type[FencepostError]) -> None:
    with pytest.raises(expected), connecting_errors("orders at db"):
        raise psycopg.OperationalError(f"connection failed: {words}")


def test_an_unreadable_connection_string_leaves_no_trace_of_itself() -> None:
    with pytest.raises(BadInput) as raised, connecting_errors("env:DSN"):
        raise psycopg.ProgrammingError('invalid percent-encoded token: "hush%zz"')
    assert "hush" not in str(raised.value)
    assert raised.value.__cause__ is None and raised.value.__suppress_context__


def test_the_drivers_exception_is_chained_without_its_connection() -> None:
    class Holder:
        password = b"hush"

    cause = psycopg.OperationalError("gone", pgconn=Holder())  # type: ignore[arg-type]
    with pytest.raises(Unreachable) as raised, driver_errors("db"):
        raise cause
    assert raised.value.__cause__ is cause
    assert cause.pgconn is None


@pytest.mark.parametrize(
    ("conninfo", "said"),
    [
        ("postgresql://relay:hush@db.example:5433/orders", "orders at db.example:5433 as relay"),
        ("host=h password=hush", "the default database at h"),
        ("dbname=d", "d at the local socket"),
        ("postgresql://u:hush%zz@h/db", "env:DSN"),
    ],
)
def test_an_endpoint_is_named_without_its_password(conninfo: str, said: str) -> None:
    described: Any = endpoint_describe(conninfo, "env:DSN")
    assert described == said and "hush" not in described
