"""Which owed rows a table cannot hold unchanged: found from each row and the types of its columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.frontiers import SINGLE_LANE
from workers.connectors.postgresql.coordinate_sql import INTEGERS
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.sinks.kit.staging import SUSPECT, is_held_by_jsonb
from workers.connectors.sinks.kit.staging import TEXTS as BATCH_TEXTS
from workers.connectors.sinks.table.facts import WrittenColumn
from workers.connectors.sinks.table.writing import column_mapped, value_of_op

BITS = {"int2": 15, "int4": 31, "int8": 63}


def unfit(mapped: MappedTable, columns: Mapping[str, WrittenColumn], batch: pa.RecordBatch) -> pa.Array:
    """True for each row of schemas.BATCH that the table as it is mapped cannot hold.

    What lengths, checks, domains and references refuse is told by the server alone, when the rows are sent.
    """
    refused = np.zeros(batch.num_rows, bool)
    for text in BATCH_TEXTS:
        refused |= _told(pc.match_substring(batch.column(text), "\x00"))
    refused |= _told(pc.not_equal(batch.column("lane"), SINGLE_LANE))
    if len(mapped.options["coordinate"]) == 1:
        refused |= _told(pc.not_equal(batch.column("ordinal"), 0))
    for option in ("event_id", "key", "op", "content"):
        name = column_mapped(mapped, option)
        if name is not None and columns[name].is_not_null:
            refused |= _told(pc.is_null(batch.column(option)))
    if mapped.options.get("digest"):
        return pa.array(refused)
    refused |= _op(mapped, batch)
    refused |= _key(mapped, columns, batch)
    return pa.array(refused | _content(mapped, columns, batch, refused))


def _op(mapped: MappedTable, batch: pa.RecordBatch) -> np.ndarray:
    ops, term = batch.column("op"), mapped.term("op")
    if term is None:
        return _told(pc.not_equal(ops, mapped.options["op_constant"]))
    if term.text is not None:
        return _told(pc.not_equal(ops, mapped.op_values.get(term.text, "")))
    return ~np.asarray(pc.is_in(ops, pa.array(list(value_of_op(mapped.options)))))


def _key(mapped: MappedTable, columns: Mapping[str, WrittenColumn], batch: pa.RecordBatch) -> np.ndarray:
    keys, term = batch.column("key"), mapped.term("key")
    if term is None:
        return ~_told(pc.is_null(keys))
    if term.text is not None:
        return _told(pc.fill_null(pc.not_equal(keys, term.text), True))
    if (name := column_mapped(mapped, "key")) is None:
        return np.zeros(batch.num_rows, bool)
    base = columns[name].base
    if base not in INTEGERS:
        return np.zeros(batch.num_rows, bool)
    return _each(keys, lambda text: not _is_integer(text, BITS[base]))


def _content(
    mapped: MappedTable, columns: Mapping[str, WrittenColumn], batch: pa.RecordBatch, known: np.ndarray
) -> np.ndarray:
    content, refused = batch.column("content"), np.zeros(batch.num_rows, bool)
    if mapped.term("content") is None:
        return ~_told(pc.is_null(content))
    if (name := column_mapped(mapped, "content")) is None:
        return refused
    match mapped.options["content_format"]:
        case "text" | "text_bytes":
            return _each(content, lambda text: not isinstance(_parsed(text), str))
        case "bytes" | "hex" | "base64":
            return _each(content, lambda text: not _is_hex(_parsed(text)))
        case "json" if columns[name].base == "jsonb":
            for row in np.flatnonzero(_told(pc.match_substring_regex(content, SUSPECT)) & ~known):
                refused[row] = not is_held_by_jsonb(content[row].as_py())
    return refused


def _each(texts: pa.Array, is_refused: Callable[[str], bool]) -> np.ndarray:
    return np.array([text is not None and is_refused(text) for text in texts.to_pylist()], bool)


def _is_integer(text: str, bits: int) -> bool:
    """Whether the column gives the same text again: no leading zeros, plus or blanks."""
    try:
        number = int(text)
    except ValueError:
        return False
    return str(number) == text and -(2**bits) <= number < 2**bits


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_hex(said: Any) -> bool:
    if not isinstance(said, str) or not said.startswith("\\x"):
        return False
    try:
        return bytes.fromhex(said[2:]).hex() == said[2:]
    except ValueError:
        return False


def _told(mask: pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(mask, False))
