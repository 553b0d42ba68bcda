"""The product's own database is no end: recognised by what it holds, whatever the address, login or server.

One law: no connection to an end is handed out before this was asked, or before it has joined a snapshot of one that was. A control database registered as a source would
show password hashes and sessions as events; as a sink it would be written to. An identity (system identifier and
database) would miss its replicas, its restored copies and another Fencepost's, and a weak login cannot see one; the
catalogue, which every login can read, shows the tables in each of these.
"""

from __future__ import annotations

from typing import Any

import psycopg

from recovery_api.domain.errors import Refused

FOUND = """
SELECT n.nspname::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname IN ('recovery_api_event', 'recovery_api_intent', 'recovery_api_pipeline') AND c.relkind IN ('r', 'p')
GROUP BY n.nspname HAVING count(*) = 3
"""
"""Three tables that are only ever found together in a control database's schema."""


def own_database_refuse(connection: psycopg.Connection[Any], reference: str) -> None:
    """Returns where the database is an end's. Raises: Refused where it holds a control plane's tables."""
    found = connection.execute(FOUND).fetchone()
    if found is not None:
        raise Refused(
            f"Using {reference} as an end",
            f"its database holds a Fencepost's own tables (schema {found[0]!r})",
            "Name the database of a source or a sink.",
        )
