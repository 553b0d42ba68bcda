"""Running one function over many small pieces of work, on the engine or in this process.

What comes back to the driver is one small row for each piece: a summary, or the error that a task met, as data.
"""

from __future__ import annotations

import gc
import json
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from recovery_api.domain.errors import FencepostError
from workers.evidence.folder import folder_error
from workers.spark.session import engine_errors_mapped, error_rows_raise

SUMMARY = pa.schema([("range", pa.int64()), ("lane", pa.string()), ("summary", pa.string()), ("error", pa.string())])

_modules_frozen = 0

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class InProcess:
    """In place of a session: the tasks of a job run one after another in this process."""

    def run(self, count: int, task: Task) -> list[dict[str, Any]]:
        work = (pa.record_batch({"id": pa.array([index], pa.int64())}) for index in range(count))
        return [row for batch in work for answer in task(iter([batch])) for row in answer.to_pylist()]


class Choosing:
    """In place of a session: where the newest reading was judged (`workers.spark.on_demand`)."""

    @property
    def chosen(self) -> Any:
        raise NotImplementedError


def session_chosen(session: Any) -> Any:
    """Where tasks run: what a session that chooses has chosen, else the session itself."""
    return session.chosen if isinstance(session, Choosing) else session


def tasks_run(session: Any, count: int, task: Task, rows_a_task: int = 1) -> list[dict[str, Any]]:
    """Run `task` over the indexes below `count` and return their summaries by index. Raises a task's own error."""
    if count == 0:
        return []
    engine = session_chosen(session)
    if isinstance(engine, InProcess):
        rows = engine.run(count, task)
    else:
        frame = engine.range(0, count, 1, math.ceil(count / rows_a_task)).mapInArrow(task, _summary_type())
        with engine_errors_mapped():
            rows = [row.asDict() for row in frame.collect()]  # toArrow would ask the engine for the schema first
    error_rows_raise(json.loads(row["error"]) for row in rows if row["error"])
    return [json.loads(row["summary"]) for row in sorted(rows, key=lambda row: row["range"])]


def _summary_type() -> Any:
    """SUMMARY for the engine. As a text it would be sent there to be read, once an audit."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    texts = (StructField(name, StringType()) for name in SUMMARY.names[1:])
    return StructType([StructField(SUMMARY.names[0], LongType()), *texts])


def summary_row(index: int, lane: str, body: Callable[[], dict[str, Any]]) -> pa.RecordBatch:
    """`body`'s summary as one row, or the error it raised as data: only text survives the way back."""
    summary: str | None = None
    error: str | None = None
    try:
        summary = json.dumps(body())
    except FencepostError as failure:
        error = json.dumps(failure.as_row(), default=str)
    except OSError as failure:  # of the evidence folder, or this machine's; a connector maps its end's own
        if (away := folder_error(failure)) is None:
            raise
        error = json.dumps(away.as_row())
    imports_freeze()
    return pa.RecordBatch.from_arrays(
        [pa.array([index]), pa.array([lane]), pa.array([summary], pa.string()), pa.array([error], pa.string())],
        schema=SUMMARY,
    )


def imports_freeze() -> None:
    """Keeps what this worker process has imported out of the collector's sight.

    PySpark collects after every task, and walking the objects of the imported libraries took 0.15 s each time: longer
    than most tasks.
    """
    global _modules_frozen
    if len(sys.modules) != _modules_frozen:
        _modules_frozen = len(sys.modules)
        gc.freeze()
