"""What an acceptance record must do: be read back.

A row in it is the mark of an effect. Only its owner can say that the row is the effect itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from recovery_api.domain.conditions import UndisciplinedPath
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.restores import SinkMemory
from workers.connectors.protocols.sink import AnySink
from workers.connectors.readings import CoordinateRange, Reading, Width


@runtime_checkable
class Record(AnySink, Protocol):
    """The sink's own durable word of what it accepted. It alone can be audited and planned, and is never fired into.

    `needs_order`: the effect behind it is declared ordered, and it has `later_accepted` (OrderedRecord).
    """

    needs_order: bool

    def said(self) -> SinkMemory:
        """What tells this sink as it is now from what it was: compared with what it said before, it shows a restore."""
        ...

    def undisciplined_paths(self) -> list[UndisciplinedPath]:
        """Every way into record or target that passes admission by. Empty: there is none."""
        ...

    def hold_snapshot(self, generation: int | None = None) -> AbstractContextManager[Reading]:
        """One snapshot of the acceptance record. With `generation`, it must itself show the fence there.

        Raises: Refused where the fence has passed the generation, or there is none; SnapshotLost.
        """
        ...

    def read_accepted(
        self, reading: Reading, range_: CoordinateRange, width: Width, with_head: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """The acceptance record in the range, in the columns of schemas.ACCEPTED that `width` carries."""
        ...


@runtime_checkable
class DividedRecord(Record, Protocol):
    """A record that says where its rows lie, so that ranges hold about as many of them as of the source's."""

    def split(self, reading: Reading, lane: str, parts: int) -> list[CoordinateRange]:
        """About `parts` ranges with about equally many rows, which together cover the whole lane, open at both ends."""
        ...


CONTENT_ENTRIES, CONTENT_CHARACTERS = 5, 65_536
"""Of the entries at one coordinate that a person looks at: so many, and of each content so much."""


@dataclass(frozen=True, slots=True)
class ContentSeen:
    """How the content of one accepted entry begins, as the record prints it. `text` None: it was accepted without one.
    `bytes`: of all of it."""

    text: str | None
    bytes: int
    is_cut: bool


@runtime_checkable
class ContentRecord(Record, Protocol):
    """A record that may keep the contents of what it accepted, for a person to look at one event."""

    def contents_at(self, reading: Reading, lane: str, coordinate: Coordinate) -> list[ContentSeen] | None:
        """The entries at one coordinate, a few at most, each content cut to its beginning. None: it keeps no contents."""
        ...


@runtime_checkable
class IdRecord(Record, Protocol):
    """A record that may know only message ids: then its reading has `ids`, and it is read by them."""

    def read_ids(self, reading: Reading, part: int, parts: int) -> Iterator[pa.RecordBatch]:
        """One of `parts` disjoint shares of the whole record, in the columns of schemas.ENTRY_IDS, ids as written."""
        ...


@runtime_checkable
class FollowedRecord(Record, Protocol):
    """A record that tells what is new: what is admitted carries the transaction that admitted it.

    Its readings say in `following` what they show. One law: an entry is new by its transaction, never by its number, which
    may be drawn early and committed late.
    """

    def read_since(self, reading: Reading, since: str) -> Iterator[pa.RecordBatch]:
        """The entries that `reading` shows and an earlier reading, whose `following.snapshot` is `since`, did not.

        In the columns of schemas.ACCEPTED, by admitting transaction, then entry. A row that something else than admission
        put there, or changed, is not told by it.
        Raises: Refused where `reading.following` names a problem; SnapshotLost.
        """
        ...


@runtime_checkable
class OrderedRecord(Record, Protocol):
    """A record of effects that need each key's events in order."""

    def later_accepted(self, reading: Reading, lane: str, rows: pa.Table) -> pa.Array:
        """The keys among `rows` (position, ordinal, key; few enough for one query), each once, that `reading`'s record
        holds an event of above that key's lowest coordinate in `rows`."""
        ...
