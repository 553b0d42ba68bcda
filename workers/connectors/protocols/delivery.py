"""What a delivery must do: bring owed events to the sink, and report itself what became of them.

A delivery is fenced (`fence`) or appended (`appended`); keyed and blind ones will stand beside these. A sink that has
no delivery is a record alone: nothing is ever sent to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from workers.connectors.protocols.sink import AnySink


@dataclass(frozen=True, slots=True)
class Answer:
    """What the sink said to one step. `word` is the conformance cases' word; `data` what came with it."""

    word: str
    data: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Delivery(AnySink, Protocol):
    """A way into a sink, whatever its ability."""

    def unrepresentable(self, batch: pa.RecordBatch) -> pa.Array:
        """A boolean a row of schemas.BATCH: true where the sink cannot hold this content. No I/O."""
        ...
