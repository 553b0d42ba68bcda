"""What a reading of an end is made of: how much of a row it carries, ranges, lanes, frontiers, and an open snapshot.

Values that executors pass on; the protocols that give and take them are in `protocols`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.grounds import Standing
from recovery_api.domain.identity import IdType, Lifetime


class Width(StrEnum):
    """How much of each row a reading carries."""

    COORDINATE = "coordinate"
    """position and ordinal (and key where a scope is asked, and head and entry of an acceptance)."""
    PAYLOAD = "payload"
    """the same and payload_digest."""
    FULL = "full"
    """every column of the schema."""


@dataclass(frozen=True, slots=True)
class CoordinateRange:
    """One lane from `low` (inclusive) to `high` (exclusive). None is unbounded."""

    lane: str
    low: Coordinate | None
    high: Coordinate | None


@dataclass(frozen=True, slots=True)
class BatchDigest:
    """So many entries, and an order-free 256-bit sum of strong hashes of them (workers.evidence.canonical)."""

    count: int
    digest: str


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """What a connection test found. `problems` are sentences, each with what to do; empty means it can serve.

    `sample`: says, columns and at most a few rows with texts cut short; None where none was read. A row's
    `content_start` is for who may read contents: it never stays in a report.
    """

    is_usable: bool
    facts: Mapping[str, Any]
    problems: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()
    sample: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CursorReading:
    """What the relay itself recorded of its progress. `coordinate` None: not known, for the reason in `problem`;
    without one, none was recorded yet."""

    coordinate: Coordinate | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SafeFrontier:
    """The highest coordinate below which no further commit can appear, and why that is believed.

    `coordinate` None: nothing is safe yet. `ground`: `transaction ids` | `share lock` | `grace` | `replica replay`;
    `says` is that ground in a sentence; `waits_for` names what still holds it back (open and prepared transactions);
    `weakness` is set where the ground is not proven, and says what was given instead; `given` is the same as a short
    phrase that goes on after *given …*. `catalogue` is the digest of what
    the ground was judged from, and `incarnation` the server, timeline and table it was judged of; each "" where there is
    none. A frontier of another digest or incarnation is not this one's.
    """

    coordinate: Coordinate | None
    ground: str
    says: str
    waits_for: tuple[str, ...] = ()
    weakness: str | None = None
    standing: Standing = Standing.ASSUMED
    given: str = ""
    catalogue: str = ""
    incarnation: str = ""

    def unproven(self, because: str) -> SafeFrontier:
        """The same frontier, on a ground that is only assumed from now on."""
        said = f"Its ground ({self.ground}) does not stand any more: {because}."
        weakness = f"{said} {self.weakness}" if self.weakness else said
        given = f"that its earlier ground ({self.ground}) still holds"
        return replace(self, standing=Standing.ASSUMED, weakness=weakness, given=given)


@dataclass(slots=True)
class LateRows:
    """What `read_history` saw at or below `frontier` that the pinning snapshot does not hold.

    `written_since`: where that snapshot is gone, how many rows were written, or written again, since. `first`: a few.
    """

    frontier: Coordinate
    count: int = 0
    written_since: int = 0
    first: list[Coordinate] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LaneReading:
    """One lane in one source snapshot. `head` and `floor` None: the lane is empty, or the floor is not known.

    `numbers_step`: coordinates are numbers that one sequence draws this far apart. None: nothing shows that.
    `first_number`: the number that sequence began with, where every number of it is this source's business.
    """

    lane: str
    head: Coordinate | None
    lowest: Coordinate | None
    floor: Coordinate | None
    safe: SafeFrontier
    estimated_rows: int = 0
    numbers_step: int | None = None
    first_number: int | None = None


@dataclass(frozen=True, slots=True)
class SourceIds:
    """The event ids of a source. `problem`: why one cannot stand for an event there; "" where it can. `remedy`: what to do."""

    id_type: IdType
    problem: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class RecordIds:
    """The ids of a record that knows nothing else. `read_at`: the record's own clock, not before its snapshot.

    `consumer`: whose rows count, as a phrase; "" where all do.
    """

    id_type: IdType
    lifetime: Lifetime
    read_at: datetime
    consumer: str = ""


@dataclass(frozen=True, slots=True)
class Following:
    """How what is new after a reading of a record is told later.

    `snapshot`: which transactions the reading shows, as `pg_snapshot` is spelled: the oldest that was open, the first that
    had not begun, and, separated by commas, those between them that were open; the three are separated by colons. It is
    kept, and given to `read_since` of a later reading. `problem`: why this record cannot be followed, with what to do; ""
    where it can.
    """

    snapshot: str = ""
    problem: str = ""

    @property
    def oldest_open(self) -> int:
        """What a transaction below this admitted is shown, or was rolled back. Any transaction of the server holds it
        back while it is open, one in another database as well."""
        return int(self.snapshot.partition(":")[0])


NOT_FOLLOWED = Following(problem="This kind of record does not tell what is new in it.")


@dataclass(frozen=True, slots=True)
class Reading:
    """An open snapshot of one end, as data that executors can follow.

    `identity` is for people and certificates (system identifier, timeline, snapshot); `handle` is what `read_*` needs
    to join the same snapshot, JSON-able and without credentials; `is_complete` False makes every verdict *unknown*,
    for the reasons in `weaknesses`. `ids`: of a source whose events have ids; of a record that knows nothing else (None:
    it knows coordinates). `following`: of a record, how a later reading is told what this one did not show.
    `rows_go`: of a source from which rows go once they were delivered: all that is there is read, and what is gone cannot
    be told from what never was.
    """

    identity: str
    handle: Mapping[str, Any]
    lanes: Mapping[str, LaneReading] = field(default_factory=dict)
    is_complete: bool = True
    weaknesses: tuple[str, ...] = ()
    fence: int | None = None
    ids: SourceIds | RecordIds | None = None
    following: Following = NOT_FOLLOWED
    rows_go: bool = False
