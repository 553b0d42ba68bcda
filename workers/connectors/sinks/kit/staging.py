"""Rows to staging by COPY, so that repeating a task leaves the same rows.

The law: what is staged is keyed by generation, arm and coordinate, and the first row of a key stays. A different row
under the same key is therefore found by the fire, whose digest is recomputed there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from recovery_api.domain.errors import Unsuitable
from workers.connectors.postgresql.copying import rows_copy
from workers.connectors.postgresql.sqlstates import sentence_of
from workers.evidence import schemas
from workers.evidence.canonical import UncanonicalContent, canonical, content_parse

COLUMNS = sql.SQL(", ").join(map(sql.Identifier, ("generation", "arm", *schemas.BATCH.names)))

TEXTS = ("lane", "event_id", "op", "key", "content")

SUSPECT = r"\\u0000|\\u[dD][89a-fA-F]|[eE][+-]?[0-9]{4}|[0-9]{1000}"
"""A content without these is held by jsonb if it is JSON at all."""

_HELD_BY_NO_JSONB = re.compile(r"(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f][0-9a-f]{2})")

_ATTEMPT = """
    CREATE TEMPORARY TABLE attempt (generation bigint, arm bigint, lane text, position bigint, ordinal bigint,
        event_id text, op text, key text, content jsonb) ON COMMIT DROP"""


def batch_stage(
    connection: psycopg.Connection[Any],
    schema: str,
    generation: int,
    arm: int,
    batch: pa.RecordBatch,
    begin: Callable[[], AbstractContextManager[Any]] | None = None,
) -> None:
    """One batch in one transaction (opened by `begin`, where it is given). Where another attempt has staged some of it already, only the rest is added.

    Raises: Unsuitable naming the coordinate of a row that the sink cannot represent.
    """
    staged = sql.Identifier(schema, "staged")
    begin = begin or connection.transaction
    columns = [pa.repeat(pa.scalar(number, pa.int64()), batch.num_rows) for number in (generation, arm)]
    rows = pa.RecordBatch.from_arrays(
        [*columns, *(batch.column(name) for name in schemas.BATCH.names)],
        names=["generation", "arm", *schemas.BATCH.names],
    )
    try:
        try:
            with begin(), connection.cursor() as cursor:
                rows_copy(cursor, staged, rows)
        except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
            with begin(), connection.cursor() as cursor:
                cursor.execute(_ATTEMPT)
                rows_copy(cursor, sql.Identifier("pg_temp", "attempt"), rows)
                cursor.execute(
                    sql.SQL(
                        "INSERT INTO {staged} ({columns}) SELECT {columns} FROM pg_temp.attempt"
                        " ORDER BY lane, position, ordinal ON CONFLICT DO NOTHING"
                    ).format(staged=staged, columns=COLUMNS)
                )
    except (psycopg.errors.DataError, psycopg.errors.ProgramLimitExceeded, psycopg.errors.CheckViolation) as error:
        raise _unsuitable(batch, error) from error


def unrepresentable(batch: pa.RecordBatch, needs_key: bool = False) -> pa.Array:
    """True for each row of schemas.BATCH that jsonb or text cannot hold. `needs_key`: also for one without a key."""
    refused = np.zeros(batch.num_rows, bool)
    for name in TEXTS:
        refused |= _told(pc.match_substring(batch.column(name), "\x00"))
    content = batch.column("content")
    for row in np.flatnonzero(_told(pc.match_substring_regex(content, SUSPECT)) & ~refused):
        refused[row] = not is_held_by_jsonb(content[row].as_py())
    if needs_key:
        refused |= _told(pc.is_null(batch.column("key")))
    return pa.array(refused)


def _told(mask: pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(mask, False))


def is_held_by_jsonb(text: str) -> bool:
    try:
        return not _HELD_BY_NO_JSONB.search(canonical(content_parse(text)))
    except (json.JSONDecodeError, UncanonicalContent):
        return False


def _unsuitable(batch: pa.RecordBatch, error: psycopg.Error) -> Unsuitable:
    reason = sentence_of(error.sqlstate) if error.sqlstate else "its content cannot be represented"
    refused = np.flatnonzero(np.asarray(unrepresentable(batch)))
    row = int(refused[0]) if len(refused) else _line_of(batch, error)
    if row is None:
        return Unsuitable("the batch", reason, "Look at its first and last event.")
    where = ":".join(str(batch.column(name)[row].as_py()) for name in ("lane", "position", "ordinal"))
    return Unsuitable(
        f"the event at {where}", f"the sink cannot represent it ({reason})", "Acknowledge it as omitted, or mend it."
    )


def _line_of(batch: pa.RecordBatch, error: psycopg.Error) -> int | None:
    """The row that COPY names by its line, where no text runs over several lines."""
    named = re.search(r"line ([0-9]+)", error.diag.context or "")
    spans = any(pc.any(pc.match_substring(batch.column(name), "\n")).as_py() for name in TEXTS)
    return int(named[1]) - 1 if named and not spans and 0 < int(named[1]) <= batch.num_rows else None
