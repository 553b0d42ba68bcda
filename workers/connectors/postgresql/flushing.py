"""Waiting until what was read outlasts a crash of the server.

The law: a commit can be seen before it is on disk, where its session has lowered `synchronous_commit`; so nothing is
concluded from a reading, and nothing is called landed, before the server's flush position has passed the insert
position read after it. Source: https://www.postgresql.org/docs/current/wal-async-commit.html
"""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg

from recovery_api.domain.errors import NotFlushed
from workers.connectors.postgresql.connection import READER_NAME, Address, connection_open

LONGEST_WAIT_SECONDS = 30.0
POLL_SECONDS = 0.01
PATIENCE_SECONDS = 0.1
"""After so long an empty transaction is committed: the server flushes no half-written page for a transaction that is
merely open, but it does flush up to every commit, in at most three rounds of its WAL writer."""

_POSITION = """
    SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn() END::text,
        CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn() END::text"""


def flush_wait(
    connection: psycopg.Connection[Any], address: Address, longest_seconds: float = LONGEST_WAIT_SECONDS
) -> None:
    """Returns once everything that `connection` can see now is flushed. At a replica at once: it shows no other.

    Raises: NotFlushed after `longest_seconds`.
    """
    wanted, flushed = _positions(connection)
    ends_at, asks_at = time.monotonic() + longest_seconds, time.monotonic() + PATIENCE_SECONDS
    ticks, has_asked = threading.Event(), False
    while wanted is not None and flushed is not None and _bytes(flushed) < _bytes(wanted):
        now = time.monotonic()
        if now >= ends_at:
            raise NotFlushed(connection.info.dbname, f"{longest_seconds:g}")
        if now >= asks_at and not has_asked:
            has_asked = True
            with connection_open(address, READER_NAME) as asking:
                asking.execute("SELECT pg_current_xact_id()")
        ticks.wait(POLL_SECONDS)
        _, flushed = _positions(connection)


def durability_weaknesses(connection: psycopg.Connection[Any]) -> list[str]:
    """A sentence for each setting with which the server's own flush proves nothing."""
    row = connection.execute("SELECT current_setting('fsync'), current_setting('full_page_writes')").fetchone()
    assert row is not None
    said = [
        "fsync is off: a crash of the server's machine may take back or damage what was committed. Set fsync = on.",
        "full_page_writes is off: a crash of the server's machine may leave torn pages. Set full_page_writes = on.",
    ]
    return [sentence for sentence, setting in zip(said, row, strict=True) if setting != "on"]


def _positions(connection: psycopg.Connection[Any]) -> tuple[str | None, str | None]:
    row = connection.execute(_POSITION).fetchone()
    assert row is not None
    return row[0], row[1]


def _bytes(position: str) -> int:
    high, _, low = position.partition("/")
    return int(high, 16) << 32 | int(low, 16)
