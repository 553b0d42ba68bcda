"""Reading the acceptance record in columns: packed by the server, block by block, unpacked here without a loop a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, LiteralString

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

from recovery_api.domain.coordinates import Coordinate
from workers.connectors.base import CoordinateRange, LaneReading, SafeFrontier, Width
from workers.evidence import schemas

BLOCK_BITS = 13
"""A block is 2^13 neighbouring positions: a few hundred kilobytes on the wire."""

ROWS_AT_ONCE = 50_000

_LANES = """
    WITH RECURSIVE lanes(lane) AS (
        (SELECT a.lane FROM {schema}.accepted a ORDER BY a.lane LIMIT 1)
        UNION ALL
        SELECT (SELECT a.lane FROM {schema}.accepted a WHERE a.lane > l.lane ORDER BY a.lane LIMIT 1)
        FROM lanes l WHERE l.lane IS NOT NULL)
    SELECT l.lane, low.position, low.ordinal, high.position, high.ordinal
    FROM lanes l,
    LATERAL (SELECT a.position, a.ordinal FROM {schema}.accepted a WHERE a.lane = l.lane
             ORDER BY a.lane, a.position, a.ordinal LIMIT 1) low,
    LATERAL (SELECT a.position, a.ordinal FROM {schema}.accepted a WHERE a.lane = l.lane
             ORDER BY a.lane DESC, a.position DESC, a.ordinal DESC LIMIT 1) high
    WHERE l.lane IS NOT NULL"""


_LATER = """
    SELECT DISTINCT a.key FROM {schema}.accepted a
    JOIN (SELECT DISTINCT ON (u.key) u.key, u.position, u.ordinal
          FROM unnest(%(key)s::text[], %(position)s::bigint[], %(ordinal)s::bigint[]) AS u (key, position, ordinal)
          ORDER BY u.key, u.position, u.ordinal) b ON b.key = a.key
    WHERE {where} AND (a.position, a.ordinal) > (b.position, b.ordinal)"""


def lanes_read(connection: psycopg.Connection[Any], schema: str) -> dict[str, LaneReading]:
    """The record's lanes with the lowest and highest coordinate of each. A record has no safe frontier: it says so."""
    unsaid = SafeFrontier(None, "acceptance record", "A record says nothing of what may still be committed.")
    query = sql.SQL(_LANES).format(schema=sql.Identifier(schema))
    return {
        lane: LaneReading(lane, Coordinate(*high), Coordinate(*low), None, unsaid)
        for lane, *rest in connection.execute(query)
        for low, high in [(rest[:2], rest[2:])]
    }


def accepted_read(
    connection: psycopg.Connection[Any], schema: str, range_: CoordinateRange, width: Width, with_head: bool
) -> Iterator[pa.RecordBatch]:
    """The record's entries in the range, in no particular order between blocks."""
    where = _where(range_)
    if width is Width.FULL:
        return _read_full(connection, schema, where)
    return _read_packed(connection, schema, where, width is Width.PAYLOAD, with_head)


def later_keys_read(connection: psycopg.Connection[Any], schema: str, lane: str, rows: pa.Table) -> pa.Array:
    """The keys among `rows` (position, ordinal, key), each once, with an entry above their lowest coordinate there.

    One pass over the lane's record above the lowest of them all: no index, so that no acceptance pays for one.
    """
    rows = rows.drop_null().sort_by([("position", "ascending"), ("ordinal", "ascending")])
    if not rows.num_rows:
        return pa.array([], pa.string())
    given = {name: rows[name].to_pylist() for name in ("position", "ordinal", "key")}
    lowest = Coordinate(given["position"][0], given["ordinal"][0])
    query = sql.SQL(_LATER).format(schema=sql.Identifier(schema), where=_where(CoordinateRange(lane, lowest, None)))
    return pa.array([key for (key,) in connection.execute(query, given)], pa.string())


def _read_packed(
    connection: psycopg.Connection[Any], schema: str, where: sql.Composable, with_payload: bool, with_head: bool
) -> Iterator[pa.RecordBatch]:
    columns: list[LiteralString] = [f"string_agg(int8send(a.{name}), '')" for name in ("position", "ordinal", "entry")]
    if with_payload:
        columns += ["string_agg(a.payload_digest, '')"]
    if with_head:
        columns += [
            r"CASE count(a.head_position) WHEN 0 THEN NULL WHEN count(*) THEN ''::bytea"
            r" ELSE string_agg(CASE WHEN a.head_position IS NULL THEN '\x00'::bytea ELSE '\x01'::bytea END, '') END",
            "string_agg(int8send(coalesce(a.head_position, 0)), '')",
            "string_agg(int8send(coalesce(a.head_ordinal, 0)), '')",
        ]
    query = sql.SQL("SELECT {columns} FROM {schema}.accepted a WHERE {where} GROUP BY a.position >> {bits}").format(
        columns=sql.SQL(", ").join(map(sql.SQL, columns)),
        schema=sql.Identifier(schema),
        where=where,
        bits=sql.Literal(BLOCK_BITS),
    )
    with connection.cursor() as cursor:
        for row in cursor.stream(query, binary=True):
            yield _unpack(row, with_payload, with_head)


def _unpack(row: tuple[Any, ...], with_payload: bool, with_head: bool) -> pa.RecordBatch:
    position, ordinal, entry, *rest = row
    columns = {"position": _numbers(position), "ordinal": _numbers(ordinal)}
    count = len(columns["position"])
    if with_payload:
        digests = pa.py_buffer(rest.pop(0))
        columns["payload_digest"] = pa.Array.from_buffers(schemas.DIGEST, count, [None, digests])
    if with_head:
        known, head_position, head_ordinal = rest
        for name, packed in (("head_position", head_position), ("head_ordinal", head_ordinal)):
            columns[name] = _with_nulls(packed, known, count)
    columns["entry"] = _numbers(entry)
    return pa.RecordBatch.from_pydict(columns)


def _numbers(packed: bytes) -> pa.Array:
    return pa.array(np.frombuffer(packed, ">i8").astype(np.int64))


def _with_nulls(packed: bytes, known: bytes | None, count: int) -> pa.Array:
    """`known` None: every value is null; empty: none is; else a byte a value, 0 for null."""
    if known is None:
        return pa.nulls(count, pa.int64())
    mask = np.frombuffer(known, np.uint8) == 0 if known else None
    return pa.array(np.frombuffer(packed, ">i8").astype(np.int64), mask=mask)


def _read_full(connection: psycopg.Connection[Any], schema: str, where: sql.Composable) -> Iterator[pa.RecordBatch]:
    columns = [
        sql.SQL("a.admitted_in::text::bigint AS admitted_in")
        if name == "admitted_in"
        else sql.SQL("a.{}").format(sql.Identifier(name))
        for name in schemas.ACCEPTED.names
    ]
    query = sql.SQL("SELECT {columns} FROM {schema}.accepted a WHERE {where} ORDER BY lane, position, ordinal").format(
        columns=sql.SQL(", ").join(columns), schema=sql.Identifier(schema), where=where
    )
    with connection.cursor(name="accepted") as cursor:
        cursor.itersize = ROWS_AT_ONCE
        cursor.execute(query)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            columns_of_rows = [list(column) for column in zip(*rows, strict=True)]
            yield pa.RecordBatch.from_arrays(
                [pa.array(values, field.type) for values, field in zip(columns_of_rows, schemas.ACCEPTED, strict=True)],
                schema=schemas.ACCEPTED,
            )


def _where(range_: CoordinateRange) -> sql.Composable:
    parts: list[sql.Composable] = [sql.SQL("a.lane = {}").format(sql.Literal(range_.lane))]
    ends: tuple[tuple[Coordinate | None, LiteralString], ...] = ((range_.low, ">="), (range_.high, "<"))
    for end, sign in ends:
        if end is not None:
            parts.append(
                sql.SQL("(a.position, a.ordinal) {} ({}, {})").format(
                    sql.SQL(sign),
                    sql.SQL("{}::bigint").format(sql.Literal(end.position)),
                    sql.SQL("{}::bigint").format(sql.Literal(end.ordinal)),
                )
            )
    return sql.SQL(" AND ").join(parts)
