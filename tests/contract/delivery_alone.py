"""A kind of sink that the product has none of yet: a delivery alone, whose rows nobody can read back through it.

It is what a post office is: something may be handed in under a lock, all of it or nothing, and what became of it stands
in a record elsewhere. `KIND` is what such a kind declares; nothing outside this file and its bench knows of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from recovery_api.domain.abilities import Ability
from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.errors import Refused, SinkBusy
from recovery_api.domain.kinds.base import Kind, Option
from recovery_api.domain.points import FOR_GOOD, Point
from workers.connectors.protocols.appended import AppendAbility
from workers.connectors.protocols.delivery import Answer
from workers.connectors.readings import BatchDigest, ConnectionReport
from workers.connectors.rows import Where, is_held, payload_of, rows_digest, where_of


@dataclass
class Office:
    """What was handed in at one place."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    held: dict[Where, dict[str, Any]] = field(default_factory=dict)


OFFICES: dict[str, Office] = {}


class DeliveryAlone:
    kind = "delivery_alone"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.office = OFFICES.setdefault(options["name"], Office())

    def test(self) -> ConnectionReport:
        return ConnectionReport(True, {"handed_in": str(len(self.office.held))})

    def capability(self) -> Capability:
        return Capability(Archetype.BLIND, False, False, False, True, True, grounds=("It stands in this process.",))

    def append_ability(self) -> AppendAbility:
        return AppendAbility(True, True, True, late_sends_says="A coordinate is taken in once.")

    def unrepresentable(self, batch: pa.RecordBatch) -> pa.Array:
        return pa.array([not is_held(event) for event in batch.to_pylist()], pa.bool_())

    def append(
        self, content: Iterator[pa.RecordBatch], wait_seconds: float = 5.0, owed: BatchDigest | None = None
    ) -> Answer:
        rows = [{**row, "payload_digest": payload_of(row)} for batch in content for row in batch.to_pylist()]
        if owed is not None and rows_digest(rows) != owed:
            raise Refused("handing in", "what came is not what is owed", "Plan again.")
        if not self.office.lock.acquire(timeout=wait_seconds):
            raise SinkBusy("somebody who hands in", wait_seconds)
        try:
            held = self.office.held
            absorbed = [row for row in rows if where_of(row) in held]
            altered = [row for row in absorbed if held[where_of(row)]["payload_digest"] != row["payload_digest"]]
            held.update({where_of(row): row for row in rows if where_of(row) not in held})
        finally:
            self.office.lock.release()
        figures = {
            "landed_count": len(rows) - len(absorbed),
            "absorbed_count": len(absorbed) - len(altered),
            "altered_count": len(altered),
            "altered": [str(row["position"]) for row in altered],
        }
        return Answer("appended", figures)


KIND = Kind(
    name="delivery_alone",
    end="sink",
    label="A delivery alone",
    says="A place that something is handed in at, and that answers nothing about it afterwards.",
    options=(Option("name", "Which place of this process.", is_required=True),),
    connector="tests.contract.delivery_alone.DeliveryAlone",
    archetype=Archetype.BLIND,
    abilities=frozenset({Ability.APPENDED}),
    is_in_process=True,
    declares=lambda options: {Point.RECORD_COMPLETE: False, Point.IDENTITY_KEY: True, Point.MEMORY: FOR_GOOD},
)
