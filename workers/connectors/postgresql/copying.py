"""Copying Arrow rows into a table: COPY, with CSV that Arrow itself writes."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from psycopg import sql


def rows_copy(
    cursor: psycopg.Cursor[Any], table: sql.Identifier, rows: pa.RecordBatch, columns: Sequence[str] | None = None
) -> None:
    """One COPY of `rows` into the columns of the same names. A `content` is JSON text."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns or rows.schema.names))
    head = sql.SQL("COPY {table} ({columns}) FROM STDIN").format(table=table, columns=names)
    if _has_end_mark(rows):
        with cursor.copy(head) as copy:
            for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                copy.write_row(row)
        return
    buffer = BytesIO()
    options = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
    pa.csv.write_csv(rows, buffer, options)
    with cursor.copy(head + sql.SQL(" (FORMAT csv)")) as copy:
        copy.write(buffer.getbuffer())


def _has_end_mark(rows: pa.RecordBatch) -> bool:
    r"""Whether a text holds `\.`, which older servers take for the end of CSV where a line holds nothing else. No JSON does."""
    texts = [rows.column(name) for name in rows.schema.names if name != "content" and _is_text(rows.schema.field(name))]
    return any(pc.any(pc.match_substring(text, "\\.")).as_py() for text in texts)


def _is_text(field: pa.Field) -> bool:
    return bool(pa.types.is_string(field.type))
