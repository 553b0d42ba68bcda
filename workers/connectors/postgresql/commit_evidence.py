"""Whether a table can say which commits happened: not a replica, not a logical subscriber, not another cluster's rows."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.coordinates import Coordinate, Spelling
from recovery_api.domain.errors import Unsuitable
from workers.connectors.postgresql.catalogue import Table
from workers.connectors.postgresql.mapped_table import MappedTable

SHIFT = 2**63

SUBSCRIBED = """
SELECT string_agg(srrelid::regclass::text, ', ') FROM pg_subscription_rel WHERE srrelid::bigint = ANY(%s::bigint[])
"""


def subscriber_refuse(connection: psycopg.Connection[Any], table: Table) -> None:
    """Nothing, where no subscription writes the table. Raises: Unsuitable."""
    row = connection.execute(SUBSCRIBED.encode(), [[table.oid, *table.leaves]]).fetchone()
    if row and row[0]:
        raise Unsuitable(
            f"table {table.schema}.{table.name}",
            f"is written by a logical subscription ({row[0]}), so its commits are not the source's",
            "Register the publisher's table instead.",
        )


def foreign_rows_refuse(
    connection: psycopg.Connection[Any], mapped: MappedTable, snapshot_xmax: int, highest: Coordinate | None
) -> None:
    """Nothing, where no row carries a transaction id that this cluster has not given out yet.

    The head alone is looked at where the id is the coordinate (a higher id would be the head); beside another
    coordinate the newest thousand rows are. Raises: Unsuitable.
    """
    foreign = None
    if mapped.spelling is Spelling.XID8_BIGINT and highest is not None and highest.position + SHIFT >= snapshot_xmax:
        foreign = highest.position + SHIFT
    evidence = mapped.column("commit_xid")
    if foreign is None and evidence is not None:
        row = connection.execute(
            sql.SQL(
                "SELECT newest.x::text FROM (SELECT {} AS x FROM {} ORDER BY {} LIMIT 1000) AS newest"
                " WHERE newest.x >= {}::xid8 ORDER BY newest.x DESC LIMIT 1"
            ).format(
                evidence, mapped.rows, mapped.coordinate.order(is_descending=True), sql.Literal(str(snapshot_xmax))
            )
        ).fetchone()
        foreign = row and row[0]
    if foreign is not None:
        raise Unsuitable(
            f"table {mapped.options['table']!r}",
            f"holds transaction id {foreign}, and this cluster has given out none at or above {snapshot_xmax}: the rows"
            " come from another cluster (a restore, a copy, a replication)",
            "Its transaction ids prove no commit here. Map another coordinate, or register the server they come from.",
        )
