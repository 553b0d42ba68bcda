"""A ledger in memory, for histories without a control database: what is learnt is merged as recovery_api.services.ledger does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from recovery_api.domain.ledger.lanes import LaneKnown
from recovery_api.domain.ledger.words import ItemWord, SettledBy
from workers.evidence.known import ITEMS, Ledger
from workers.evidence.read import Evidence

EPOCH = "the only one"


class Memory:
    """Of one pipeline in one epoch. `items`: by what makes one the same again."""

    def __init__(self) -> None:
        self.lanes: dict[str, LaneKnown] = {}
        self.items: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._next = 0

    def ledger(self) -> Ledger:
        """What an audit is given: every open item, and those that were accepted since."""
        rows = [
            row
            for row in self.items.values()
            if row["settled_by"] is None
            or (row["word"], row["settled_by"]) == (ItemWord.LOST, SettledBy.ACCEPTED.value)
        ]
        lanes = {(lane, EPOCH): known for lane, known in self.lanes.items()}
        return Ledger(lanes, pa.Table.from_pylist(rows, schema=ITEMS), lambda _: EPOCH)

    def learn(self, found: Evidence) -> None:
        from workers.recovery.ledger import ledger_learn  # it imports models, which want Django set up

        learnt = ledger_learn(None, found, dict.fromkeys(found.lanes, ()))  # type: ignore[arg-type]
        if learnt is None:
            return
        self.lanes |= {lane: replace(known, is_whole=True) for lane, known in learnt.lanes.items()}
        for item in sorted(learnt.items, key=lambda one: not one.settled_by):  # what was settled first
            row = item._asdict() | {"epoch": EPOCH, "settled_by": item.settled_by or None}
            place = (item.lane, item.position, item.ordinal, item.word, item.digest)
            held = self.items.get(place)
            if item.settled_by:
                if held is not None and held["settled_by"] is None:
                    held["settled_by"] = item.settled_by
            elif held is None:
                self._next += 1
                self.items[place] = row | {"id": self._next}
            else:
                named = {name: row[name] or held[name] for name in ("event_id", "key", "committed_at")}
                held.update(row | named)
