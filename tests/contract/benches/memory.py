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

NEVER_OPEN = "a step holds the store's lock from its first test to its last change: no transaction stays open"
CANNOT = {
    "test_repeated_acceptance_is_two_entries": "its identity key absorbs the second one",
    "test_entry_of_a_transaction_that_was_open_then_is_new_however_early_it_drew_its_number": NEVER_OPEN,
    "test_of_two_that_were_open_the_one_that_is_still_open_is_new_once": NEVER_OPEN,
    "test_what_was_rolled_back_is_never_new_and_a_savepoint_takes_its_own_part": NEVER_OPEN,
    "test_what_lies_below_the_oldest_open_transaction_is_settled_and_no_more": NEVER_OPEN,
}


class FencedBench:
    """A fenced sink that lands at most 5 entries a fire; its record is filled through its own admission."""

    def __init__(self, kind: str, options: Mapping[str, Any]) -> None:
        self.kind, self.options = kind, {**options, "batch_limit": 5}

    def connector(self) -> FencedSink:
        made = delivery_make(self.kind, self.options, Ability.FENCED)
        assert isinstance(made, FencedSink)
        return made

    def delivery(self) -> FencedSink:
        return self.connector()

    def accept(self, events: Iterable[Mapping[str, Any]], head: int | None = None) -> None:
        rows = pa.Table.from_batches([rows_make([dict(event) for event in events])])
        self.connector().deliver(0, rows, head=None if head is None else Coordinate(head))


def make(place: Place) -> FencedBench:
    return FencedBench("memory", {"name": secrets.token_hex(8)})


MAKES = {"": make}
