"""What a delivery must do: bring owed events to the sink, and say itself what became of them.

A delivery is fenced (`fence`) or appended; keyed and blind ones will stand beside these. A sink that has none of them is
a record alone, and nothing is ever sent to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from workers.connectors.readings import BatchDigest


@dataclass(frozen=True, slots=True)
class Answer:
    """What the sink said to one step. `word` is the conformance cases' word; `data` what came with it."""

    word: str
    data: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Delivery(Protocol):
    """A way into a sink, whatever its ability."""

    kind: str

    def unrepresentable(self, batch: pa.RecordBatch) -> pa.Array:
        """A boolean a row of schemas.BATCH: true where the sink cannot hold it. At most its columns are asked for, once."""
        ...


@dataclass(frozen=True, slots=True)
class AppendAbility:
    """What this login may do at the sink, as tested now. `problems`: why it may not append, a sentence each with what
    to do; empty: it may.

    `absorbs_late_sends`: a valid, non-deferrable unique constraint on the identity refuses whatever a relay still sends;
    `late_sends_says` names it, or says why there is none. `says`: what happens beside an insert (triggers, foreign keys).
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
    """A sink without a fence whose owner declares its rows to be the effect. One part is one transaction there.

    Its lock excludes every other writer and every other recoverer, so that a session whose worker died can double
    nothing: its successor waits for that lock.
    """

    def append_ability(self) -> AppendAbility: ...

    def append(
        self, content: Iterator[pa.RecordBatch], wait_seconds: float = 5.0, owed: BatchDigest | None = None
    ) -> Answer:
        """`appended` with data landed_count, absorbed_count, altered_count and altered: the first coordinates held with
        other content, which stay as they are. All of it or nothing.

        `content`: schemas.BATCH rows; what the sink holds already is found inside the lock. `owed`: what they must come to.
        Raises: SinkBusy naming whom the lock waited for; Unsuitable naming the coordinate of a row that the sink cannot
        hold; Refused where what is read back before the commit is not what was sent, or what came is not `owed`.
        """
        ...
