"""Parquet, as databases, Arrow and Spark write it: dictionaries, binaries, structs, whole folders."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from recovery_api.domain.errors import BadFile
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.values import instant_text

BATCH_ROWS = 4096


def parquet_columns(path: Path, notes: FileNotes) -> dict[str, Any]:
    """Column names and Arrow types. Raises: BadFile for a file cut short, or a repeated column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.ParquetFile(path).schema_arrow
    except (pa.ArrowInvalid, OSError) as error:
        raise _torn(notes, error) from error
    names = schema.names
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise BadFile(notes.name, "schema", f"column {', '.join(repeated)} is repeated", "Name each column once.")
    return {field.name: field.type for field in schema}


def parquet_records(
    path: Path, notes: FileNotes, wanted: set[str] | None = None, plain: frozenset[str] = frozenset()
) -> Iterator[tuple[dict[str, Any], int]]:
    """(record, row number from 1) of each row, of the columns that are wanted (None: all).

    Numbers, booleans, lists and structs are JSON's; a float is exact by its shortest text; bytes stay bytes where a column
    is one of `plain`, and are `\\x` and hex digits within others; times are ISO 8601 in UTC.

    Raises: BadFile.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    notes.unit = "row"
    try:
        file = pq.ParquetFile(path)
        names = [name for name in file.schema_arrow.names if wanted is None or name in wanted]
        simple = {field.name for field in file.schema_arrow if _is_simple(field.type)}
        number = 0
        for batch in file.iter_batches(BATCH_ROWS, columns=names):
            columns = {
                name: values if name in simple else [_content(value, name in plain) for value in values]
                for name, values in ((name, batch[name].to_pylist()) for name in names)
            }
            for cells in zip(*columns.values(), strict=True):
                number += 1
                notes.lines = number
                yield dict(zip(names, cells, strict=True)), number
    except (pa.ArrowInvalid, OSError) as error:
        raise _torn(notes, error) from error
    except ValueError as error:
        raise BadFile(notes.name, f"row {number + 1}", str(error), "") from error


def _torn(notes: FileNotes, error: Exception) -> BadFile:
    return BadFile(notes.name, "footer", "is not a whole Parquet file", str(error).splitlines()[0])


def value_type(kind: Any) -> Any:
    """The type of what a dictionary stands for."""
    import pyarrow.types as pt

    return kind.value_type if pt.is_dictionary(kind) else kind


def is_text(kind: Any) -> bool:
    import pyarrow.types as pt

    kind = value_type(kind)
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def is_bytes(kind: Any) -> bool:
    import pyarrow.types as pt

    kind = value_type(kind)
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind))


def _is_simple(kind: Any) -> bool:
    import pyarrow.types as pt

    kind = value_type(kind)
    return is_text(kind) or bool(pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_null(kind))


def refuse_type(name: str, kind: Any, notes: FileNotes) -> None:
    """Raises: BadFile for a column of the product's own whose type cannot serve."""
    import pyarrow.types as pt

    kind = value_type(kind)
    texts = is_text(kind) or is_bytes(kind)
    if name in ("coordinate", "head"):
        is_fit = pt.is_integer(kind) or texts or (pt.is_decimal(kind) and kind.scale == 0)
        remedy = "Whole numbers or text."
    elif name in ("generation", "entry"):
        is_fit, remedy = pt.is_integer(kind), "Whole numbers."
    elif name == "value":
        is_fit, remedy = not pt.is_temporal(kind), "JSON as text."
    elif name in ("key", "lane", "event_id"):
        is_fit, remedy = texts or pt.is_integer(kind), "Text."
    else:
        is_fit, remedy = texts, "Text."
    if not is_fit and not pt.is_null(kind):
        raise BadFile(notes.name, f"column {name}", f"type {kind} cannot serve", remedy)


def _content(value: Any, is_plain: bool) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"value {value} is not JSON")
        return Decimal(repr(value))
    if isinstance(value, bytes):
        return value if is_plain else "\\x" + value.hex()
    if isinstance(value, dict):
        return {name: _content(item, False) for name, item in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):  # a map
            return {str(name): _content(item, False) for name, item in value}
        return [_content(item, False) for item in value]
    if isinstance(value, datetime):
        return instant_text(value.isoformat())
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    return value
