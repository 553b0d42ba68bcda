"""What the fenced sinks of this process's memory hold, by name. Whoever calls holds the store's lock."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from recovery_api.domain import claims
from recovery_api.domain.claims import ClaimState, Standing, Word
from recovery_api.domain.coordinates import Coordinate
from workers.connectors.protocols.fence import ClaimReading
from workers.connectors.rows import Where, where_of


@dataclass(slots=True)
class Store:
    """What one sink holds. `purposes`: a generation is allocated when it is in here."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    counter: int = 0
    fence: int = 0
    purposes: dict[int, str] = field(default_factory=lambda: {0: "relay"})
    names: dict[int, str] = field(default_factory=dict)
    claims: dict[int, ClaimReading] = field(default_factory=dict)
    accepted: dict[Where, dict[str, Any]] = field(default_factory=dict)
    altered: dict[tuple[Where, bytes], int] = field(default_factory=dict)
    staged: dict[tuple[int, int, Where], dict[str, Any]] = field(default_factory=dict)
    start: dict[str, dict[str, str]] = field(default_factory=dict)
    transactions: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    snapshots: dict[int, tuple[int, pa.Table]] = field(default_factory=dict)

    def standing(self, generation: int) -> Standing:
        held = self.claims.get(generation)
        return Standing(
            fence=self.fence,
            is_allocated=generation in self.purposes,
            claim_state=ClaimState(held.state) if held else ClaimState.NONE,
            arm=held.arm if held and held.armed_count is not None else None,
        )

    def fence_raise(self, generation: int) -> None:
        if generation <= self.fence:
            return
        self.fence = generation
        for number, held in self.claims.items():
            state = claims.state_when_passed(ClaimState(held.state))
            if state != held.state:
                self.claims[number] = replace(
                    held,
                    state=state.value,
                    superseded_by=generation,
                    superseded_at=now_says(),
                    superseded_who=self.names.get(generation),
                )

    def accept(self, generation: int, row: dict[str, Any], transaction: int, head: Coordinate | None) -> str:
        held = self.accepted.get(where_of(row))
        word = claims.identity_answer(held["payload_digest"] if held else None, row["payload_digest"])
        if word is Word.ACCEPTED:
            self.accepted[where_of(row)] = {
                **{name: row[name] for name in ("lane", "position", "ordinal", "event_id", "payload_digest")},
                "generation": generation,
                "head_position": head and head.position,
                "head_ordinal": head and head.ordinal,
                "accepted_at": datetime.now(UTC),
                "entry": len(self.accepted) + 1,
                "admitted_in": transaction,
            }
        elif word is Word.ALTERED:
            self.altered.setdefault((where_of(row), row["payload_digest"]), generation)
        return word


STORES: dict[str, Store] = {}


def now_says() -> str:
    return datetime.now(UTC).isoformat()
