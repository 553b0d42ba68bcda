"""A table that holds a copy of state, read in the snapshot of the record beside it: a hash and a digest a row.

It is read by pages, in any order, so that tasks share it whatever its key is. One law: while a reading is held nobody can
truncate or rewrite the table, for that would show its snapshot no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.images import KEY_CHARACTERS
from recovery_api.domain.kinds.state import PARTIAL_SAYS, StatePlace
from workers.connectors.postgresql.catalogue import Table, column_get, privileges_check, server_read, table_read
from workers.connectors.postgresql.connection import READER_NAME, Address, snapshot_kept, snapshot_open
from workers.connectors.postgresql.identifiers import qualified
from workers.connectors.postgresql.image_sql import (
    digest_at_target,
    key_hash_at_target,
    key_hash_of_event,
    key_is,
    types_check,
)
from workers.connectors.postgresql.opening import policies_refuse
from workers.connectors.postgresql.packed import Block, Packed, packed_digest, packed_integer, read_packed, signed
from workers.connectors.postgresql.rewritten import rewritten_refuse
from workers.connectors.protocols.image import StateColumn, StateMapping, StatePart, StateReading
from workers.evidence.schemas import IMAGE_ROW

ROWS_A_BLOCK = 65_536
ROW = "t"

TYPES = """
WITH RECURSIVE typed AS (
    SELECT a.attname::text AS name, a.atttypid AS typid, a.atttypmod AS typmod, a.attcollation
    FROM pg_attribute a WHERE a.attrelid = %s::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT typed.name, t.typbasetype, CASE WHEN typed.typmod <> -1 THEN typed.typmod ELSE t.typtypmod END, typed.attcollation
    FROM typed JOIN pg_type t ON t.oid = typed.typid WHERE t.typtype = 'd'
)
SELECT typed.name,
       CASE WHEN t.typtype = 'e' THEN 'text' ELSE format_type(typed.typid, typed.typmod) END,
       CASE WHEN t.typtype = 'e' THEN 'text' WHEN n.nspname = 'pg_catalog' THEN t.typname
            ELSE n.nspname || '.' || t.typname END::text,
       coalesce(l.collisdeterministic, true)
FROM typed JOIN pg_type t ON t.oid = typed.typid AND t.typtype <> 'd' JOIN pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_collation l ON l.oid = typed.attcollation
"""

UNIQUE = """
SELECT EXISTS (
    SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = %s::bigint::oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
        AND i.indnkeyatts = 1 AND a.attname = %s)
"""

EXTENT = """
SELECT coalesce(max(pg_relation_size(c.oid) / current_setting('block_size')::int), 0)::bigint,
       coalesce(sum(CASE WHEN c.reltuples < 0 THEN pg_relation_size(c.oid) / 60 ELSE c.reltuples END), 0)::bigint
FROM pg_class c WHERE c.oid::bigint = ANY (%s::bigint[])
"""
"""Of a table that was never analysed about as many rows as could lie there."""


@contextmanager
def state_hold(address: Address, snapshot: str, place: StatePlace) -> Iterator[StateReading]:
    """The table in an exported snapshot, open until the manager ends.

    Raises: Unsuitable, with why it cannot be compared; AccessDenied, NotFound, SnapshotLost.
    """
    with snapshot_open(address, snapshot) as connection:
        table = table_read(connection, place.schema, place.table)
        name = f"{table.schema}.{table.name}"
        if place.is_partial:
            raise Unsuitable(f"the target {name}", PARTIAL_SAYS, "Say state_updates=whole once every update is whole.")
        if table.relkind not in ("r", "p"):
            raise Unsuitable(f"the target {name}", "is no table", "Name the table that holds the rows.")
        mapping = _mapping(connection, table, place)
        privileges_check(connection, table, [place.key, *place.columns])
        policies_refuse(table)
        server = server_read(connection)
        connection.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(qualified(table.schema, table.name)))
        rewritten_refuse(connection, table.leaves)
        pages, rows = connection.execute(EXTENT.encode(), [list(table.leaves)]).fetchone() or (0, 0)
        handle = {
            "snapshot": snapshot,
            "schema": table.schema,
            "table": table.name,
            "has_soft_errors": server.has_soft_errors,
            "rows_a_page": max(1, rows // max(pages, 1)),
        }
        with snapshot_kept(connection):
            yield StateReading(mapping, name, handle, pages, rows)


def state_read(address: Address, state: StateReading, part: StatePart) -> Iterator[pa.RecordBatch]:
    """schemas.IMAGE_ROW of the share's rows. A row's place: table and page, and its number there."""
    mapping, soft = state.mapping, state.handle["has_soft_errors"]
    page = "oidsend(t.tableoid) || substring(tidsend(t.ctid) FROM 1 FOR 4)"
    number = r"'\x000000000000'::bytea || substring(tidsend(t.ctid) FROM 5 FOR 2)"
    columns = [
        packed_digest("key_hash", sql.SQL(key_hash_at_target(mapping.key, ROW))),
        packed_integer("position", sql.SQL(page), signed),
        packed_integer("ordinal", sql.SQL(number), signed),
        packed_digest("digest", sql.SQL(digest_at_target(mapping, ROW, soft))),
    ]
    step = max(1, ROWS_A_BLOCK // state.handle["rows_a_page"])
    lows = range(part.low, max(part.low + 1, part.high if part.high is not None else state.pages), step)
    highs = [*lows[1:], part.high]
    blocks = [_pages(low, high) for low, high in zip(lows, highs, strict=True)]
    with snapshot_open(address, state.handle["snapshot"], READER_NAME) as connection:
        yield from image_rows(connection, columns, _rows(state), blocks)


def image_rows(
    connection: psycopg.Connection[Any], columns: list[Packed], table: sql.Composable, wheres: list[sql.Composable]
) -> Iterator[pa.RecordBatch]:
    """schemas.IMAGE_ROW of the blocks; a column that is not read is null."""
    for arrays in read_packed(connection, columns, table, [Block(where) for where in wheres]):
        count = len(arrays["key_hash"])
        yield pa.record_batch([arrays.get(one.name, pa.nulls(count, one.type)) for one in IMAGE_ROW], schema=IMAGE_ROW)


def hash_of_key_text(state: StateReading, key: str) -> sql.SQL:
    """The hash of an event's key, a text expression at the record's own server."""
    return sql.SQL(key_hash_of_event(state.mapping.key, key, state.handle["has_soft_errors"]))


def keys_read(address: Address, state: StateReading, places: pa.Table) -> list[str]:
    """The keys of the rows at these places, cut short, in their order."""
    given = list(zip(places["position"].to_pylist(), places["ordinal"].to_pylist(), strict=True))
    query = sql.SQL(
        "SELECT p.n, left(t.{key}::text, %(most)s) FROM unnest(%(tables)s::oid[], %(rows)s::tid[]) WITH ORDINALITY"
        " AS p(o, c, n) JOIN {rows} ON t.ctid = p.c AND t.tableoid = p.o"
    ).format(key=sql.Identifier(state.mapping.key.name), rows=_rows(state))
    parameters = {
        "most": KEY_CHARACTERS,
        "tables": [(page >> 32) & 0xFFFFFFFF for page, _ in given],
        "rows": [f"({page & 0xFFFFFFFF},{number})" for page, number in given],
    }
    with snapshot_open(address, state.handle["snapshot"], READER_NAME) as connection:
        found = dict(connection.execute(query, parameters).fetchall())
    return [found.get(at, "") for at in range(1, len(given) + 1)]


def value_read(address: Address, state: StateReading, key: str) -> str | None:
    """What the row of this key holds in the mapped columns, as JSON text; None: there is none."""
    mapping = state.mapping
    columns = [sql.SQL("{}, t.{}").format(sql.Literal(one.name), sql.Identifier(one.name)) for one in mapping.columns]
    met = sql.SQL(key_is(mapping.key, ROW, "k.given", state.handle["has_soft_errors"]))
    query = sql.SQL(
        "SELECT json_build_object({})::text FROM (SELECT %s::text AS given OFFSET 0) k JOIN {} ON {} LIMIT 1"
    ).format(sql.SQL(", ").join(columns), _rows(state), met)
    with snapshot_open(address, state.handle["snapshot"], READER_NAME) as connection:
        row = connection.execute(query, [key]).fetchone()
    return None if row is None else str(row[0])


def hashes_read(address: Address, state: StateReading, keys: list[str]) -> pa.Array:
    """The hashes of these keys, as an event writes them."""
    query = sql.SQL("SELECT {} FROM unnest(%s::text[]) WITH ORDINALITY AS e(key, n) ORDER BY e.n")
    with snapshot_open(address, state.handle["snapshot"], READER_NAME) as connection:
        rows = connection.execute(query.format(hash_of_key_text(state, "e.key")), [keys]).fetchall()
    return pa.array([row[0] for row in rows], pa.binary(32))


def _mapping(connection: psycopg.Connection[Any], table: Table, place: StatePlace) -> StateMapping:
    """Raises: NotFound, Unsuitable."""
    for name in (place.key, *place.columns):
        column_get(table, name)
    types: Mapping[str, Any] = {row[0]: row[1:] for row in connection.execute(TYPES.encode(), [table.oid])}
    name = f"{table.schema}.{table.name}"
    type_, base, is_by_text = types[place.key]
    key = StateColumn(place.key, type_, base)
    if not is_by_text:
        raise Unsuitable(
            f"the key {place.key!r} of {name}",
            "has a collation that takes different texts for equal: a key in another spelling would be taken for another key",
            "Image audits compare keys by their text.",
        )
    unique = connection.execute(UNIQUE.encode(), [table.oid, place.key]).fetchone()
    if unique != (True,):
        problem = "has no unique index of its own, so one key could have several rows"
        raise Unsuitable(f"the key {place.key!r} of {name}", problem, "Give it a primary key or a unique index.")
    columns = tuple(StateColumn(at, types[at][0], types[at][1], member) for at, member in sorted(place.columns.items()))
    mapping = StateMapping(key, columns)
    types_check(mapping, name)
    return mapping


def _rows(state: StateReading) -> sql.Composable:
    return sql.SQL("{} AS t").format(qualified(state.handle["schema"], state.handle["table"]))


def _pages(low: int, high: int | None) -> sql.Composable:
    above = sql.SQL("t.ctid >= {}::tid").format(sql.Literal(f"({low},0)"))
    if high is None:
        return above
    return above + sql.SQL(" AND t.ctid < {}::tid").format(sql.Literal(f"({high},0)"))
