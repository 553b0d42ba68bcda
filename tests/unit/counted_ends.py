"""Two ends of any size that take no room: rows are made while they are read, the same each time.

Run as a program it judges one range of them as a task does, and prints how much memory that took beyond the same process
before it: `python -m tests.unit.counted_ends ROWS LOST_EVERY FOLDER`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.ledger.blocks import ROWS_A_BLOCK
from workers.connectors.readings import CoordinateRange, LaneReading, LateRows, Reading, SafeFrontier, Width
from workers.connectors.rows import accepted_columns, history_columns
from workers.evidence import schemas
from workers.evidence.kernel import LaneQuestion
from workers.evidence.ranges import MeetSpec, range_judge

AT_ONCE = 131_072
"""Rows of a batch, as a packed read has them."""


@dataclass(frozen=True)
class CountedEnd:
    """Events 1 to `rows`. The record lacks every event whose number `lost_every` divides. `shuffle`: of what seed the rows
    of a batch are out of order; None: they are in order."""

    rows: int
    lost_every: int = 0
    shuffle: int | None = None

    def source(self) -> CountedEnd:
        return self

    def record(self) -> CountedEnd:
        return self

    def read_history(
        self,
        reading: Reading,
        range_: CoordinateRange,
        width: Width,
        with_key: bool = False,
        late: LateRows | None = None,
    ) -> Iterator[pa.RecordBatch]:
        return self._batches(range_, history_columns(width, with_key), schemas.HISTORY)

    def read_accepted(
        self, reading: Reading, range_: CoordinateRange, width: Width, with_head: bool = True
    ) -> Iterator[pa.RecordBatch]:
        return self._batches(range_, accepted_columns(width, with_head), schemas.ACCEPTED)

    def _batches(self, range_: CoordinateRange, names: list[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        low = 1 if range_.low is None else max(1, range_.low.position)
        high = self.rows + 1 if range_.high is None else min(self.rows + 1, range_.high.position)
        for start in range(low, high, AT_ONCE):
            numbers = np.arange(start, min(start + AT_ONCE, high))
            if self.lost_every:
                numbers = numbers[numbers % self.lost_every != 0]
            if self.shuffle is not None:
                numbers = np.random.default_rng(self.shuffle).permutation(numbers)
            held = {
                "position": pa.array(numbers),
                "ordinal": pa.array(np.zeros_like(numbers)),
                "payload_digest": digests_of(numbers),
                "entry": pa.array(numbers),
                "key": pa.array([f"k{number}" for number in numbers.tolist()]) if "key" in names else None,
                "admitted_in": pa.array(numbers),
                "event_id": pa.array(numbers).cast(pa.string()),
            }
            types = {field.name: field.type for field in schema}
            columns = [held[name] if name in held else pa.nulls(len(numbers), types[name]) for name in names]
            yield pa.RecordBatch.from_arrays(columns, names)


def digests_of(numbers: np.ndarray) -> pa.Array:
    """32 bytes a number, alike in no compressor's eyes."""
    words = np.empty((len(numbers), 4), np.uint64)
    for limb in range(4):
        mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15 + 2 * limb)
        words[:, limb] = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return pa.FixedSizeBinaryArray.from_buffers(schemas.DIGEST, len(numbers), [None, pa.py_buffer(words)])


def spec_of(rows: int, lost_every: int, evidence: Path, shuffle: int | None = None, **more: Any) -> MeetSpec:
    """One range that holds everything, judged at its end."""
    evidence.mkdir(parents=True, exist_ok=True)
    head, safe = Coordinate(rows), SafeFrontier(None, "counted", "All of it is counted.")
    reading = Reading("counted", {}, {"0": LaneReading("0", head, Coordinate(1), None, safe, rows)})
    ends = (CountedEnd(rows, shuffle=shuffle), CountedEnd(rows, lost_every, shuffle))
    question = {"0": LaneQuestion("0", head, journal_head=head, has_journal=False)}
    whole = (CoordinateRange("0", None, None),)
    return MeetSpec(*ends, reading, reading, whole, question, Width.PAYLOAD, str(evidence), **more)  # type: ignore[arg-type]


def _status(name: str) -> int:
    """A line of this process's status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def main() -> None:
    rows, lost_every, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    more = {"has_ledger": True, "block_rows": ROWS_A_BLOCK}  # as an audit has
    range_judge(spec_of(1_000, 3, folder / "warm", **more), 0)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    found = range_judge(spec_of(rows, lost_every, folder / "judged", **more), 0)
    print(json.dumps({"beyond_bytes": _status("VmHWM") - before, "lost": found["counts"]["lost"]}))


if __name__ == "__main__":
    main()
