"""Whether a connection pooler stands in between, which decides what a session may be relied on for.

Fencepost itself holds no session lock and sets nothing outside a transaction, so a pooler changes nothing for it. A relay
that relies on session locks behind the same pooler loses them unnoticed: each transaction may run in another session.
"""

from __future__ import annotations

from typing import Any

import psycopg


def pooler_weaknesses(connection: psycopg.Connection[Any]) -> list[str]:
    """A sentence where the process that answers is not the one that took the connection."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    told, answers = connection.info.backend_pid, row[0] if row else 0
    if told == answers:
        return []
    return [
        f"A connection pooler stands in between (it gave the session number {told}, and process {answers} answers). "
        "Fencepost's own locks are transaction-scoped and unharmed; a relay that takes session locks "
        "(pg_advisory_lock) through a pooler in transaction mode is not exclusive."
    ]
