"""Connections to PostgreSQL: made from a credential reference at the moment of use, and read-only for readers.

One law: a reader's transaction is REPEATABLE READ READ ONLY from its first statement, carries everything it sets in
itself (so that a transaction pooler changes nothing), and would rather fail than read rows through a policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from recovery_api.domain.errors import SnapshotLost
from workers.connectors.credentials import credential_resolve
from workers.connectors.postgresql.driver_errors import connecting_errors, driver_errors, error_from_driver

APPLICATION_NAME = "fencepost"
READER_NAME = "fencepost reader"
"""What a reader's session is called: it draws no number and never commits a row."""

BEGIN: LiteralString = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"

READER_SETTINGS: LiteralString = """
SET LOCAL search_path = pg_catalog;
SET LOCAL row_security = off;
SET LOCAL TimeZone = 'UTC';
SET LOCAL DateStyle = 'ISO';
SET LOCAL IntervalStyle = 'postgres';
SET LOCAL bytea_output = 'hex';
SET LOCAL extra_float_digits = 1;
SET LOCAL standard_conforming_strings = on;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL lock_timeout = '30s';
SET LOCAL idle_in_transaction_session_timeout = 0;
"""
"""`row_security = off` makes PostgreSQL refuse what a policy would silently leave out."""

LOST_AT_IMPORT = ("22023", "42704", "55000", "0A000")
"""States of a snapshot that is gone: its holder ended, or belongs to another server or database."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect and how long to wait. `reference` is a credential reference, never the credential."""

    reference: str
    connect_timeout_seconds: int = 10
    statement_timeout_seconds: int = 0

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Address:
        return cls(
            options["connection"],
            options.get("connect_timeout_seconds") or 10,
            options.get("statement_timeout_seconds") or 0,
        )


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
def connection_open(address: Address, application_name: str = APPLICATION_NAME) -> Iterator[psycopg.Connection[Any]]:
    """An autocommit connection, closed at the end; inside, the driver's exceptions leave as the product's errors.

    Raises: AccessDenied, NotFound (database), Unreachable, BadInput (unreadable connection string).
    """
    conninfo = credential_resolve(address.reference)
    endpoint = endpoint_describe(conninfo, address.reference)
    with connecting_errors(endpoint):
        connection = psycopg.connect(
            conninfo,
            autocommit=True,
            connect_timeout=address.connect_timeout_seconds,
            application_name=application_name,
            client_encoding="UTF8",
            prepare_threshold=None,
        )
    try:
        with driver_errors(endpoint):
            yield connection
    finally:
        connection.close()


@contextmanager
def snapshot_open(
    address: Address, snapshot: str | None = None, application_name: str = READER_NAME
) -> Iterator[psycopg.Connection[Any]]:
    """A connection inside a read-only transaction with one snapshot; `snapshot` joins an exported one.

    Nothing has been read yet when it is handed over, so the caller's first query takes the snapshot.

    Raises: SnapshotLost where the exported snapshot is gone; those of `connection_open`.
    """
    with connection_open(address, application_name) as connection:
        transaction_begin(connection, address, snapshot)
        yield connection


def transaction_begin(connection: psycopg.Connection[Any], address: Address, snapshot: str | None = None) -> None:
    """Begins the reader's transaction, in one message. Raises: SnapshotLost."""
    joined: sql.Composable = sql.SQL("")
    if snapshot is not None:
        joined = sql.SQL("SET TRANSACTION SNAPSHOT {};").format(sql.Literal(snapshot))
    timeout = sql.Literal(address.statement_timeout_seconds * 1000)
    statement = (
        sql.SQL(BEGIN) + joined + sql.SQL(READER_SETTINGS) + sql.SQL("SET LOCAL statement_timeout = {}").format(timeout)
    )
    try:
        connection.execute(statement)
    except psycopg.Error as error:
        if snapshot is None or error.sqlstate not in LOST_AT_IMPORT:
            raise
        endpoint = endpoint_describe(connection.info.dsn, address.reference)
        raise SnapshotLost(endpoint, "its holder has ended") from error_from_driver(error, endpoint)
