"""What a connector must do. One file a kind; everything that speaks to a foreign system is behind these.

Executors import this: no Django, no Celery, no Spark. A connector is made from its kind's parsed options, is cheap to
make, and opens connections only when asked. Rows leave as Arrow record batches in the shapes of
workers.evidence.schemas. A driver's exceptions are mapped here, at the edge, to recovery_api.domain.errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import pyarrow as pa

from recovery_api.domain.capabilities import Capability
from recovery_api.domain.conditions import UndisciplinedPath
from recovery_api.domain.coordinates import Coordinate, Spelling
from workers.connectors.readings import ConnectionReport, CoordinateRange, CursorReading, LateRows, Reading, Width


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

    def pin(self) -> Reading:
        """Heads, floors and safe frontiers from one short snapshot, released before it returns."""
        ...

    def hold_pin(self) -> AbstractContextManager[Reading]:
        """As `pin`, with its snapshot open until the manager closes, so that late rows can be looked up in it.

        The handle's `pinned` tells `read_history` how; without it, late rows cannot be seen.
        """
        ...

    def hold_snapshot(self) -> AbstractContextManager[Reading]:
        """One snapshot that `read_history` and `read_content` join from any process while the manager is open."""
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


class Sink(Protocol):
    """The authority whose durable acceptance is judged.

    `needs_order`: its effect is declared ordered, and it has `later_accepted` (OrderedSink).
    """

    kind: str
    needs_order: bool

    def capability(self) -> Capability:
        """What this sink can do, as tested now, not as declared."""
        ...

    def test(self) -> ConnectionReport: ...

    def undisciplined_paths(self) -> list[UndisciplinedPath]:
        """Every way into record or target that passes admission by. Empty: there is none."""
        ...

    def hold_snapshot(self, generation: int | None = None) -> AbstractContextManager[Reading]:
        """One snapshot of the acceptance record. With `generation`, it must itself show the fence there.

        Raises: Refused where the fence has passed the generation; SnapshotLost.
        """
        ...

    def read_accepted(
        self, reading: Reading, range_: CoordinateRange, width: Width, with_head: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """The acceptance record in the range, in the columns of schemas.ACCEPTED that `width` carries."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What the sink said to one protocol step. `word` is the conformance cases' word; `data` what came with it."""

    word: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchDigest:
    """A batch as the sink armed it: how many entries, and an order-free 256-bit sum of strong hashes (hex)."""

    count: int
    digest: str


@dataclass(frozen=True, slots=True)
class ClaimReading:
    """One claim as the sink holds it now. `state`: open | fired | superseded | released | none.

    `superseded_who`: who took the generation that passed it, as that one named itself to the sink.
    """

    generation: int
    state: str
    claimed_by: str = ""
    claimed_at: str | None = None
    frontier: Mapping[str, Any] | None = None
    arm: int | None = None
    armed_count: int | None = None
    armed_digest: str | None = None
    fired_at: str | None = None
    landed_count: int | None = None
    absorbed_count: int | None = None
    altered_count: int | None = None
    start: Mapping[str, Any] | None = None
    superseded_by: int | None = None
    superseded_at: str | None = None
    superseded_who: str | None = None


@dataclass(frozen=True, slots=True)
class GenerationReading:
    """One number the sink allocated. `superseded_by` None: nothing newer has passed it. Times are ISO 8601 texts."""

    number: int
    purpose: str
    asked_by: str
    allocated_at: str | None = None
    superseded_by: int | None = None


@dataclass(frozen=True, slots=True)
class ClaimsFound:
    """What a recoverer's name has drawn at the sink, found behind every claim asked for before.

    `generations`: ascending; `newest`: the newest claim of anybody, 0 where there is none.
    """

    generations: tuple[int, ...]
    newest: int


@dataclass(frozen=True, slots=True)
class SinkState:
    """What the sink's protocol tables say now: the truth every other memory is compared with."""

    counter: int
    fence: int
    open_claim: ClaimReading | None
    identity: str
    last_entry: int | None


class FencedSink(Sink, Protocol):
    """A sink that owns the fence, the generation counter, the claims and the record, and changes them in one step.

    Words answered are those of THEORY section 4 and the conformance cases: granted, refused, fenced, paused, accepted,
    absorbed, altered, no claim, not armed, already fired, landed, wait, unallocated, mismatch.
    """

    def state(self) -> SinkState: ...

    def claims(self, limit: int) -> list[ClaimReading]:
        """The newest claims as they stand, newest first. A plain reading: it settles nothing."""
        ...

    def generations(self, limit: int) -> list[GenerationReading]:
        """The newest generations allocated, newest first."""
        ...

    def generation_allocate(self, purpose: Literal["relay", "recoverer"], asked_by: str) -> Answer:
        """`allocated` with data generation, or `wait` with the open claim that a relay must wait for."""
        ...

    def begin(self, generation: int) -> Answer: ...

    def deliver(self, generation: int, events: pa.Table, head: Coordinate | None = None) -> list[str]:
        """One transaction; a word an event of schemas.BATCH, in order. Used by drills, the relay and the tests."""
        ...

    def claim(self, generation: int, frontier: Mapping[str, Any], wait_seconds: float = 5.0) -> Answer:
        """`granted` | `refused` | `unallocated`. Raises SinkBusy naming the transactions it waited for.

        For a number that was drawn before: a relay's may have come between. A recovery asks `claim_open`.
        """
        ...

    def claim_open(
        self, name: str, frontier: Mapping[str, Any], newest: int | None = None, wait_seconds: float = 5.0
    ) -> Answer:
        """`granted` with data generation, drawn inside the claim, or this name's own where it is still open | `refused`.

        `newest`: as `claim_find` said; refused where a newer claim has been made since. Raises SinkBusy.
        """
        ...

    def claim_find(self, name: str, wait_seconds: float = 5.0) -> ClaimsFound:
        """What recoverers whose names begin with `name` have drawn, though the answer was lost. Raises SinkBusy."""
        ...

    def arm(self, generation: int, batch: BatchDigest, frontier: Mapping[str, Any]) -> Answer:
        """`armed` with data arm | `fenced` | `no claim`. A later arm replaces an earlier one."""
        ...

    def stage(self, generation: int, arm: int, batches: Iterator[pa.RecordBatch]) -> int:
        """Rows of schemas.BATCH to staging, from any process, committed; repeating it leaves the same rows.

        Returns how many were handed over. Rows the sink cannot represent raise Unsuitable naming the coordinate.
        """
        ...

    def fire(self, generation: int, arm: int, start: Mapping[str, Any] | None = None) -> Answer:
        """`landed` (data landed_count, absorbed_count, altered) | `fenced` | `already fired` | `not armed` | `mismatch`.

        Raises SinkBusy naming whom it waited for.
        """
        ...

    def settle(self, generation: int, wait_seconds: float = 5.0) -> ClaimReading:
        """The claim's state, read by locking it, so that a fire still running has ended. Raises SinkBusy."""
        ...

    def release(self, generation: int, reason: str) -> Answer: ...

    def staged_purge(self) -> int:
        """Takes away the staged rows that no open claim needs; how many."""
        ...

    def counter_raise(self, above: int) -> int:
        """After a restore of either side: no number up to `above` is allocated any more. Returns where it stands."""
        ...

    def unrepresentable(self, batch: pa.RecordBatch) -> pa.Array:
        """A boolean a row of schemas.BATCH: true where the sink cannot hold this content. No I/O."""
        ...

    def hand_over(self) -> Mapping[str, Any]:
        """The stored start position of each lane. Whose fire stored it, `relay_start` tells, and its claim."""
        ...


@dataclass(frozen=True, slots=True)
class DrillNamespace:
    """A place at a sink made for one drill. `sink`: a connector that knows nothing but it; `notes`: what a person should
    know of how it was made."""

    name: str
    sink: FencedSink
    notes: tuple[str, ...] = ()


class DrillableSink(FencedSink, Protocol):
    """A sink that can be drilled without touching what it holds."""

    def drill_namespace(self) -> AbstractContextManager[DrillNamespace]:
        """A fresh namespace, gone at the end; what a crashed drill left is taken away first.

        Raises: AccessDenied saying what to grant; Refused where it would be the pipeline's own.
        """
        ...


class OrderedSink(FencedSink, Protocol):
    """A sink whose effect needs each key's events in order."""

    def later_accepted(self, reading: Reading, lane: str, rows: pa.Table) -> pa.Array:
        """The keys among `rows` (position, ordinal, key; few enough for one query), each once, that `reading`'s record
        holds an event of above that key's lowest coordinate in `rows`."""
        ...
