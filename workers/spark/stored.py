"""Stored rows as a DataFrame: tasks get the objects as every reader does, checked, so no reader of Spark's own needs the store."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recovery_api.domain.errors import FencepostError
from recovery_api.domain.evidence_places import Stored
from workers.evidence.folder import folder_error
from workers.evidence.store import PUT_BYTES, rows_read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASKS_LEAST = 8
"""Of one DataFrame, where it has so many objects."""

_SPARK_TYPES = {
    pa.string(): "string",
    pa.int8(): "tinyint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
}


def ddl_of(schema: pa.Schema) -> str:
    """The schema as Spark has it."""
    return ", ".join(f"`{field.name}` {_SPARK_TYPES[field.type]}" for field in schema)


def stored_frame(session: Any, stored: Stored, sort: str, schema: pa.Schema) -> DataFrame:
    """The rows of that sort, and `error`: what a task met, as data, in a row that is null else."""
    objects = stored.of(sort)
    size = sum(one.size for one in objects)
    tasks = max(1, min(len(objects), max(TASKS_LEAST, math.ceil(size / PUT_BYTES))))
    wire = _wire(schema).append(pa.field("error", pa.string()))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                try:
                    rows = rows_read(stored, [objects[index]], schema)
                except FencepostError as failure:
                    yield _error(wire, failure)
                except OSError as failure:
                    if (away := folder_error(failure)) is None:
                        raise
                    yield _error(wire, away)
                else:
                    nothing = pa.nulls(rows.num_rows, pa.string())
                    yield from rows.append_column("error", nothing).cast(wire).to_batches()

    frame: DataFrame = session.range(0, len(objects), 1, tasks).mapInArrow(read, ddl_of(wire))
    return frame


def _wire(schema: pa.Schema) -> pa.Schema:
    """Spark knows no binary of a fixed width."""
    fixed = pa.types.is_fixed_size_binary
    return pa.schema([(one.name, pa.binary() if fixed(one.type) else one.type) for one in schema])


def _error(wire: pa.Schema, failure: FencepostError) -> pa.RecordBatch:
    row = dict.fromkeys(wire.names) | {"error": json.dumps(failure.as_row(), default=str)}
    return pa.RecordBatch.from_pylist([row], schema=wire)
