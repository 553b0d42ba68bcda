"""Rows read one by one: contents to be sent, and the few contents that only Python can digest.

One law: memory holds a few MiB of rows and one row more, however large a content is (24 MiB payloads are real).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from json import JSONDecodeError
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.csv
from psycopg import sql

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput, Unsuitable
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.kinds.postgresql_mapping import OPS
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.protocols.record import CONTENT_CHARACTERS, CONTENT_ENTRIES, ContentSeen
from workers.evidence import canonical
from workers.evidence.schemas import BATCH, DIGEST

COORDINATES_A_STATEMENT = 10_000
BATCH_BYTES = 8 * 2**20

HANDED_OVER = ("event_id", "op", "key", "content")
"""Text columns of schemas.BATCH after the coordinate."""


def read_content(
    connection: psycopg.Connection[Any], mapped: MappedTable, coordinates: pa.Table
) -> Iterator[pa.RecordBatch]:
    """schemas.BATCH rows of these (lane, position, ordinal), in committed order, a few MiB of text a batch."""
    event_id = mapped.column("event_id")
    columns = {
        "event_id": sql.SQL("NULL::text") if event_id is None else sql.SQL("{}::text").format(event_id),
        "op": mapped.op,
        "key": mapped.key,
        "content": mapped.content_raw,
    }
    ordered = coordinates.sort_by([("position", "ascending"), ("ordinal", "ascending")])
    for lane, held in _several(ordered, spans_pair=len(mapped.coordinate.components) > 1):
        for table in _rows(connection, mapped, columns, held):
            if table["op"].null_count:
                row = table.filter(table["op"].is_null()).to_pylist()[0]
                raise op_unmapped(mapped, row["position"], row["ordinal"])
            yield from _batch(lane, table).to_batches()


def contents_begin(
    connection: psycopg.Connection[Any], mapped: MappedTable, coordinate: Coordinate
) -> list[ContentSeen]:
    """How the contents of the rows at one coordinate begin: cut by the server, so that a large one stays there."""
    place = pa.table({"position": [coordinate.position], "ordinal": [coordinate.ordinal]})
    raw = mapped.content_raw
    columns = {
        "start": sql.SQL("left({}, {})").format(raw, sql.Literal(CONTENT_CHARACTERS)),
        "bytes": sql.SQL("octet_length({})::text").format(raw),
    }
    found: list[ContentSeen] = []
    for _, held in _several(place, spans_pair=len(mapped.coordinate.components) > 1):
        for table in _rows(connection, mapped, columns, held):
            for row in table.slice(0, CONTENT_ENTRIES - len(found)).to_pylist():
                size = int(row["bytes"] or 0)
                found.append(ContentSeen(row["start"], size, size > len((row["start"] or "").encode())))
    return found


def coordinates_held(
    connection: psycopg.Connection[Any], mapped: MappedTable, coordinates: pa.Table
) -> list[Coordinate]:
    """Those of these (lane, position, ordinal) that have a row, each once, ascending."""
    found: set[Coordinate] = set()
    for _, held in _several(coordinates, spans_pair=len(mapped.coordinate.components) > 1):
        for table in _rows(connection, mapped, {}, held):
            found |= {
                Coordinate(*pair)
                for pair in zip(*(table[name].to_pylist() for name in ("position", "ordinal")), strict=True)
            }
    return sorted(found)


def digests_complete(
    connection: psycopg.Connection[Any], mapped: MappedTable, arrays: Mapping[str, pa.Array]
) -> pa.Array:
    """The digests with those that SQL could not give computed here, from the raw contents in the same snapshot.

    Of several such rows at one coordinate the digests are right as a set; which is whose cannot be told.

    Raises: Unsuitable naming the coordinate, for a content that is not JSON or an op mapped to nothing.
    """
    digests = arrays["payload_digest"]
    missing = np.flatnonzero(np.asarray(digests.is_null()))
    positions, ordinals = (np.asarray(arrays[name])[missing].tolist() for name in ("position", "ordinal"))
    held = list(zip(positions, ordinals, strict=True))
    distinct = list(dict.fromkeys(held))
    found: dict[tuple[int, int], list[bytes]] = {}
    condition = sql.SQL("{} IS NULL").format(mapped.payload_digest)
    columns = {"op": mapped.op, "key": mapped.key, "content": mapped.content_raw}
    for start in range(0, len(distinct), COORDINATES_A_STATEMENT):
        for table in _rows(connection, mapped, columns, distinct[start : start + COORDINATES_A_STATEMENT], condition):
            for row in table.to_pylist():
                place = (row["position"], row["ordinal"])
                found.setdefault(place, []).append(_digest(mapped, row))
    values = digests.to_pylist()
    for index, place in zip(missing.tolist(), held, strict=True):
        values[index] = found[place].pop()
    return pa.array(values, DIGEST)


def op_unmapped(mapped: MappedTable, position: int, ordinal: int) -> Unsuitable:
    """The error for a row whose op column says something that is mapped to no op."""
    return Unsuitable(
        f"column {mapped.options['op']!r} at {mapped.coordinate.format(Coordinate(position, ordinal))}",
        f"holds a value that is none of {', '.join(mapped.op_values)}",
        f"Map it in op_values to one of {', '.join(OPS)}.",
    )


def _digest(mapped: MappedTable, row: Mapping[str, Any]) -> bytes:
    if row["op"] is None:
        raise op_unmapped(mapped, row["position"], row["ordinal"])
    coordinate = mapped.coordinate.format(Coordinate(row["position"], row["ordinal"]))
    place = f"column {mapped.options['content']!r} at {coordinate}"
    try:
        content = canonical.ABSENT if row["content"] is None else canonical.content_parse(row["content"])
        digest = canonical.content_digest(content, row["op"])
    except JSONDecodeError as error:
        problem = f"is not JSON ({error.msg} at character {error.pos})"
        raise Unsuitable(place, problem, "Mend the row, or read the column with content_format text.") from None
    except BadInput as error:
        raise Unsuitable(place, str(error), "Read the column with content_format text.") from error
    return canonical.payload_digest(row["op"], row["key"], digest)


def _rows(
    connection: psycopg.Connection[Any],
    mapped: MappedTable,
    columns: Mapping[str, sql.Composable],
    held: list[tuple[int, int]],
    condition: sql.Composable | None = None,
) -> Iterator[pa.Table]:
    """The rows at these held coordinates, in committed order: position and ordinal as held, then `columns` as text."""
    coordinate = mapped.coordinate
    arrays = [component.literals([pair[at] for pair in held]) for at, component in enumerate(coordinate.components)]
    wanted = [sql.Identifier(f"w{at}") for at in range(len(arrays))]
    met = [
        sql.SQL("{} = wanted.{}").format(component.native, want)
        for component, want in zip(coordinate.components, wanted, strict=True)
    ]
    selected = [sql.SQL("encode({}, 'hex')").format(component.send) for component in coordinate.components]
    statement = sql.SQL(
        "COPY (SELECT {} FROM unnest({}) AS wanted({}) JOIN {} ON {} WHERE {} ORDER BY {}) TO STDOUT (FORMAT csv)"
    ).format(
        sql.SQL(", ").join([*selected, *columns.values()]),
        sql.SQL(", ").join(arrays),
        sql.SQL(", ").join(wanted),
        mapped.rows,
        sql.SQL(" AND ").join(met),
        condition or sql.SQL("true"),
        coordinate.order(),
    )
    sent = [f"sent{at}" for at in range(len(arrays))]
    with connection.cursor().copy(statement) as copy:
        for text in _several_mib(copy):
            table = _csv(text, [*sent, *columns])
            parts = [bytes.fromhex("".join(table[name].to_pylist())) for name in sent]
            numbers = [component.held(part) for component, part in zip(coordinate.components, parts, strict=True)]
            ordinals = numbers[1] if len(numbers) > 1 else np.zeros(len(table), np.int64)
            arrays_held = [pa.array(numbers[0]), pa.array(ordinals)]
            yield pa.table([*arrays_held, *(table[name] for name in columns)], ["position", "ordinal", *columns])


def _several(coordinates: pa.Table, spans_pair: bool) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Lane and distinct held coordinates, COORDINATES_A_STATEMENT at a time, as they come."""
    lanes = coordinates["lane"].to_pylist() if "lane" in coordinates.column_names else [SINGLE_LANE] * len(coordinates)
    rows = zip(lanes, coordinates["position"].to_pylist(), coordinates["ordinal"].to_pylist(), strict=True)
    for lane, of_lane in groupby(rows, key=lambda row: row[0]):
        held = list(dict.fromkeys((position, ordinal) for _, position, ordinal in of_lane if spans_pair or not ordinal))
        for start in range(0, len(held), COORDINATES_A_STATEMENT):
            yield lane, held[start : start + COORDINATES_A_STATEMENT]


def _batch(lane: str, table: pa.Table) -> pa.Table:
    columns = [table[name] for name in ("position", "ordinal", *HANDED_OVER)]
    return pa.table([pa.repeat(lane, len(table)), *columns], schema=BATCH)


def _several_mib(copy: Iterable[Any]) -> Iterator[bytearray]:
    """The messages joined until they are BATCH_BYTES. Every message ends with a whole row."""
    gathered = bytearray()
    for message in copy:
        gathered += message
        if len(gathered) >= BATCH_BYTES:
            yield gathered
            gathered = bytearray()
    if gathered:
        yield gathered


def _csv(text: bytearray, names: list[str]) -> pa.Table:
    return pyarrow.csv.read_csv(
        pa.BufferReader(pa.py_buffer(text)),
        read_options=pyarrow.csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    )
