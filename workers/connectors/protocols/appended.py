"""The appended delivery: what a sink without a fence must do so that owed events can be landed there.

One law: each call is one transaction, under a lock that excludes every writer and every other recoverer, and what is
owed is worked out again inside it. So a successor waits for a session that a dead worker left behind, and doubles
nothing. A relay's send that waits for the lock comes after it: either a unique constraint absorbs it, or somebody has
attested that no such send is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from workers.connectors.protocols.delivery import Answer, Delivery
from workers.connectors.protocols.record import Record
from workers.connectors.readings import BatchDigest


@dataclass(frozen=True, slots=True)
class AppendAbility:
    """What this login may do at the sink, as its catalogue says now.

    `problems`: why nothing can be appended, a sentence each with what to do; empty: it can. `absorbs_late_sends`: a
    valid, non-deferrable unique constraint on the identity refuses a second entry; `late_sends_says` names it, or says
    why there is none. `says`: what happens at an insert beside it (triggers, foreign keys).
    """

    may_lock: bool
    may_insert: bool
    absorbs_late_sends: bool
    problems: tuple[str, ...] = ()
    late_sends_says: str = ""
    says: tuple[str, ...] = ()

    @property
    def may_append(self) -> bool:
        return self.may_lock and self.may_insert and not self.problems


@runtime_checkable
class AppendedDelivery(Delivery, Protocol):
    """A queryable sink whose owner declares its rows to be the effect."""

    def append_ability(self) -> AppendAbility: ...

    def unrepresentable(self, batch: pa.RecordBatch) -> pa.Array:
        """A boolean a row of schemas.BATCH: true where the sink cannot hold it. Asks at most what its columns are, once."""
        ...

    def append(
        self, content: Iterator[pa.RecordBatch], wait_seconds: float = 5.0, owed: BatchDigest | None = None
    ) -> Answer:
        """`appended` with data landed_count, absorbed_count, altered_count and altered, the first coordinates held with
        other content, which stay as they are. All of it or nothing.

        `content`: schemas.BATCH rows; `owed`: what they must come to. Raises: SinkBusy naming whom the lock waited for;
        Unsuitable naming the coordinate of a row that the sink cannot hold; Refused where what was read back in the same
        transaction is not what was sent, or what came is not `owed`.
        """
        ...


@runtime_checkable
class AppendedSink(Record, AppendedDelivery, Protocol):
    """A record and an appended delivery that are one end."""


class Driven(Protocol):
    """A sink's copy as a drill drives it, between the steps of its transactions."""

    def event(self, coordinate: int, variant: str = "") -> dict[str, Any]:
        """One synthetic event of schemas.BATCH that the sink can hold. `variant`: another content."""
        ...

    def append_held(
        self, batch: pa.RecordBatch, wait_seconds: float = 5.0
    ) -> AbstractContextManager[Mapping[str, Any]]:
        """A recoverer that commits when the manager ends; inside, it holds the lock. The figures of AppendedDelivery.append."""
        ...

    def send_held(self, batch: pa.RecordBatch, wait_seconds: float = 5.0) -> AbstractContextManager[str]:
        """A plain send by who knows no protocol, committed when the manager ends: `accepted`, or `refused` by a constraint.

        Raises: SinkBusy where it waits for longer.
        """
        ...


@dataclass(frozen=True, slots=True)
class AppendedNamespace:
    """A copy made for one drill. `sink`: a connector that knows nothing but it; `notes`: what a person should know of how
    it was made."""

    name: str
    sink: AppendedSink
    driven: Driven
    notes: tuple[str, ...] = ()
