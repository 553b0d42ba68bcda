"""The copy of state beside a record, as a connector of a record has it: what every kind of record on PostgreSQL does alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import pyarrow as pa

from recovery_api.domain.errors import Refused
from recovery_api.domain.kinds.state import StatePlace
from workers.connectors.postgresql.connection import Address
from workers.connectors.postgresql.state_table import hashes_read, keys_read, state_hold, state_read, value_read
from workers.connectors.protocols.image import StatePart, StateReading
from workers.connectors.readings import Reading


class StateBeside:
    """A connector says where the table lies (`state_place`) and reads later acceptances itself."""

    address: Address
    state_place: StatePlace | None

    def hold_state(self, reading: Reading) -> AbstractContextManager[StateReading]:
        place = self.state_place
        if place is None:
            raise Refused(
                "Comparing a copy of state",
                "this sink has none beside its record",
                "Name one: state_table, state_key, and state_content or state_columns.",
            )
        return state_hold(self.address, reading.handle["snapshot"], place)

    def read_state(self, state: StateReading, part: StatePart) -> Iterator[pa.RecordBatch]:
        return state_read(self.address, state, part)

    def state_keys(self, state: StateReading, places: pa.Table) -> list[str]:
        return keys_read(self.address, state, places)

    def state_value(self, state: StateReading, key: str) -> str | None:
        return value_read(self.address, state, key)

    def key_hashes(self, state: StateReading, keys: list[str]) -> pa.Array:
        return hashes_read(self.address, state, keys)
