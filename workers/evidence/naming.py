"""What people call an owed event by: the event id, the key and the time that the source has of it.

A verdict needs none of them, so no reading brings them. They are looked up once, when an owed event is first seen, in the
reading's own snapshot; and only where that is cheap: an outage leaves few stretches, and what lies beyond the first
rows of them has its coordinate alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import INT64_MAX, Coordinate
from recovery_api.domain.ledger.words import ItemWord
from workers.connectors.readings import CoordinateRange, Width
from workers.evidence import schemas

if TYPE_CHECKING:
    from workers.evidence.ranges import MeetSpec

STRETCHES = 20
ROWS = 2_000
"""Of each range that a task judges: so many stretches of owed events are looked up, and so many rows of them."""

PLACE = ["position", "ordinal"]
SAME = [*PLACE, "digest"]
SHOWN = ["event_id", "key", "committed_at"]
NAMED = pa.schema([schemas.HISTORY.field(name) for name in [*PLACE, "payload_digest", *SHOWN]])


def owed_named(spec: MeetSpec, items: pa.Table, history: pa.Table, lane: str) -> pa.Table:
    """`items` (schemas.ITEM), the owed ones of them with event id, key and commit time where the source has them."""
    is_bare = pc.and_(items["event_id"].is_null(), items["committed_at"].is_null())
    is_owed = pc.and_(pc.equal(items["word"], ItemWord.LOST.value), pc.invert(items["is_content_gone"]))
    bare = items.filter(pc.and_(is_owed, is_bare))
    if not bare.num_rows or lane not in spec.source_reading.lanes:
        return items
    found = [_rows(spec, lane, low, high) for low, high in _stretches(bare, history)]
    shown = pa.concat_tables([*found, NAMED.empty_table()])
    shown = shown.rename_columns([*SAME, *(f"{name}_shown" for name in SHOWN)])
    once = shown.group_by(SAME).aggregate([(f"{name}_shown", "one") for name in SHOWN])
    met = items.join(once, SAME, join_type="left outer")
    columns = {
        name: pc.coalesce(met[name], met[f"{name}_shown_one"]) if name in SHOWN else met[name]
        for name in schemas.ITEM.names
    }
    return pa.table(columns).cast(schemas.ITEM)


def _rows(spec: MeetSpec, lane: str, low: Coordinate, high: Coordinate) -> pa.Table:
    """The committed events from `low` to `high`, both included."""
    source = spec.source.source()
    batches = list(source.read_history(spec.source_reading, CoordinateRange(lane, low, _after(high)), Width.FULL))
    rows = pa.Table.from_batches(batches) if batches else schemas.HISTORY.empty_table()
    return rows.select(NAMED.names).cast(NAMED)


def _stretches(bare: pa.Table, history: pa.Table) -> Iterator[tuple[Coordinate, Coordinate]]:
    """The first and the last coordinate of each run of the events to be named that no other event of the history parts."""
    ordered = history.select(PLACE).sort_by([(name, "ascending") for name in PLACE])
    ordered = ordered.append_column("at", pa.array(np.arange(ordered.num_rows)))
    places = ordered.join(bare.select(PLACE).group_by(PLACE).aggregate([]), PLACE, join_type="inner")
    places = places.sort_by("at").slice(0, ROWS)
    if not places.num_rows:
        return
    begins = np.flatnonzero(np.diff(places["at"].to_numpy()) > 1) + 1
    firsts = [0, *begins.tolist()][:STRETCHES]
    lasts = [*(begins - 1).tolist(), places.num_rows - 1][:STRETCHES]
    positions, ordinals = (places[name].to_pylist() for name in PLACE)
    for first, last in zip(firsts, lasts, strict=True):
        yield Coordinate(positions[first], ordinals[first]), Coordinate(positions[last], ordinals[last])


def _after(last: Coordinate) -> Coordinate | None:
    if last.ordinal < INT64_MAX:
        return Coordinate(last.position, last.ordinal + 1)
    return Coordinate(last.position + 1, 0) if last.position < INT64_MAX else None
