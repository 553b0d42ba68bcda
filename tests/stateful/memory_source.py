"""A source in this process's memory, for the stateful machine: a history that a test appends to, in committed order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate, Spelling
from recovery_api.domain.grounds import Standing
from recovery_api.domain.kinds.base import Kind, Option
from workers.connectors.readings import (
    ConnectionReport,
    CoordinateRange,
    CursorReading,
    LaneReading,
    LateRows,
    Reading,
    SafeFrontier,
    Width,
)
from workers.evidence import schemas
from workers.evidence.canonical import content_digest, content_parse, payload_digest

HISTORIES: dict[str, list[dict[str, Any]]] = {}


class MemoryHistory:
    kind = "memory_history"
    spelling = Spelling.BIGINT

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.name: str = options["name"]

    def test(self) -> ConnectionReport:
        return ConnectionReport(True, {"name": self.name})

    def cursors(self) -> Mapping[str, CursorReading]:
        return {}

    @contextmanager
    def hold_pin(self) -> Iterator[Reading]:
        yield self._reading()

    @contextmanager
    def hold_snapshot(self) -> Iterator[Reading]:
        yield self._reading()

    def split(self, reading: Reading, lane: str, parts: int) -> list[CoordinateRange]:
        """Two ranges, whatever was asked: both sides of the middle."""
        middle = Coordinate(1 + reading.lanes[lane].estimated_rows // 2)
        return [CoordinateRange(lane, None, middle), CoordinateRange(lane, middle, None)]

    def read_history(
        self,
        reading: Reading,
        range_: CoordinateRange,
        width: Width,
        with_key: bool = False,
        late: LateRows | None = None,
    ) -> Iterator[pa.RecordBatch]:
        rows = [row for row in self._rows(reading) if row["lane"] == range_.lane]
        low = range_.low.position if range_.low else 0
        high = range_.high.position if range_.high else len(rows) + 1
        held = [row for row in rows if low <= row["position"] < high]
        yield from pa.Table.from_pylist(held, schema=schemas.HISTORY).to_batches()

    def read_content(self, reading: Reading, coordinates: pa.Table) -> Iterator[pa.RecordBatch]:
        wanted = set(zip(coordinates["lane"].to_pylist(), coordinates["position"].to_pylist(), strict=True))
        held = [row for row in self._rows(reading) if (row["lane"], row["position"]) in wanted]
        assert len(held) == len(wanted)
        yield from batch_of(held).to_batches()

    def _rows(self, reading: Reading) -> list[dict[str, Any]]:
        return HISTORIES[self.name][: reading.handle["count"]]

    def _reading(self) -> Reading:
        rows = HISTORIES.setdefault(self.name, [])
        counts = Counter(row["lane"] for row in rows) or {"0": 0}
        lanes = {lane: _lane(lane, count) for lane, count in counts.items()}
        return Reading(f"memory_history:{self.name} at {len(rows)}", {"count": len(rows)}, lanes)


def _lane(lane: str, count: int) -> LaneReading:
    head = Coordinate(count) if count else None
    safe = SafeFrontier(head, "one process", "Nobody else commits here.", standing=Standing.PROVEN)
    return LaneReading(lane, head, Coordinate(1) if count else None, None, safe, count)


def commit(name: str, lane: str = "0") -> int:
    """One more event is committed. Returns its position in the lane."""
    rows = HISTORIES.setdefault(name, [])
    position = 1 + sum(row["lane"] == lane for row in rows)
    content = f'{{"number": {position}}}'
    digest = payload_digest("insert", f"k{position}", content_digest(content_parse(content), "insert"))
    rows.append(
        {
            "lane": lane,
            "position": position,
            "ordinal": 0,
            "entry": position,
            "event_id": f"e{position}",
            "op": "insert",
            "key": f"k{position}",
            "payload_digest": digest,
            "committed_at": None,
            "content": content,
        }
    )
    return position


def batch_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schemas.BATCH)


KIND = Kind(
    name="memory_history",
    end="source",
    says="A history in this process's memory.",
    options=(Option("name", "Which history of this process.", is_required=True),),
    connector="tests.stateful.memory_source.MemoryHistory",
    is_in_process=True,
)
