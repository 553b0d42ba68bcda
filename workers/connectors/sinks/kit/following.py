"""What is new in the record: entries by the transaction that admitted them, found by a small index of its blocks.

The law: new is what the earlier snapshot does not show, transaction by transaction, as PostgreSQL itself tells it. The
index says only where to look; without it the record would be read whole, so it is not followed then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from recovery_api.domain.errors import Refused
from workers.connectors.postgresql.packed import Block, read_packed
from workers.connectors.readings import Following
from workers.connectors.sinks.kit import FOLLOWED_INDEX
from workers.connectors.sinks.kit.record import packed_column
from workers.evidence import schemas

ENTRIES_A_BLOCK = 16_384

_SNAPSHOT = """
    SELECT pg_current_snapshot()::text, EXISTS (
        SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_class c ON c.oid = i.indrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = 'accepted' AND x.relname = %s AND i.indisvalid AND i.indisready AND i.indislive)"""

_NEW = "{number} >= {oldest}::bigint AND NOT pg_visible_in_snapshot(a.admitted_in, {since}::pg_snapshot)"
"""The first half is the index's; the second is exact."""

_CUTS = """
    SELECT n.admitted, n.entry FROM (
        SELECT {number} AS admitted, a.entry, row_number() OVER (ORDER BY a.admitted_in, a.entry) AS place
        FROM {schema}.accepted a WHERE {new}) n
    WHERE n.place %% %(rows)s = 1 ORDER BY n.place"""

_NUMBER = sql.SQL("(a.admitted_in::text::bigint)")
"""A transaction as the index holds it: a BRIN index has no operators for xid8 itself."""


def following_read(connection: psycopg.Connection[Any], schema: str) -> Following:
    """What the connection's snapshot shows, or why the record cannot be followed."""
    row = connection.execute(_SNAPSHOT, (schema, FOLLOWED_INDEX)).fetchone()
    assert row is not None
    snapshot, is_indexed = row
    if is_indexed:
        return Following(snapshot)
    return Following(
        problem=f"The record in schema {schema!r} has no index that tells what is new ({FOLLOWED_INDEX}), so each audit "
        f"reads it in full. Make it: manage.py sink_install … --schema {schema} --upgrade."
    )


def since_read(
    connection: psycopg.Connection[Any], schema: str, following: Following, since: str
) -> Iterator[pa.RecordBatch]:
    """The entries that this snapshot shows and `since` did not, by admitting transaction, then entry; memory bounded.

    Raises: Refused where the record cannot be followed.
    """
    if following.problem:
        raise Refused("Reading what is new in the record", following.problem, "Audit in full until then.")
    oldest, named = sql.Literal(Following(since).oldest_open), sql.Identifier(schema)
    new = sql.SQL(_NEW).format(number=_NUMBER, oldest=oldest, since=sql.Literal(since))
    query = sql.SQL(_CUTS).format(number=_NUMBER, schema=named, new=new)
    cuts = connection.execute(query, {"rows": ENTRIES_A_BLOCK}).fetchall()
    table = sql.SQL("{}.accepted a").format(named)
    columns = [packed_column(name) for name in schemas.ACCEPTED.names]
    blocks = [Block(_block(new, low, high)) for low, high in zip(cuts, [*cuts, None][1:], strict=True)]
    for arrays in read_packed(connection, columns, table, blocks):
        block = pa.Table.from_pydict({name: arrays[name] for name in schemas.ACCEPTED.names}, schema=schemas.ACCEPTED)
        yield from block.sort_by([("admitted_in", "ascending"), ("entry", "ascending")]).to_batches()


def _block(new: sql.Composed, low: tuple[int, int], high: tuple[int, int] | None) -> sql.Composed:
    """The new entries from `low` (transaction, entry) on, up to but not including `high`."""
    parts = [new, _from(low)]
    if high is not None:
        parts.append(sql.SQL("NOT ({})").format(_from(high)))
    return sql.SQL(" AND ").join(parts)


def _from(place: tuple[int, int]) -> sql.Composed:
    return sql.SQL("({}, a.entry) >= ({}::bigint, {}::bigint)").format(_NUMBER, *map(sql.Literal, place))
