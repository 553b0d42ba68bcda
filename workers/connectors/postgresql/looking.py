"""A server as it is now: how far its clock is off, what a logical slot keeps, how large the table is.

One law: it enters no verdict and no plan, and that it cannot be read stops nothing. It is read with the end's own login,
in a short connection of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import psycopg

from recovery_api.domain.errors import FencepostError
from recovery_api.domain.headroom.seen import ClockSeen, EndSeen, SlotSeen
from workers.connectors.postgresql.connection import READER_NAME, Address, connection_open

CLOCK_TRIES = 3
"""The one with the shortest way there and back counts."""

SIZES = """
SELECT (SELECT coalesce((SELECT sum(pg_total_relation_size(t.relid)) FROM pg_partition_tree(c.oid) t),
                        pg_total_relation_size(c.oid))::bigint
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')),
       (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn)::bigint
"""
"""The table with its partitions and indexes, and how much WAL was ever written."""

SLOT = """
SELECT to_jsonb(s), current_database()::text, clock_timestamp(),
       (SELECT setting::bigint * CASE unit WHEN 'ms' THEN 0.001 WHEN 'min' THEN 60 WHEN 'h' THEN 3600 ELSE 1 END
        FROM pg_settings WHERE name = 'idle_replication_slot_timeout')::float8
FROM pg_replication_slots s WHERE s.slot_name = %s
"""
"""The whole row: which columns it has differs from version to version."""


def look(address: Address, options: Mapping[str, Any], clock: Callable[[], datetime]) -> EndSeen:
    """What the server shows of itself. `options`: schema and table, where its size is asked for; slot, where one is named."""
    try:
        with connection_open(address, READER_NAME) as connection:
            return _look(connection, options, clock)
    except FencepostError as error:
        return EndSeen(read_at=clock(), problem=f"It could not be looked at: {error}")


def _look(connection: psycopg.Connection[Any], options: Mapping[str, Any], clock: Callable[[], datetime]) -> EndSeen:
    measured = clock_measure(connection, clock)
    size = position = None
    if options.get("table"):
        row = connection.execute(SIZES.encode(), [options["schema"], options["table"]]).fetchone()
        size, position = (None, None) if row is None else (_whole(row[0]), _whole(row[1]))
    slot = slot_read(connection, options["slot"]) if options.get("slot") else None
    return EndSeen(clock(), measured, slot, size, position)


def clock_measure(connection: psycopg.Connection[Any], clock: Callable[[], datetime]) -> ClockSeen:
    """The server's clock was asked somewhere between two looks at ours: half of that is the most it can be wrong."""
    best = None
    for _ in range(CLOCK_TRIES):
        before = clock()
        row = connection.execute("SELECT clock_timestamp()").fetchone()
        after = clock()
        assert row is not None
        error = (after - before) / 2
        if best is None or error < best.error:
            best = ClockSeen(row[0] - (before + error), error)
    assert best is not None
    return best


def slot_read(connection: psycopg.Connection[Any], name: str) -> SlotSeen:
    """The slot of that name, as this server shows it to everybody."""
    row = connection.execute(SLOT.encode(), [name]).fetchone()
    if row is None:
        return SlotSeen(name, is_there=False)
    return slot_from_row(name, *row)


def slot_from_row(
    name: str, row: Mapping[str, Any], database: str, now: datetime, idle_limit_seconds: float | None
) -> SlotSeen:
    """From a row of pg_replication_slots. A column that this version lacks is as one that says nothing."""
    problem = ""
    if row.get("slot_type") != "logical":
        problem = (
            f"The slot {name} is a {row.get('slot_type')} one: no relay reads this table by it. Name a logical slot."
        )
    elif row.get("database") != database:
        problem = f"The slot {name} is of the database {row.get('database')}, not of {database}: it is somebody else's."
    elif row.get("temporary"):
        problem = f"The slot {name} is temporary: it goes with its session, and nothing is known of when that ends."
    room, since = row.get("safe_wal_size"), row.get("inactive_since")
    idle = None if since is None or row.get("active") else now - datetime.fromisoformat(since)
    return SlotSeen(
        name,
        problem=problem,
        wal_status=row.get("wal_status") or "",
        lost_because=row.get("invalidation_reason") or ("conflict" if row.get("conflicting") else ""),
        room_bytes=None if room is None else int(room),
        idle=idle,
        idle_limit=timedelta(seconds=idle_limit_seconds) if idle_limit_seconds else None,
    )


def _whole(number: Any) -> int | None:
    return None if number is None else int(number)
