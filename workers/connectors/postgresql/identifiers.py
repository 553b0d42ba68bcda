"""Names of other people's tables: exact, always quoted by psycopg.sql, and never folded or cut.

Where a name does not exist the error names the closest ones that do: an unquoted habit (`OutboxEvents` folded to lower
case) must not look like an empty table.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from psycopg import sql

from recovery_api.domain.errors import NotFound


def qualified(schema: str, table: str) -> sql.Identifier:
    """`"schema"."table"`, exactly as given."""
    return sql.Identifier(schema, table)


def nearest_names(wanted: str, existing: Iterable[str], limit: int = 3) -> list[str]:
    """The existing names that look most like the wanted one, best first; case does not count in looking alike.

    >>> nearest_names("OutboxEvents", ["orders", "outbox_events", "OUTBOXEVENTS"])
    ['OUTBOXEVENTS', 'outbox_events']
    """
    folded: dict[str, list[str]] = {}
    for name in sorted(existing):
        folded.setdefault(name.casefold(), []).append(name)
    close = difflib.get_close_matches(wanted.casefold(), folded, n=limit, cutoff=0.5)
    return [name for fold in close for name in folded[fold]][:limit]


def not_found(kind: str, wanted: str, where: str, existing: Iterable[str]) -> NotFound:
    """The error for a name that does not exist, with the closest that do."""
    names = list(existing)
    close = nearest_names(wanted, names)
    if close:
        hint = f"Closest existing: {', '.join(repr(name) for name in close)}."
    elif names:
        hint = f"There are {len(names)} others, none like it."
    else:
        hint = "There is none that this role can see."
    return NotFound(f"{kind} {wanted!r}", where, hint)
