"""What the two ends of an image audit must do: give digests of each key's content, made by their own SQL.

One law: both ends make a key's hash and a content's digest by one rule, `StateMapping`, so that equal hashes are one key
of the target and equal digests one content as the target holds it. No key and no content leaves an end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate
from workers.connectors.protocols.record import Record
from workers.connectors.protocols.source import Source
from workers.connectors.readings import CoordinateRange, Reading


@dataclass(frozen=True, slots=True)
class StateColumn:
    """A column of the target. `type`: as SQL writes it, its length or scale included; `base`: its bare name. `member`: of the
    content's members the one that it takes; None: it takes the whole content, or is the key."""

    name: str
    type: str
    base: str
    member: str | None = None


@dataclass(frozen=True, slots=True)
class StateMapping:
    """How a key and a content of an event lie in the target."""

    key: StateColumn
    columns: tuple[StateColumn, ...]

    @property
    def members(self) -> list[str]:
        """The members that a whole content has; none where it goes into one column."""
        return [column.member for column in self.columns if column.member is not None]


@dataclass(frozen=True, slots=True)
class StatePart:
    """A share of the target: its pages from `low` to below `high` (None: to the end)."""

    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class StateReading:
    """The target in the record's snapshot, as data that executors can follow. `name`: as a person reads it."""

    mapping: StateMapping
    name: str
    handle: Mapping[str, Any]
    pages: int
    estimated_rows: int
    weaknesses: tuple[str, ...] = field(default_factory=tuple)


@runtime_checkable
class StateRecord(Record, Protocol):
    """A record beside which lies a copy of state."""

    def hold_state(self, reading: Reading) -> AbstractContextManager[StateReading]:
        """The target in the snapshot of `reading`, of which it stays as it is until the manager ends.

        Raises: Unsuitable where it cannot be compared, with why; AccessDenied; NotFound; SnapshotLost.
        """
        ...

    def read_state(self, state: StateReading, part: StatePart) -> Iterator[pa.RecordBatch]:
        """schemas.IMAGE_ROW of the target's rows; position and ordinal tell the row's place for `state_keys`."""
        ...

    def read_later(
        self, reading: Reading, state: StateReading, lane: str, above: Coordinate | None
    ) -> Iterator[pa.RecordBatch]:
        """schemas.IMAGE_ROW of the lane's acceptances above a coordinate (None: of all of them)."""
        ...

    def state_keys(self, state: StateReading, places: pa.Table) -> list[str]:
        """The keys, as text, of the target's rows at these places (position, ordinal), in their order."""
        ...

    def state_value(self, state: StateReading, key: str) -> str | None:
        """What the target's row of this key holds in the mapped columns, as JSON text. None: there is no such row."""
        ...

    def key_hashes(self, state: StateReading, keys: list[str]) -> pa.Array:
        """The hashes of these keys, as an event writes them."""
        ...


@runtime_checkable
class ImageSource(Source, Protocol):
    """A source that knows what a copy of state should hold."""

    def read_image(self, reading: Reading, range_: CoordinateRange, mapping: StateMapping) -> Iterator[pa.RecordBatch]:
        """schemas.IMAGE_EVENT of the committed events in the range; a delete has no digest.

        Raises: Unsuitable naming the coordinate of an operation that is mapped to none.
        """
        ...

    def image_of_contents(self, reading: Reading, rows: pa.Table, mapping: StateMapping) -> Iterator[pa.RecordBatch]:
        """The same of events that were kept elsewhere: position, ordinal, op, key, and content as it is handed over."""
        ...
