"""How a source's table is kept: how much of it is dead, and who keeps its space from being given back (RC-76).

One law: it is the server's own estimate, as far as this login may see, and enters no verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from workers.connectors.postgresql.opening import Opened

DEAD_FROM = 10_000
"""Fewer dead rows are nobody's concern."""
HELD_FROM_SECONDS = 3600.0
"""A snapshot that is held for longer keeps vacuum from doing its work."""

ROWS = """
SELECT sum(s.n_live_tup)::bigint, sum(s.n_dead_tup)::bigint, sum(pg_total_relation_size(s.relid))::bigint
FROM pg_stat_all_tables s
WHERE s.relid IN (SELECT %s::regclass::oid UNION SELECT relid FROM pg_partition_tree(%s::regclass))
"""
HOLDER = """
SELECT a.pid, a.usename::text, coalesce(a.state, ''), extract(epoch FROM clock_timestamp() - a.xact_start)::float8
FROM pg_stat_activity a
WHERE a.backend_xmin IS NOT NULL AND a.pid <> pg_backend_pid() AND a.datname = current_database()
  AND coalesce(a.backend_type, '') NOT IN ('autovacuum worker', 'walsender')
ORDER BY age(a.backend_xmin) DESC, a.xact_start
LIMIT 1
"""
"""Whose snapshot is the oldest. Sessions of other roles show theirs to pg_read_all_stats alone."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """`live`, `dead`: rows, as the server's statistics count them; None: it keeps none of this relation, or is a replica. `size`: bytes of
    the table with its partitions and indexes. `holder`: the session with the oldest snapshot, and for how long; empty: none that
    this login may see."""

    live: int | None = None
    dead: int | None = None
    size: int | None = None
    holder: str = ""
    held_seconds: float = 0.0

    def facts(self) -> dict[str, Any]:
        """For a connection test's report."""
        held = {"oldest_snapshot": f"{self.holder}, {self.held_seconds:.0f} s"} if self.holder else {}
        rows = {"live_rows": self.live, "dead_rows": self.dead, "table_bytes": self.size}
        return {**rows, **held} if self.dead is not None else held

    def weaknesses(self) -> list[str]:
        """What somebody should look at; nothing of a table that is kept well."""
        found = []
        if self.dead is not None and self.live is not None and self.dead >= max(DEAD_FROM, self.live):
            share = round(100 * self.dead / (self.dead + self.live))
            found.append(
                f"{self.dead:,} of the table's {self.dead + self.live:,} rows are dead ({share} %): each poll of the relay reads"
                " over them. See that vacuum runs there."
            )
        if self.holder and self.held_seconds >= HELD_FROM_SECONDS:
            hours = self.held_seconds / 3600
            found.append(
                f"{self.holder} has held its snapshot for {hours:,.0f} h: until it ends, vacuum gives nothing back that was"
                " deleted since. End it, if it is nobody's."
            )
        return found


def upkeep_read(connection: psycopg.Connection[Any], opened: Opened) -> Upkeep:
    """Two reads of the server's statistics."""
    name = f'"{_quoted(opened.table.schema)}"."{_quoted(opened.table.name)}"'
    rows = None if opened.server.is_in_recovery else connection.execute(ROWS, [name, name]).fetchone()
    live, dead, size = rows if rows is not None else (None, None, None)
    holder = connection.execute(HOLDER).fetchone()
    if holder is None:
        return Upkeep(live, dead, size)
    pid, role, state, seconds = holder
    return Upkeep(live, dead, size, f"Process {pid}, role {role!r}, {state or 'its state hidden'}", seconds or 0.0)


def _quoted(name: str) -> str:
    return name.replace('"', '""')
