"""Reading the acceptance record in columns: packed by the server, block by block, unpacked here without a loop a row.

A block is a range of the primary key with about as many rows as any other, by a sample of pages taken with the
snapshot (no scan, no sort). A poor sample makes uneven blocks, never wrong ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, LiteralString

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.ledger.blocks import coordinate_after
from workers.connectors.postgresql.extent import blocks_are_bounded, blocks_of
from workers.connectors.postgresql.packed import (
    Block,
    Packed,
    packed_digest,
    packed_integer,
    packed_nullable_integer,
    packed_text,
    packed_time,
    read_packed,
    signed,
)
from workers.connectors.postgresql.sample import SAMPLE_CHARACTERS, SAMPLE_ROWS, ended, sample
from workers.connectors.postgresql.state_table import hash_of_key_text, image_rows
from workers.connectors.protocols.image import StateReading
from workers.connectors.readings import CoordinateRange, LaneReading, SafeFrontier, Width
from workers.connectors.rows import Grid
from workers.evidence import schemas

ROWS_A_POINT = 16_384
POINTS = 2048
"""Places where blocks may be cut: so many at most, and no more than the rows are worth."""

SAMPLED_PAGES, SAMPLED_PAGES_MOST = 1024, 4096
"""Of a record of a million pages and more every 1,024th is looked at, up to so many."""

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

_LATEST = """
    SELECT left(a.lane, %(cut)s), a.position || CASE WHEN a.ordinal = 0 THEN '' ELSE ':' || a.ordinal END,
        left(a.event_id, %(cut)s), left(a.key, %(cut)s), a.op, a.entry::text, a.generation::text,
        to_char(a.accepted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00', encode(a.payload_digest, 'hex')
    FROM (SELECT * FROM {schema}.accepted WHERE ctid >= format('(%%s,0)', %(page)s::bigint)::tid
          ORDER BY entry DESC LIMIT %(rows)s) a
    ORDER BY a.entry DESC"""

LOOKS_BACK = (100, 10_000, None)
"""How many pages the search for the latest entries goes back, one try after the other."""

_PAGES = """
    SELECT pg_relation_size(c.oid) / current_setting('block_size')::bigint
    FROM pg_class c WHERE c.relname = 'accepted' AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)"""

_NARROW = {Width.COORDINATE: ("position", "ordinal"), Width.PAYLOAD: ("position", "ordinal", "payload_digest")}
_HEAD = ("head_position", "head_ordinal")


_LATER = """
    SELECT DISTINCT a.key FROM {schema}.accepted a
    JOIN (SELECT DISTINCT ON (u.key) u.key, u.position, u.ordinal
          FROM unnest(%(key)s::text[], %(position)s::bigint[], %(ordinal)s::bigint[]) AS u (key, position, ordinal)
          ORDER BY u.key, u.position, u.ordinal) b ON b.key = a.key
    WHERE {where} AND (a.position, a.ordinal) > (b.position, b.ordinal)"""


def latest_read(connection: psycopg.Connection[Any], schema: str) -> dict[str, Any]:
    """The latest acceptances by entry, for a person: coordinates as the record holds them, texts cut short.

    A record only grows, so they lie on its last pages, and no acceptance pays for an index on their numbers. (Where
    refused transactions left room further up, a newer entry may have filled it: this is for a look, not a verdict.)
    """
    names = ("lane", "coordinate", "event_id", "key", "op", "entry", "generation", "accepted_at", "payload_digest")
    found_pages = connection.execute(_PAGES, (schema,)).fetchone()
    query = sql.SQL(_LATEST).format(schema=sql.Identifier(schema))
    rows: list[tuple[Any, ...]] = []
    for back in LOOKS_BACK:
        page = 0 if back is None else max((found_pages[0] if found_pages else 0) - back, 0)
        given = {"page": page, "cut": SAMPLE_CHARACTERS + 1, "rows": SAMPLE_ROWS}
        rows = connection.execute(query, given).fetchall()
        if len(rows) == SAMPLE_ROWS or page == 0:
            break
    found = [{name: ended(value) for name, value in zip(names, row, strict=True)} for row in rows]
    order = "the latest acceptance first; coordinates as the record holds them"
    return sample(found, list(names), order, "The record holds no row yet.")


def lanes_read(connection: psycopg.Connection[Any], schema: str, grid: Mapping[str, Any]) -> dict[str, LaneReading]:
    """The record's lanes with the lowest and highest coordinate of each, and by `grid` about how many rows.

    A record has no safe frontier: it says so.
    """
    unsaid = SafeFrontier(None, "acceptance record", "A record says nothing of what may still be committed.")
    query = sql.SQL(_LANES).format(schema=sql.Identifier(schema))
    return {
        lane: LaneReading(
            lane, Coordinate(*high), Coordinate(*low), None, unsaid, grid[lane]["rows"] if lane in grid else 0
        )
        for lane, *rest in connection.execute(query)
        for low, high in [(rest[:2], rest[2:])]
    }


def grid_read(connection: psycopg.Connection[Any], schema: str) -> dict[str, Any]:
    """Where blocks may be cut, for `accepted_read`, as JSON can carry it: by lane about how many rows, and points."""
    found = connection.execute(_PAGES, (schema,)).fetchone()
    pages = max(found[0] if found else 0, 1)
    percent = min(100.0, 100.0 * min(max(pages // 1024, SAMPLED_PAGES), SAMPLED_PAGES_MOST) / pages)
    query = sql.SQL(
        "SELECT lane, position, ordinal FROM {schema}.accepted TABLESAMPLE SYSTEM ({percent}) REPEATABLE (1)"
    ).format(schema=sql.Identifier(schema), percent=sql.Literal(percent))
    sampled: dict[str, list[tuple[int, int]]] = {}
    for lane, position, ordinal in connection.execute(query):
        sampled.setdefault(lane, []).append((position, ordinal))
    grid = {}
    for lane, places in sampled.items():
        rows = round(len(places) * 100.0 / percent)
        grid[lane] = {"rows": rows, "points": _points(places, min(max(rows // ROWS_A_POINT, 1), POINTS))}
    return grid


def accepted_read(
    connection: psycopg.Connection[Any],
    schema: str,
    range_: CoordinateRange,
    width: Width,
    with_head: bool,
    grid: dict[str, Any],
) -> Iterator[pa.RecordBatch]:
    """The record's entries in the range, in no promised order."""
    names = list(_NARROW.get(width, schemas.ACCEPTED.names))
    if width is not Width.FULL:
        names += [*(_HEAD if with_head else ()), "entry", *(["admitted_in"] if width is Width.PAYLOAD else [])]
    table = sql.SQL("{schema}.accepted a").format(schema=sql.Identifier(schema))
    cuts = grid.get(range_.lane, {"rows": 0, "points": []})
    cut = blocks_of(cuts["points"], range_, cuts["rows"])
    columns, blocks = [packed_column(name) for name in names], [Block.within(block, _where(block)) for block in cut]
    for arrays in read_packed(connection, columns, table, blocks, blocks_are_bounded(cut)):
        yield pa.RecordBatch.from_pydict({name: arrays[name] for name in names})


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


def later_read(
    connection: psycopg.Connection[Any],
    schema: str,
    state: StateReading,
    lane: str,
    above: Coordinate | None,
    grid: dict[str, Any],
) -> Iterator[pa.RecordBatch]:
    """schemas.IMAGE_ROW of the lane's acceptances above a coordinate, without digests."""
    columns = [
        packed_digest("key_hash", hash_of_key_text(state, "a.key")),
        packed_column("position"),
        packed_column("ordinal"),
    ]
    low = None if above is None else coordinate_after(above)
    cuts = grid.get(lane, {"rows": 0, "points": []})
    blocks = [_where(block) for block in blocks_of(cuts["points"], CoordinateRange(lane, low, None), cuts["rows"])]
    table = sql.SQL("{schema}.accepted a").format(schema=sql.Identifier(schema))
    yield from image_rows(connection, columns, table, blocks)


def packed_column(name: str) -> Packed:
    """One column of schemas.ACCEPTED, of the record's row `a`."""
    column = sql.SQL("a.{}").format(sql.Identifier(name))
    match name:
        case "lane" | "event_id":
            return packed_text(name, column)
        case "payload_digest":
            return packed_digest(name, column)
        case "accepted_at":
            return packed_time(name, column)
        case "head_position" | "head_ordinal":
            return packed_nullable_integer(name, sql.SQL("int8send({})").format(column), signed)
        case "admitted_in":
            return packed_integer(name, sql.SQL("xid8send({})").format(column), signed)
        case "position":
            above = sql.SQL("int4send(({} - {}::int8)::int4)")
            send = sql.SQL("int8send({})").format(column)
            return packed_integer(name, send, signed, lambda lowest: above.format(column, sql.Literal(str(lowest))))
        case _:
            return packed_integer(name, sql.SQL("int8send({})").format(column), signed)


def _points(places: list[tuple[int, int]], count: int) -> Grid:
    places.sort()
    chosen = np.unique(np.linspace(0, len(places) - 1, count + 1).astype(np.int64))
    return [list(places[at]) for at in chosen]


def _where(range_: CoordinateRange) -> sql.Composable:
    parts: list[sql.Composable] = [sql.SQL("a.lane = {}").format(sql.Literal(range_.lane))]
    ends: tuple[tuple[Coordinate | None, LiteralString], ...] = ((range_.low, ">="), (range_.high, "<"))
    for end, sign in ends:
        if end is not None:
            parts.append(
                sql.SQL("(a.position, a.ordinal) {} (({})::bigint, ({})::bigint)").format(
                    sql.SQL(sign), sql.Literal(end.position), sql.Literal(end.ordinal)
                )
            )
    return sql.SQL(" AND ").join(parts)
