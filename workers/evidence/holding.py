"""Both ends of one range, held in a task's memory; or, where they are too many rows for that, where to cut it again.

The law: what is held is bounded, whatever was estimated. Only rows of one single coordinate cannot be parted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate
from workers.connectors.readings import CoordinateRange, LateRows, Width
from workers.evidence import schemas
from workers.evidence.cutting import ranges_between
from workers.spark.on_demand import counted

if TYPE_CHECKING:
    from workers.evidence.ranges import MeetSpec

T = TypeVar("T")

HELD_TIMES = 2
"""So many times the rows that a range is made for are held before it is cut again."""

HISTORY_TIMES = 0.8
"""The same of a history in full width. A range is made for the rows of both ends, so half of them are the history's."""

SAMPLED = 512
"""Coordinates that are looked at for each range that it is cut into."""


@dataclass
class Held:
    """Every row of both ends in the range, and what was seen of late ones. Whoever takes an end's rows has the only hold
    of them, and can let them go piece by piece."""

    range_: CoordinateRange
    history: pa.Table
    accepted: pa.Table
    late: LateRows

    def history_take(self) -> pa.Table:
        taken, self.history = self.history, schemas.HISTORY.empty_table()
        return taken

    def accepted_take(self) -> pa.Table:
        taken, self.accepted = self.accepted, schemas.ACCEPTED.empty_table()
        return taken


class TooManyHeld(Exception):
    """The range has more rows than one task is meant to hold."""


def stretches_held(spec: MeetSpec, range_: CoordinateRange) -> Iterator[Held]:
    """The range in order, whole or cut into as many stretches as memory asks for; one is held at a time."""
    most = HELD_TIMES * spec.rows_a_range
    return _stretches(range_, most, partial(_held, spec), partial(cuts_find, spec))


def history_held(spec: MeetSpec, range_: CoordinateRange) -> Iterator[tuple[pa.Table, LateRows]]:
    """As `stretches_held`, of the source alone and with every column: each stretch's history, and what was seen of late rows."""
    cuts = partial(cuts_find, spec, with_record=False)
    return _stretches(range_, int(HISTORY_TIMES * spec.rows_a_range), partial(_history_held, spec), cuts)


def _stretches(
    range_: CoordinateRange,
    most: int,
    hold: Callable[[CoordinateRange, int | None], T],
    cut: Callable[[CoordinateRange], list[Coordinate]],
) -> Iterator[T]:
    waiting = [range_]
    while waiting:
        stretch = waiting.pop(0)
        try:
            held = hold(stretch, most)
        except TooManyHeld:
            cuts = cut(stretch)
            if cuts:
                waiting = [*ranges_between(stretch, cuts), *waiting]
                continue
            held = hold(stretch, None)
        yield held
        del held


def _history_held(spec: MeetSpec, range_: CoordinateRange, most: int | None) -> tuple[pa.Table, LateRows]:
    late = LateRows(spec.questions[range_.lane].frontier)
    has_key = spec.questions[range_.lane].scope is not None
    batches = spec.source.source().read_history(spec.source_reading, range_, Width.FULL, with_key=has_key, late=late)
    return _table(batches, spec.most_rows, most), late


def _held(spec: MeetSpec, range_: CoordinateRange, most: int | None) -> Held:
    late = LateRows(spec.questions[range_.lane].frontier)
    has_key = spec.questions[range_.lane].scope is not None
    history = _table(
        spec.source.source().read_history(spec.source_reading, range_, spec.width, with_key=has_key, late=late)
        if range_.lane in spec.source_reading.lanes
        else iter(()),
        spec.most_rows,
        most,
    )
    room = None if most is None else most - history.num_rows
    accepted = spec.sink.record().read_accepted(spec.sink_reading, range_, spec.width)
    return Held(range_, history, _table(accepted, spec.most_rows, room), late)


def _table(batches: Iterator[pa.RecordBatch], most_here: int | None, room: int | None) -> pa.Table:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in counted(batches, most_here):
        rows += batch.num_rows
        if room is not None and rows > room:
            raise TooManyHeld
        held.append(batch)
    return pa.Table.from_batches(held) if held else schemas.HISTORY.empty_table()


def cuts_find(spec: MeetSpec, range_: CoordinateRange, with_record: bool = True) -> list[Coordinate]:
    """Where the range is cut so that each stretch has about `spec.rows_a_range` rows of both ends, or half as many of the history
    alone: reads their coordinates once, and keeps a few. Empty: those that were looked at are all the same."""
    wanted = spec.rows_a_range if with_record else max(1, spec.rows_a_range // 2)
    step = max(1, wanted // SAMPLED)
    seen: list[np.ndarray] = []
    rows = 0
    for batch in _coordinates(spec, range_, with_record):
        begin = -rows % step
        rows += batch.num_rows
        places = [np.asarray(batch.column(name))[begin::step] for name in ("position", "ordinal")]
        seen.append(np.stack(places, axis=1))
    if not seen:
        return []
    ordered = np.unique(np.concatenate(seen), axis=0)
    sample = np.concatenate(seen)
    sample = sample[np.lexsort((sample[:, 1], sample[:, 0]))]
    count = max(2, math.ceil(rows / wanted))
    chosen = {tuple(pair) for pair in sample[len(sample) * np.arange(1, count) // count].tolist()}
    lowest = tuple(ordered[0].tolist())
    cuts = sorted(Coordinate(*pair) for pair in chosen if pair > lowest)
    return cuts or [Coordinate(*pair) for pair in ordered[1:2].tolist()]


def _coordinates(spec: MeetSpec, range_: CoordinateRange, with_record: bool) -> Iterator[pa.RecordBatch]:
    if range_.lane in spec.source_reading.lanes:
        yield from spec.source.source().read_history(spec.source_reading, range_, Width.COORDINATE)
    if with_record:
        yield from spec.sink.record().read_accepted(spec.sink_reading, range_, Width.COORDINATE, with_head=False)
