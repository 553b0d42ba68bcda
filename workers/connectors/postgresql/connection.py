"""Connections to PostgreSQL: made from a credential reference at the moment of use, and read-only for readers.

One law: a reader's transaction is REPEATABLE READ READ ONLY from its first statement, carries everything it sets in
itself (so that a transaction pooler changes nothing), and would rather fail than read rows through a policy.

A role's `statement_timeout` is its administrator's wish: what writes keeps it. A reading, which nobody waits for and
which must live as long as it takes, has the option's own. `transaction_timeout` ends transactions that somebody forgot;
ours end by `idle_in_transaction_session_timeout`, which they set themselves, so it is lifted in them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from recovery_api.domain.errors import FencepostError, SnapshotLost
from workers.connectors.credentials import credential_resolve
from workers.connectors.deadlines import ANSWER_SECONDS, ASKING, Step
from workers.connectors.kept import kept_here
from workers.connectors.postgresql.answering import AnsweringConnection, conninfo_kept_alive
from workers.connectors.postgresql.cut_short import limits_named
from workers.connectors.postgresql.driver_errors import connecting_errors, driver_errors, error_from_driver
from workers.connectors.postgresql.own_database import own_database_refuse

APPLICATION_NAME = "fencepost"
READER_NAME = "fencepost reader"
"""What a reader's session is called: it draws no number and never commits a row."""

BEGIN: LiteralString = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"

CANONICAL_SETTINGS: LiteralString = """
SET LOCAL search_path = pg_catalog;
SET LOCAL row_security = off;
SET LOCAL TimeZone = 'UTC';
SET LOCAL DateStyle = 'ISO, MDY';
SET LOCAL IntervalStyle = 'postgres';
SET LOCAL bytea_output = 'hex';
SET LOCAL extra_float_digits = 1;
SET LOCAL standard_conforming_strings = on;
"""
"""What the canonical form of a value depends on, and which rows are seen: the same for whoever reads or writes digests."""

READER_SETTINGS: LiteralString = (
    CANONICAL_SETTINGS
    + """
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL lock_timeout = '20s';
SET LOCAL idle_in_transaction_session_timeout = '300s';
"""
)
"""`row_security = off` makes PostgreSQL refuse what a policy would silently leave out. A snapshot that is held is kept from
idling (`snapshot_kept`): one whose holder vanished holds nothing up for longer than this."""

WRITER_SETTINGS: LiteralString = """
SET LOCAL idle_in_transaction_session_timeout = {};
SET LOCAL lock_timeout = {};
"""
"""A vanished worker's open transaction at a sink ends by itself, once the server has waited for it as long as it would
have been waited for."""

KEEP_SECONDS = 60.0
LOCK_MARGIN_SECONDS = 5.0
"""How much longer than a step's own wait a lock it did not foresee is waited for, before it is named."""
HAS_TRANSACTION_TIMEOUT = 170000

READING = Step("a reading")
LOST_AT_IMPORT = ("22023", "42704", "55000", "0A000")
"""States of a snapshot that is gone: its holder ended, or belongs to another server or database."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect and how long to wait. `reference` is a credential reference, never the credential; `names` are
    the schemas, tables and columns of the options, which an error may name."""

    reference: str
    connect_timeout_seconds: int = 10
    statement_timeout_seconds: int = 0
    names: tuple[str, ...] = ()
    answer_timeout_seconds: int = ANSWER_SECONDS

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Address:
        return cls(
            options["connection"],
            options.get("connect_timeout_seconds") or 10,
            options.get("statement_timeout_seconds") or 0,
            _names_of(options),
            options.get("answer_timeout_seconds") or ANSWER_SECONDS,
        )


def _names_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Every text of the options but the references, lists and mappings included."""
    found: list[str] = []
    for name, value in options.items():
        if not name.endswith("connection"):
            parts = (
                value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else [value]
            )
            found += [part for part in parts if isinstance(part, str)]
    return tuple(dict.fromkeys(found))


def endpoint_describe(conninfo: str, reference: str) -> str:
    """Database, host and role of a connection string, for messages; the reference where it cannot be read."""
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.Error:
        return reference
    host = parts.get("host") or parts.get("hostaddr") or "the local socket"
    port = f":{parts['port']}" if parts.get("port") else ""
    role = f" as {parts['user']}" if parts.get("user") else ""
    return f"{parts.get('dbname') or 'the default database'} at {host}{port}{role}"


@contextmanager
def connection_open(
    address: Address, application_name: str = APPLICATION_NAME, step: Step = ASKING, is_known: bool = False
) -> Iterator[AnsweringConnection]:
    """An autocommit connection, closed at the end; inside, the driver's exceptions leave as the product's errors.

    `step`: what is asked over it, which says how long an answer may take (workers.connectors.deadlines). `is_known`: what
    is asked first shows that the database is one that was looked at before.

    Raises: AccessDenied, NotFound (database), Unreachable, NoAnswer, CutShort, BadInput (unreadable connection string);
    Refused for the product's own database.
    """
    conninfo = credential_resolve(address.reference)
    endpoint = endpoint_describe(conninfo, address.reference)
    with connecting_errors(endpoint):
        connection = AnsweringConnection.connect(
            conninfo_kept_alive(conninfo),
            autocommit=True,
            connect_timeout=address.connect_timeout_seconds,
            application_name=application_name,
            client_encoding="UTF8",
            prepare_threshold=None,
        )
    connection.begin_to_listen(endpoint, conninfo, application_name, address.answer_timeout_seconds, step)
    connection.statement_seconds = address.statement_timeout_seconds
    try:
        with driver_errors(endpoint, address.names), limits_named(connection):
            if not is_known:
                own_database_refuse(connection, address.reference)
            yield connection
    finally:
        connection.close()


@contextmanager
def transaction_write(connection: AnsweringConnection, address: Address) -> Iterator[None]:
    """A transaction at a sink: its waits for locks are bounded by the connection's step, and it ends if we vanish."""
    lock_seconds = connection.step.waits_seconds + LOCK_MARGIN_SECONDS
    seconds = (address.answer_timeout_seconds, lock_seconds)
    settings = sql.SQL(WRITER_SETTINGS).format(*(sql.Literal(round(one * 1000)) for one in seconds))
    if address.statement_timeout_seconds:
        settings += _statement_timeout(address)
    with connection.transaction():
        connection.execute(settings + _transaction_timeout_lift(connection))
        yield


@contextmanager
def snapshot_kept(connection: AnsweringConnection) -> Iterator[None]:
    """While others read in this connection's snapshot it is kept from idling out, by a question now and then.

    A question that fails ends the keeping, not the work: who joins the snapshot afterwards finds it gone.
    """
    over = threading.Event()

    def keep() -> None:
        with suppress(psycopg.Error, FencepostError):
            while not over.wait(KEEP_SECONDS):
                connection.execute("SELECT")

    keeper = threading.Thread(target=keep, name="keeps a snapshot", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()


@contextmanager
def snapshot_open(
    address: Address, snapshot: str | None = None, application_name: str = READER_NAME, step: Step = READING
) -> Iterator[AnsweringConnection]:
    """A connection inside a read-only transaction with one snapshot; `snapshot` joins an exported one.

    Nothing has been read yet when it is handed over, so the caller's first query takes the snapshot.

    Raises: SnapshotLost where the exported snapshot is gone; those of `connection_open`.
    """
    # an exported snapshot can be joined in its own database alone, and whoever exported it has looked
    with connection_open(address, application_name, step, is_known=snapshot is not None) as connection:
        transaction_begin(connection, address, snapshot)
        yield connection


@contextmanager
def snapshot_joined(address: Address, snapshot: str) -> Iterator[AnsweringConnection]:
    """As `snapshot_open` with an exported snapshot; inside `kept_between_ranges` the connection serves whoever joins it next.

    Raises: those of `snapshot_open`.
    """
    kept, key = kept_here(), (address, snapshot)
    if kept is None:
        with snapshot_open(address, snapshot) as connection:
            yield connection
        return
    found = kept.take(key)
    if found is None:
        closing = ExitStack()
        connection = closing.enter_context(snapshot_open(address, snapshot))
    else:
        closing, connection = found
    is_well = False
    try:
        with driver_errors(endpoint_describe(connection.info.dsn, address.reference), address.names):
            with limits_named(connection):
                yield connection
            is_well = connection.info.transaction_status is TransactionStatus.INTRANS
    finally:
        if is_well:
            kept.give(key, closing, connection)
        else:
            closing.close()


def transaction_begin(connection: psycopg.Connection[Any], address: Address, snapshot: str | None = None) -> None:
    """Begins the reader's transaction, in one message. Raises: SnapshotLost."""
    joined: sql.Composable = sql.SQL("")
    if snapshot is not None:
        joined = sql.SQL("SET TRANSACTION SNAPSHOT {};").format(sql.Literal(snapshot))
    settings = sql.SQL(READER_SETTINGS) + _statement_timeout(address) + _transaction_timeout_lift(connection)
    statement = sql.SQL(BEGIN) + joined + settings
    try:
        connection.execute(statement)
    except psycopg.Error as error:
        if snapshot is None or error.sqlstate not in LOST_AT_IMPORT:
            raise
        endpoint = endpoint_describe(connection.info.dsn, address.reference)
        raise SnapshotLost(endpoint, "its holder has ended") from error_from_driver(error, endpoint)


def _statement_timeout(address: Address) -> sql.Composed:
    milliseconds = sql.Literal(address.statement_timeout_seconds * 1000)
    return sql.SQL("SET LOCAL statement_timeout = {};").format(milliseconds)


def _transaction_timeout_lift(connection: psycopg.Connection[Any]) -> sql.SQL:
    """Nothing where the server is too old to have it."""
    has_it = connection.info.server_version >= HAS_TRANSACTION_TIMEOUT
    return sql.SQL("SET LOCAL transaction_timeout = 0;" if has_it else "")
