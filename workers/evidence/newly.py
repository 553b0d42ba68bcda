"""The entries that came into a record since an earlier reading of it, and whether what came in last is there still."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.ledger.blocks import Fingerprint, blocks_hold, fingerprint_join
from recovery_api.domain.ledger.following import Known
from workers.connectors.protocols.record import FollowedRecord
from workers.connectors.readings import Following, Width
from workers.evidence.blocks import EVERYTHING
from workers.evidence.grounds import history_fingerprint
from workers.evidence.ranges import MeetSpec

ABOVE = -1
"""In place of a block's: above them all."""

ENTRIES_MOST = 2_000_000
"""New entries that are looked at one by one; with more, everything is read."""


class Whole(Exception):
    """Everything has to be read: the reason, as a sentence."""


def new_entries(
    known: Known, sink: FollowedRecord, spec: MeetSpec
) -> tuple[dict[str, int], dict[str, Fingerprint], dict[str, dict[int, Fingerprint]]]:
    """The fingerprint of the entries that came in since; by lane of those that only now are below the oldest open
    transaction; and by lane that is known, and the place of its block or ABOVE, of the new ones that came in there."""
    increment, then = known.increment, spec.admitted_then
    since = increment.since if increment else known.snapshot
    lowest = min([Following(since).oldest_open, *(at for at in then.values() if at is not None)])
    again, new, entered, looked_at = [], [], dict[str, dict[int, Fingerprint]](), 0
    older: dict[str, Fingerprint] = {}
    for batch in sink.read_since(spec.sink_reading, f"{lowest}:{lowest}:"):
        looked_at += batch.num_rows
        if looked_at > ENTRIES_MOST:
            raise Whole(f"More than {ENTRIES_MOST:,} entries came in since.")
        table = pa.Table.from_batches([batch])
        admitted = table["admitted_in"].to_numpy()
        is_shown, was_shown = shown_in(known.snapshot, admitted), shown_in(since, admitted)
        again.append(history_fingerprint(table.filter(pa.array(is_shown & ~was_shown)), EVERYTHING))
        fresh = table.filter(pa.array(~is_shown))
        new.append(history_fingerprint(fresh, EVERYTHING))
        compared = fresh.drop_columns(["payload_digest"]) if spec.width is Width.COORDINATE else fresh
        for lane, place, part in _entered(known, compared):
            blocks = entered.setdefault(lane, {})
            blocks[place] = fingerprint_join(blocks.get(place, {}), part)
        for lane, below in then.items():
            mine = (admitted >= (below or 0)) & (admitted < (spec.admitted_now or 0))
            mine &= np.array(pc.equal(table["lane"], lane))
            part = history_fingerprint(table.filter(pa.array(mine)), EVERYTHING)
            older[lane] = fingerprint_join(older.get(lane, {}), part)
    if increment is not None and not is_same(fingerprint_join(*again), increment.entries):
        raise Whole(
            "The record does not hold any more what the last audit found new in it: it was restored or changed."
        )
    return fingerprint_join(*new), older, entered


def _entered(known: Known, rows: pa.Table) -> Iterator[tuple[str, int, Fingerprint]]:
    """Of the rows of lanes that are known: the lane, the place of the block that they came into, and their fingerprint."""
    columns = (rows[name].to_pylist() for name in ("lane", "position", "ordinal"))
    found: dict[tuple[str, int], list[int]] = {}
    for number, (lane, position, ordinal) in enumerate(zip(*columns, strict=True)):
        held, at = known.lanes.get(lane), Coordinate(position, ordinal)
        if held is not None:
            place = blocks_hold(held.blocks, at)
            found.setdefault((lane, ABOVE if place is None else place), []).append(number)
    for (lane, place), numbers in found.items():
        yield lane, place, history_fingerprint(rows.take(pa.array(numbers)), EVERYTHING)


def is_same(one: Fingerprint, other: Fingerprint) -> bool:
    names = {*one, *other}
    return all(one.get(name, 0) == other.get(name, 0) for name in names)


def shown_in(snapshot: str, admitted_in: np.ndarray) -> np.ndarray:
    """Which of these transactions the snapshot shows, where they ended well.

    >>> shown_in("5:9:5,7", np.array([4, 5, 6, 7, 8, 9])).tolist()
    [True, False, True, False, True, False]
    """
    oldest, first, between = snapshot.split(":")
    was_open = np.array([int(one) for one in between.split(",") if one], np.int64)
    return (admitted_in < int(oldest)) | ((admitted_in < int(first)) & ~np.isin(admitted_in, was_open))
