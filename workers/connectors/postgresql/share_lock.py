"""The SHARE lock that makes a bare number's frontier safe, and what must hold for it to prove anything.

While the lock is granted no transaction that inserted is still open, so every number drawn so far is visible or gone
for good; numbers drawn later are higher. That is only so where every number is drawn inside its INSERT: `nextval`
called before it takes no lock on the table. And only where the lock is held: `pg_locks` is asked, never a function
that was to take it. Source: PostgreSQL manual, "Explicit Locking" and "Sequence Manipulation".

One law: the lock holds up writers, so a try is short, is not begun behind a transaction that is going to block it, and
ends as soon as the snapshot exists.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.grounds import Catalogue, drawn_judge
from workers.connectors.postgresql.catalogue import Server, Table
from workers.connectors.postgresql.connection import READER_NAME, Address, connection_open
from workers.connectors.postgresql.open_transactions import OpenTransaction, open_transactions

PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
HOPELESS_AFTER_SECONDS = 1.0
"""A writer open for longer than any try may last is waited for outside the lock's queue."""

HELD = """
WITH RECURSIVE tree AS (
    SELECT {oid}::bigint::oid AS oid
    UNION
    SELECT i.inhrelid FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid
)
SELECT c.oid::regclass::text FROM tree JOIN pg_class c ON c.oid = tree.oid
WHERE NOT EXISTS (
    SELECT FROM pg_locks l WHERE l.locktype = 'relation' AND l.relation = c.oid AND l.granted
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND l.pid = pg_backend_pid()
    AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
ORDER BY 1
"""
"""The tables that this backend does not hold against writers. A ShareUpdateExclusiveLock keeps no writer out."""


@dataclass(frozen=True, slots=True)
class LockGround:
    """Whether the lock makes a frontier safe here. `obstacles`: why not; `doubts`: what the catalogue cannot rule out."""

    obstacles: tuple[str, ...]
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lock:
    """A try for the lock. `blockers`: who kept it from being granted; where there are none, `unlocked` says which tables
    this backend does not hold now. Ask before the snapshot is taken and after it."""

    connection: psycopg.Connection[Any]
    oid: int
    blockers: tuple[OpenTransaction, ...]

    def unlocked(self) -> list[str]:
        """In one message: writers wait meanwhile. A function may have left another search_path."""
        looked = sql.SQL("SET LOCAL search_path = pg_catalog; {}").format(
            sql.SQL(HELD).format(oid=sql.Literal(self.oid))
        )
        cursor = self.connection.execute(looked)
        cursor.nextset()
        return [place for (place,) in cursor]


def lock_ground(
    connection: psycopg.Connection[Any], options: Mapping[str, Any], table: Table, server: Server, found: Catalogue
) -> LockGround:
    """What the catalogue shows about where numbers are drawn, and whether the role may take the lock.

    Doubts that nobody attests are obstacles: the lock is not taken for a ground that may be none.
    """
    judged = drawn_judge(found)
    obstacles = judged.obstacles
    if not may_lock(connection, options, table, server):
        obstacles = (*obstacles, "the role may not take the lock (GRANT MAINTAIN, or name a share_lock_function)")
    if judged.doubts and not options["numbers_are_drawn_in_insert"]:
        obstacles = (*obstacles, *judged.doubts)
    return LockGround(obstacles, judged.doubts)


def may_lock(connection: psycopg.Connection[Any], options: Mapping[str, Any], table: Table, server: Server) -> bool:
    if options["share_lock_function"]:
        return True
    maintain = ", MAINTAIN" if server.version >= 170000 else ""
    row = connection.execute(
        "SELECT has_table_privilege(%s::bigint::oid, %s)", [table.oid, f"UPDATE, DELETE, TRUNCATE{maintain}"]
    ).fetchone()
    return bool(row and row[0])


@contextmanager
def share_lock(address: Address, options: Mapping[str, Any], name: sql.Composable, table: Table) -> Iterator[Lock]:
    """Inside it the lock is held, where nobody blocked it; that it really is, `Lock.unlocked` looks up.

    The caller takes its snapshot inside, on a connection of its own, and leaves at once.
    """
    with connection_open(address, READER_NAME) as connection:
        blockers: list[OpenTransaction] = []
        leaves = list(table.leaves)
        pause = PAUSE_SECONDS
        for attempt in range(options["lock_tries"]):
            if attempt:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            blockers = _writers(connection, leaves)
            if any((writer.open_seconds or 0) > HOPELESS_AFTER_SECONDS for writer in blockers):
                continue
            if _try(connection, options, name):
                blockers = []
                break
            blockers = _writers(connection, leaves) or blockers or [UNNAMED]
        try:
            yield Lock(connection, table.oid, tuple(blockers))
        finally:
            connection.execute("ROLLBACK")


def _try(connection: psycopg.Connection[Any], options: Mapping[str, Any], name: sql.Composable) -> bool:
    begin = sql.SQL("BEGIN READ ONLY; SET LOCAL search_path = pg_catalog; SET LOCAL lock_timeout = {}")
    connection.execute(begin.format(sql.Literal(options["lock_timeout_ms"])))
    try:
        if options["share_lock_function"]:
            schema, _, function = options["share_lock_function"].rpartition(".")
            called = sql.Identifier(schema, function) if schema else sql.Identifier(function)
            connection.execute(sql.SQL("SELECT {}()").format(called))
        else:
            connection.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(name))
    except psycopg.errors.LockNotAvailable:
        connection.execute("ROLLBACK")
        return False
    return True


def _writers(connection: psycopg.Connection[Any], leaves: list[int]) -> list[OpenTransaction]:
    return [one for one in open_transactions(connection, leaves) if one.is_writing_table]


UNNAMED = OpenTransaction("unknown", None, None, None, None, None, None, None, True)
"""The lock was not granted and the writer had ended when it was looked for."""
