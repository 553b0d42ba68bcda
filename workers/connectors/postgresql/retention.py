"""Signs that a table which is said to keep everything has lost its oldest rows."""

from __future__ import annotations

from typing import Any

import psycopg

from workers.connectors.postgresql.extent import Extent
from workers.connectors.postgresql.opening import Opened

START = """
SELECT s.seqstart FROM pg_sequence s
WHERE s.seqrelid = pg_get_serial_sequence(quote_ident(%s) || '.' || quote_ident(%s), %s)::regclass
"""


DELIVERED_GONE = (
    "Rows go from this table once they were delivered, and nothing records it: an event that is gone cannot be told from one"
    " that never was, and that it is gone is no evidence that it was delivered. What is kept is judged; audit often, so that"
    " more of it is seen, or keep the rows."
)

DELETIONS = "SELECT coalesce(sum(n_tup_del), 0)::bigint FROM pg_stat_all_tables WHERE relid = ANY (%s::bigint[]::oid[])"


def deletions_seen(connection: psycopg.Connection[Any], opened: Opened) -> list[str]:
    """A sentence where the server has counted deletions of rows; its count begins anew with its statistics."""
    row = connection.execute(DELETIONS.encode(), [list(opened.table.leaves)]).fetchone()
    count = 0 if row is None else int(row[0])
    if not count:
        return []
    rows = f"{count:,} deletions of rows" if count > 1 else "the deletion of a row"
    return [
        f"The table is said to keep everything, and the server has counted {rows}. If delivered rows are deleted, set"
        " retention to deletes_delivered; if old ones are, to purges: else what is gone is judged as never committed."
    ]


def dropped_unseen(connection: psycopg.Connection[Any], opened: Opened, extent: Extent) -> list[str]:
    """A sentence where the oldest row is not where the column's sequence started; nothing is known otherwise."""
    names = opened.mapped.options["coordinate"]
    if len(names) != 1 or extent.lowest is None:
        return []
    row = connection.execute(START.encode(), [opened.table.schema, opened.table.name, names[0]]).fetchone()
    if row is None or extent.lowest.position <= row[0]:
        return []
    lowest = opened.mapped.coordinate.format(extent.lowest)
    return [
        f"The table is said to keep everything, but its oldest row is {lowest} and its numbers began at {row[0]}: if rows"
        " were purged, set retention to purges, or what they were is judged as never committed."
    ]
