"""What a source must do: be read, and nothing else.

Executors import this: no Django, no Celery, no Spark. A connector is made from its kind's parsed options, is cheap to
make, and opens connections only when asked. Rows leave as Arrow record batches in the shapes of
workers.evidence.schemas. A driver's exceptions are mapped at the connector's edge to recovery_api.domain.errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate, Spelling
from workers.connectors.readings import (
    BatchDigest,
    ConnectionReport,
    CoordinateRange,
    CursorReading,
    LateRows,
    Reading,
    Width,
)


@runtime_checkable
class Source(Protocol):
    """The authority of a committed history. Only reads, in read-only transactions."""

    kind: str
    spelling: Spelling

    def test(self) -> ConnectionReport:
        """What is there, whether it can serve, and a sentence for each thing that is wrong. Changes nothing."""
        ...

    def cursors(self) -> Mapping[str, CursorReading]:
        """The relay's cursor by lane, where one is registered. Never evidence; that it cannot be read is no error."""
        ...

    def hold_pin(self) -> AbstractContextManager[Reading]:
        """Heads, floors and safe frontiers from one snapshot, which stays open until the manager closes, so that late rows
        can be looked up in it.

        The handle's `pinned` tells `read_history` how; without it, late rows cannot be seen.
        """
        ...

    def hold_snapshot(self) -> AbstractContextManager[Reading]:
        """One state of the history that `read_history` and `read_content` read from any process while the manager is
        open: a snapshot that they join, or what is immutable and found so by whoever reads it."""
        ...

    def split(self, reading: Reading, lane: str, parts: int) -> list[CoordinateRange]:
        """About `parts` ranges that together cover the whole lane, open at both ends."""
        ...

    def read_history(
        self,
        reading: Reading,
        range_: CoordinateRange,
        width: Width,
        with_key: bool = False,
        late: LateRows | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The lane's committed events in the range, in the columns of schemas.HISTORY that `width` carries.

        `late` is filled while the handle has `pinned`, the handle of the reading that pinned the frontier.
        """
        ...

    def read_content(self, reading: Reading, coordinates: pa.Table) -> Iterator[pa.RecordBatch]:
        """schemas.BATCH rows (content included) of these coordinates, in committed order, memory bounded."""
        ...


@runtime_checkable
class ImmutableSource(Source, Protocol):
    """A source that has no snapshot to join, and whose history does not change at or below what is safe."""

    def count_and_digest(self, lane: str, below: Coordinate) -> BatchDigest:
        """How many events of the lane lie at or below `below`, and their batch digest, read now.

        Immutable is what gives the same answer twice; another answer ends the ground of what was safe.
        """
        ...


@runtime_checkable
class FilteredSource(Protocol):
    """A source whose owner may say which of its rows are owed."""

    @property
    def has_filter(self) -> bool: ...

    def left_out(self, reading: Reading, coordinates: pa.Table) -> list[Coordinate]:
        """Those of these coordinates (lane, position, ordinal) that have a row, looking past the filter; ascending."""
        ...
