"""Appending owed rows to a table without a fence, in one transaction.

The law: what is missing is worked out after the lock was granted, by a statement whose snapshot is younger than the
lock, and what landed is read back before the commit. So whoever waits for the lock behind us, a recoverer or a relay,
finds everything that we landed. A session whose worker is gone either ends with its transaction undone, or has
committed before its successor looks.

1. The rows are copied to a temporary table. Nothing of the target table is locked meanwhile.
2. Each row is converted to the table's own types and read again through the mapping: it must give what is owed.
3. The lock, SHARE ROW EXCLUSIVE, for a bounded time.
4. What is there already is noted; the rest is inserted in the order of coordinates; what is there is read again.
5. Commit, and wait until it is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

from recovery_api.domain.errors import Refused, SinkBusy
from workers.connectors.deadlines import Step
from workers.connectors.postgresql.answering import AnsweringConnection
from workers.connectors.postgresql.connection import CANONICAL_SETTINGS, Address, connection_open, transaction_write
from workers.connectors.postgresql.flushing import flush_wait
from workers.connectors.postgresql.opening import Opened
from workers.connectors.protocols.delivery import Answer
from workers.connectors.readings import BatchDigest
from workers.connectors.sinks.kit.holders import holders_say
from workers.connectors.sinks.table.owed import Figures, OwedRows, row_unsuitable
from workers.connectors.sinks.table.target import Target
from workers.faults import Point, crash_point

APPENDED = "appended"
LANDING_WAIT_SECONDS = 25.0
"""For a lock that the landing did not foresee: a row that a foreign key or a trigger wants."""
COPYING_IDLE_SECONDS = 300

AS_A_RELAY = """
SET LOCAL search_path TO DEFAULT;
SET LOCAL TimeZone TO DEFAULT;
SET LOCAL DateStyle TO DEFAULT;
SET LOCAL IntervalStyle TO DEFAULT;
SET LOCAL bytea_output TO DEFAULT;
SET LOCAL extra_float_digits TO DEFAULT;
SET LOCAL standard_conforming_strings TO DEFAULT;
"""
"""While rows are inserted, for the table's own triggers: what any session of this login has."""

ON_DISK = """
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')
"""

HOLDERS = """
SELECT DISTINCT ON (l.virtualtransaction) jsonb_strip_nulls(jsonb_build_object(
    'pid', l.pid, 'prepared_transaction', p.gid, 'application', nullif(a.application_name, ''),
    'role', coalesce(a.usename, p.owner), 'state', a.state, 'since', a.state_change,
    'transaction_start', coalesce(a.xact_start, p.prepared), 'query_start', a.query_start))
FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_locks x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid' AND x.granted
    AND x.mode = 'ExclusiveLock' AND x.virtualtransaction = l.virtualtransaction
LEFT JOIN pg_prepared_xacts p ON p.transaction = x.transactionid
WHERE l.locktype = 'relation' AND l.relation::bigint = ANY(%s::bigint[]) AND l.granted
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND l.mode NOT IN ('AccessShareLock', 'RowShareLock') AND l.pid IS DISTINCT FROM pg_backend_pid()
ORDER BY l.virtualtransaction
"""
"""Who holds what SHARE ROW EXCLUSIVE has to wait for."""


def append(
    address: Address,
    table_open: Callable[[psycopg.Connection[Any]], Opened],
    content: Iterator[pa.RecordBatch],
    wait_seconds: float,
    owed: BatchDigest | None = None,
) -> Answer:
    """As AppendedDelivery.append."""
    with appended(address, table_open, content, wait_seconds, owed) as figures:
        crash_point(Point.DURING_APPEND)
    crash_point(Point.AFTER_APPEND)
    return Answer(APPENDED, figures.as_row())


@contextmanager
def appended(
    address: Address,
    table_open: Callable[[psycopg.Connection[Any]], Opened],
    content: Iterator[pa.RecordBatch],
    wait_seconds: float,
    owed: BatchDigest | None = None,
) -> Iterator[Figures]:
    """Everything but the commit, which comes at the end: inside it the rows are there, read back, and the lock is held.

    `table_open`: reads the table and its mapping over the connection it is given.
    """
    step = Step("the copying", waits_seconds=LANDING_WAIT_SECONDS)
    with connection_open(address, step=step) as connection:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED  # whatever the role's default is
        with transaction_write(connection, address):
            connection.execute(
                f"{CANONICAL_SETTINGS} SET LOCAL idle_in_transaction_session_timeout = '{COPYING_IDLE_SECONDS}s'"
            )
            connection.execute(ON_DISK)
            target = Target.open(connection, table_open(connection))
            rows = OwedRows(connection, target)
            count = _copy(connection, target, rows, content)
            rows.digest()
            _came_check(rows, count, owed)
            rows.bring()
            rows.check()
            connection.step = Step("the table's lock", count, wait_seconds)
            _lock(connection, target, wait_seconds)
            yield _land(connection, target, rows, address)
        flush_wait(connection, address)


def _copy(connection: AnsweringConnection, target: Target, rows: OwedRows, content: Iterator[pa.RecordBatch]) -> int:
    count = 0
    for batch in content:
        connection.step = Step("the copying", batch.num_rows, LANDING_WAIT_SECONDS)
        refused = np.flatnonzero(np.asarray(target.unfit(batch)))
        if len(refused):
            row = batch.slice(int(refused[0]), 1).to_pylist()[0]
            raise row_unsuitable(row["position"], row["ordinal"], "reading it again would not give what was committed")
        with connection.cursor() as cursor:
            rows.copy(cursor, batch, count)
        count += batch.num_rows
    return count


def _came_check(rows: OwedRows, count: int, owed: BatchDigest | None) -> None:
    if owed is None or (owed.count, owed.digest) == (count, found := rows.sum()):
        return
    problem = f"{count} events came with digest {found}, and {owed.count} with digest {owed.digest} are owed"
    raise Refused("Appending", problem, "Nothing was landed. Look at what changes contents on the way, and plan again.")


def _lock(connection: AnsweringConnection, target: Target, wait_seconds: float) -> None:
    """Raises: SinkBusy naming who writes the table, or recovers into it."""
    milliseconds = max(1, round(wait_seconds * 1000))
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {milliseconds}")
            connection.execute(sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(target.name))
    except psycopg.errors.LockNotAvailable as error:
        found = [row for (row,) in connection.execute(HOLDERS.encode(), [target.tree])]
        seen = "; ".join(connection.blockers)
        raise SinkBusy(holders_say(found) if found or not seen else seen, f"{wait_seconds:g}") from _bare(error)
    connection.execute(f"SET LOCAL lock_timeout = {round(LANDING_WAIT_SECONDS * 1000)}")


def _land(connection: AnsweringConnection, target: Target, rows: OwedRows, address: Address) -> Figures:
    """Under the lock. A worker that vanishes now holds the table no longer than it would have been waited for."""
    connection.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{address.answer_timeout_seconds}s'")
    rows.meet("before")
    connection.execute(AS_A_RELAY)
    rows.insert()
    connection.execute(CANONICAL_SETTINGS)
    rows.meet("after")
    figures = rows.figures()
    if figures.wrong_count:
        first = ", ".join(figures.wrong)
        problem = (
            f"of {figures.sent_count} events sent, {figures.wrong_count} were not there, or not as they were sent, when the"
            f" table was read back (first at {first})"
        )
        remedy = "Nothing was landed: it was rolled back. Look at the table's triggers."
        raise Refused(f"Appending to {target.place}", problem, remedy)
    return figures


def _bare(error: psycopg.Error) -> psycopg.Error:
    """Without the connection it came from, which holds the password in plain."""
    error._pgconn = None
    return error
