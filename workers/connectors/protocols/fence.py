"""What a fenced delivery must do: claim, arm, stage, fire, settle (THEORY section 4).

The sink owns the fence, the generation counter, the claims and the record, and changes them in one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate
from workers.connectors.protocols.appended import AppendedNamespace
from workers.connectors.protocols.delivery import Answer, Delivery
from workers.connectors.protocols.record import Record
from workers.connectors.readings import BatchDigest


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


@runtime_checkable
class FencedDelivery(Delivery, Protocol):
    """A delivery that owns the fence, the generation counter, the claims and the record, and changes them in one step.

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

    def hand_over(self) -> Mapping[str, Any]:
        """The stored start position of each lane. Whose fire stored it, `relay_start` tells, and its claim."""
        ...


@runtime_checkable
class FencedSink(Record, FencedDelivery, Protocol):
    """A record and a fenced delivery that are one end."""


@dataclass(frozen=True, slots=True)
class DrillNamespace:
    """A place at a sink made for one drill. `sink`: a connector that knows nothing but it; `notes`: what a person should
    know of how it was made."""

    name: str
    sink: FencedSink
    notes: tuple[str, ...] = ()


@runtime_checkable
class DrillableDelivery(Delivery, Protocol):
    """A delivery that can be drilled without touching what it holds."""

    def drill_namespace(self) -> AbstractContextManager[DrillNamespace | AppendedNamespace]:
        """A fresh namespace, gone at the end; what a crashed drill left is taken away first.

        Raises: AccessDenied saying what to grant; Refused where it would be the pipeline's own.
        """
        ...
