"""The SHARE lock that makes a bare number's frontier safe, and what must hold for it to prove anything.

While the lock is granted no transaction that inserted is still open, so every number drawn so far is visible or gone
for good; numbers drawn later are higher. That is only so where every number is drawn inside its INSERT: `nextval`
called before it takes no lock on the table. Source: PostgreSQL manual, "Explicit Locking" and "Sequence Manipulation".

One law: the lock holds up writers, so a try is short, is not begun behind a transaction that is going to block it, and
ends as soon as the snapshot exists.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from workers.connectors.postgresql.catalogue import Server, Table
from workers.connectors.postgresql.connection import READER_NAME, Address, connection_open
from workers.connectors.postgresql.open_transactions import OpenTransaction, open_transactions

PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
HOPELESS_AFTER_SECONDS = 1.0
"""A writer open for longer than any try may last is waited for outside the lock's queue."""

DRAWN = """
SELECT c.oid::regclass::text, a.attidentity::text, pg_get_expr(d.adbin, d.adrelid),
       s.seqcache, s.seqincrement, s.seqcycle,
       EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND (t.tgtype & 6) = 6),
       (SELECT r.rolname::text FROM pg_roles r WHERE NOT r.rolsuper AND r.rolname !~ '^pg_'
        AND has_column_privilege(r.oid, c.oid, a.attnum, 'INSERT') ORDER BY 1 LIMIT 1)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname::text = %s::text
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_depend i ON a.attidentity <> '' AND i.refclassid = 'pg_class'::regclass AND i.refobjid = c.oid
    AND i.refobjsubid = a.attnum AND i.classid = 'pg_class'::regclass AND i.deptype = 'i'
LEFT JOIN pg_depend n ON n.classid = 'pg_attrdef'::regclass AND n.objid = d.oid
    AND n.refclassid = 'pg_class'::regclass AND n.deptype = 'n'
LEFT JOIN pg_sequence s ON s.seqrelid = coalesce(i.objid, n.refobjid)
WHERE c.oid::bigint = ANY(%s::bigint[])
"""

ONLY_NEXTVAL = re.compile(r"nextval\('.*'::regclass\)", re.S)


@dataclass(frozen=True, slots=True)
class LockGround:
    """Whether the lock proves a frontier here. `obstacles`: why not; `attested`: what only the owner's word covers."""

    obstacles: tuple[str, ...]
    attested: tuple[str, ...] = ()


def lock_ground(
    connection: psycopg.Connection[Any], options: Mapping[str, Any], table: Table, server: Server
) -> LockGround:
    """What the catalogue shows about where numbers are drawn, on the table and each partition."""
    obstacles, doubts = [], []
    if len(options["coordinate"]) != 1:
        obstacles.append("the coordinate has two columns")
    name = options["coordinate"][0]
    rows = connection.execute(DRAWN.encode(), [name, [table.oid, *table.leaves]]).fetchall()
    for place, identity, default, cache, increment, is_cycling, has_trigger, supplier in rows:
        column = f"{name!r} of {place}"
        if not identity and not (default and ONLY_NEXTVAL.fullmatch(default)):
            obstacles.append(f"{column} is not drawn from a sequence by its default")
            continue
        if cache != 1:
            obstacles.append(f"the sequence of {column} hands out {cache} numbers at a time (CACHE must be 1)")
        if (increment is not None and increment < 1) or is_cycling:
            obstacles.append(f"the sequence of {column} does not ascend")
        if has_trigger:
            doubts.append(f"a BEFORE INSERT trigger may set {column}")
        if identity != "a" and supplier is not None:
            doubts.append(f"role {supplier!r} may supply {column} itself (GENERATED ALWAYS would forbid it)")
    if not may_lock(connection, options, table, server):
        obstacles.append("the role may not take the lock (GRANT MAINTAIN, or name a share_lock_function)")
    is_attested = bool(options["numbers_are_drawn_in_insert"])
    return LockGround(tuple(obstacles if is_attested else [*obstacles, *doubts]), tuple(doubts) if is_attested else ())


def may_lock(connection: psycopg.Connection[Any], options: Mapping[str, Any], table: Table, server: Server) -> bool:
    if options["share_lock_function"]:
        return True
    maintain = ", MAINTAIN" if server.version >= 170000 else ""
    row = connection.execute(
        "SELECT has_table_privilege(%s::bigint::oid, %s)", [table.oid, f"UPDATE, DELETE, TRUNCATE{maintain}"]
    ).fetchone()
    return bool(row and row[0])


@contextmanager
def share_lock(
    address: Address, options: Mapping[str, Any], name: sql.Composable, leaves: list[int]
) -> Iterator[list[OpenTransaction]]:
    """Inside it the lock is held, where the list is empty; else the list names who kept it from being granted.

    The caller takes its snapshot inside, on a connection of its own, and leaves at once.
    """
    with connection_open(address, READER_NAME) as connection:
        blockers: list[OpenTransaction] = []
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
            yield blockers
        finally:
            connection.execute("ROLLBACK")


def _try(connection: psycopg.Connection[Any], options: Mapping[str, Any], name: sql.Composable) -> bool:
    connection.execute("BEGIN READ ONLY")
    connection.execute(
        sql.SQL("SET LOCAL search_path = pg_catalog; SET LOCAL lock_timeout = {}").format(
            sql.Literal(options["lock_timeout_ms"])
        )
    )
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
