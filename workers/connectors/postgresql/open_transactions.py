"""Transactions that are open at a source and may still commit, named so that a person can find and end them.

A name never carries a statement's text: it may hold a payload or a secret.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import psycopg

from workers.connectors.postgresql.connection import READER_NAME

OPEN = """
SELECT l.virtualtransaction::text, l.transactionid::text, p.gid::text, a.pid, a.usename::text, a.application_name,
       a.state, extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared))::float8,
       EXISTS (SELECT FROM pg_locks w WHERE w.locktype = 'relation' AND w.relation::bigint = ANY(%s::bigint[])
               AND w.virtualtransaction = l.virtualtransaction AND w.granted
               AND w.database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND w.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
FROM (
    SELECT virtualtransaction, pid, max(transactionid::text) AS transactionid
    FROM pg_locks WHERE locktype IN ('virtualxid', 'transactionid') AND mode = 'ExclusiveLock' AND granted
    GROUP BY virtualtransaction, pid
) l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND p.transaction::text = l.transactionid
WHERE (a.datname = current_database() AND a.pid <> pg_backend_pid()
       AND (a.application_name <> %s OR l.transactionid IS NOT NULL)
       AND coalesce(a.backend_type, '') NOT IN ('walsender', 'autovacuum worker'))
   OR p.database = current_database()
ORDER BY 8 DESC NULLS LAST
"""
"""A prepared transaction's locks have no process; its virtual transaction is `-1/` and its transaction id."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """One open or prepared transaction. `transaction` None: it has written nothing yet, and may have drawn a number."""

    virtual: str
    transaction: str | None
    gid: str | None
    pid: int | None
    role: str | None
    application: str | None
    state: str | None
    open_seconds: float | None
    is_writing_table: bool

    def __str__(self) -> str:
        age = "" if self.open_seconds is None else f", open for {self.open_seconds:.0f} s"
        name = f"transaction {self.transaction}" if self.transaction else f"transaction {self.virtual} (no id yet)"
        if self.gid is not None:
            return f"prepared {name} {self.gid!r}{age}; COMMIT or ROLLBACK PREPARED ends it"
        application = f", application {self.application!r}" if self.application else ""
        state = f", {self.state}" if self.state else ", state hidden from this role (pg_read_all_stats shows it)"
        return f"{name}, process {self.pid}, role {self.role!r}{application}{state}{age}"


def open_transactions(connection: psycopg.Connection[Any], leaves: Collection[int]) -> list[OpenTransaction]:
    """Transactions open in this database now, oldest first, Fencepost's own readers left out.

    `leaves`: the oids of the table and its partitions; who holds a writer's lock on one is a writer.
    """
    rows = connection.execute(OPEN.encode(), [list(leaves), READER_NAME])
    return [OpenTransaction(*row) for row in rows]
