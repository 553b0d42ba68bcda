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
    "Rows go from this table, or lose their content, once they were delivered, and nothing records it: an event that is"
    " gone cannot be told from one that never was. Keep the rows, or judge a table that keeps them."
)


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
