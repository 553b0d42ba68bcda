"""The fenced sink in this process's memory."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from recovery_api.domain.abilities import Ability
from recovery_api.domain.coordinates import Coordinate
from tests.contract.benches import Place
from tests.contract.sink_engines import rows_make
from workers.connectors.protocols.fence import FencedSink
from workers.connectors.registry import delivery_make

CANNOT = {"test_repeated_acceptance_is_two_entries": "its identity key absorbs the second one"}


class FencedBench:
    """A fenced sink that lands at most 5 entries a fire; its record is filled through its own admission."""

    def __init__(self, kind: str, options: Mapping[str, Any]) -> None:
        self.kind, self.options = kind, {**options, "batch_limit": 5}

    def connector(self) -> FencedSink:
        made = delivery_make(self.kind, self.options, Ability.FENCED)
        assert isinstance(made, FencedSink)
        return made

    def accept(self, events: Iterable[Mapping[str, Any]], head: int | None = None) -> None:
        rows = pa.Table.from_batches([rows_make([dict(event) for event in events])])
        self.connector().deliver(0, rows, head=None if head is None else Coordinate(head))


def make(place: Place) -> FencedBench:
    return FencedBench("memory", {"name": secrets.token_hex(8)})


MAKES = {"": make}
