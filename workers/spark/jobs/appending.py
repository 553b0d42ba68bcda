"""Appending an owed part to a sink without a fence: one task, because it is one transaction there.

The law: what is sent is read in the evidence's own source snapshot, and must be what the evidence judged. A repeated or
speculative attempt waits at the sink for the one before it, and finds its rows already there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from workers.connectors.protocols.delivery import Answer
from workers.connectors.readings import BatchDigest
from workers.evidence.archive.contents import contents_read
from workers.evidence.batch import batch_of_part
from workers.evidence.ranges import MeetSpec
from workers.evidence.read import Evidence, Piece
from workers.spark.tasks import summary_row, tasks_run


def batch_append(session: Any, evidence: Evidence, wait_seconds: float = 5.0) -> Answer:
    """The evidence's batch landed at the sink in one transaction; its answer.

    Raises: a task's own error, as AppendedDelivery.append says.
    """
    spec, pieces = evidence.spec, evidence.pieces
    owed = BatchDigest(evidence.batch_count, evidence.batch_digest)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield summary_row(index, "", functools.partial(_append, spec, pieces, owed, wait_seconds))

    (row,) = tasks_run(session, 1, run)
    return Answer(row["word"], row["data"])


def _append(spec: MeetSpec, pieces: tuple[Piece, ...], owed: BatchDigest, wait_seconds: float) -> dict[str, Any]:
    answer = spec.fired_into.appended().append(_content(spec, pieces), wait_seconds, owed)
    return {"word": answer.word, "data": dict(answer.data)}


def _content(spec: MeetSpec, pieces: tuple[Piece, ...]) -> Iterator[pa.RecordBatch]:
    for piece in pieces:
        yield from contents_read(spec, batch_of_part(spec, piece.part))
