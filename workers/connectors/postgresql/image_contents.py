"""Contents that the archive kept, digested by the source's own server: its SQL makes the one rule's digests, and no other.

They travel as three texts, their rows joined by a character that no JSON holds unescaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from recovery_api.domain.errors import Unsuitable
from workers.connectors.postgresql.connection import Address, snapshot_open
from workers.connectors.postgresql.image_sql import digest_of_event, is_partial, key_hash_of_event
from workers.connectors.postgresql.packed import Block, packed_digest, packed_flag, read_packed
from workers.connectors.protocols.image import StateMapping
from workers.evidence.schemas import IMAGE_EVENT

ROWS_A_STATEMENT = 2_000
BETWEEN, NOTHING, SOMETHING = "\x01", "\x02", "v"
GIVEN = ("key", "content", "op")


def contents_image(
    address: Address, handle: Mapping[str, Any], mapping: StateMapping, rows: pa.Table
) -> Iterator[pa.RecordBatch]:
    """schemas.IMAGE_EVENT of rows of position, ordinal, op, key and content. Raises: Unsuitable."""
    soft = handle["has_soft_errors"]
    content = (
        "CASE WHEN pg_input_is_valid(e.content, 'jsonb') THEN e.content::jsonb END" if soft else "e.content::jsonb"
    )
    digest = digest_of_event(mapping, content, "e.content", soft)
    columns = [
        packed_digest("key_hash", sql.SQL(key_hash_of_event(mapping.key, "e.key", soft))),
        packed_digest("digest", sql.SQL(f"(CASE WHEN e.op <> 'delete' THEN {digest} END)")),
        packed_flag("is_partial", sql.SQL(is_partial(mapping, "e.op", content))),
    ]
    with snapshot_open(address, handle["snapshot"]) as connection:
        for start in range(0, rows.num_rows, ROWS_A_STATEMENT):
            some = rows.slice(start, ROWS_A_STATEMENT).combine_chunks()
            for arrays in read_packed(connection, columns, _given(some), [Block(sql.SQL("true"))]):
                places = {name: some[name].combine_chunks() for name in ("position", "ordinal")}
                yield pa.record_batch([{**places, **arrays}[one.name] for one in IMAGE_EVENT], schema=IMAGE_EVENT)


def _given(rows: pa.Table) -> sql.Composable:
    """The rows' texts as a relation, in their order."""
    parted = [
        sql.SQL("string_to_array({}, {}, {})").format(sql.Literal(_joined(rows[name], name)), *_marks())
        for name in GIVEN
    ]
    shown = sql.SQL(", ").join(sql.SQL("substr(g.{n}, 2) AS {n}").format(n=sql.Identifier(name)) for name in GIVEN)
    return sql.SQL(
        "(SELECT {shown} FROM unnest({parted}) WITH ORDINALITY AS g({names}, place) ORDER BY g.place OFFSET 0) AS e"
    ).format(
        shown=shown, parted=sql.SQL(", ").join(parted), names=sql.SQL(", ").join(sql.Identifier(name) for name in GIVEN)
    )


def _joined(column: pa.ChunkedArray, name: str) -> str:
    texts = column.combine_chunks().cast(pa.string())
    if pc.any(pc.match_substring_regex(texts, f"[{BETWEEN}{NOTHING}]")).as_py():
        problem = "holds a control character by which rows are told apart while they are digested"
        raise Unsuitable(f"the {name} of an archived event", problem, "Keep a base while the source holds everything.")
    marked = pc.fill_null(pc.binary_join_element_wise(SOMETHING, texts, ""), NOTHING)
    joined: str = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(marked)], pa.int32()), marked), BETWEEN)[
        0
    ].as_py()
    return joined


def _marks() -> tuple[sql.Composable, sql.Composable]:
    return sql.SQL(r"E'\x01'"), sql.SQL(r"E'\x02'")
