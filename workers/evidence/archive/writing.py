"""Writing what an audit read to the archive: from where the archive ends up to the frontier, part by part.

The law: the verdict does not wait for it. What cannot be written is told, from which coordinate on and why, and the next
audit begins there. Everything is read in the audit's own snapshot of the source; memory holds the coordinates of about a
part, and a few MiB of contents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from recovery_api.domain.archives import Part
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import EvidenceUnwritable, FencepostError
from recovery_api.domain.ledger.blocks import ROWS_A_BLOCK, coordinate_after
from workers.connectors.protocols.source import Source
from workers.connectors.readings import CoordinateRange, LaneReading, Reading, Width
from workers.evidence.archive.looking import ORDER, PLACE, read_to
from workers.evidence.archive.parts import ARCHIVED, PartWriter
from workers.evidence.batch import rows_digest
from workers.evidence.canonical import batch_digest_add
from workers.evidence.pinning import BEFORE_EVERYTHING
from workers.evidence.schemas import HISTORY

ROWS_AT_ONCE = 1_000_000
"""Rows that one audit archives at most, so that a first one of a long history ends."""
PART_BYTES = 64 * 2**20
ROWS_HELD = 4 * ROWS_A_BLOCK
"""Of events without their contents, at once; a lane that holds more than was estimated is cut finer."""
FINER = 8


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be archived: at `url`, under `mapping`. `starts`: by lane and incarnation where the archive ends, so
    that it goes on there; what is not named begins with the source's first event."""

    url: str
    mapping: str
    starts: Mapping[str, Mapping[str, Coordinate]]


@dataclass(frozen=True, slots=True)
class Written:
    """What of a lane came to the archive. `problem`: why not everything up to the frontier; `short_of`: from where on not
    (None: from the beginning)."""

    parts: tuple[Part, ...] = ()
    problem: str = ""
    short_of: Coordinate | None = None


def archive_write(
    source: Source,
    reading: Reading,
    frontiers: Mapping[str, Coordinate],
    late: Mapping[str, Coordinate | None],
    request: Request,
    progress: Callable[..., None],
) -> dict[str, Written]:
    """By lane what was written. `frontiers`: up to where each was judged. `late`: by lane the lowest row that came in
    behind a frontier (None: not known): from there on it is written again, beside what is there.

    Raises: what `progress` raises.
    """
    found, room = {}, ROWS_AT_ONCE
    for lane, frontier in frontiers.items():
        lane_reading = reading.lanes.get(lane)
        if lane_reading is None:
            continue
        found[lane] = _lane(source, reading, lane_reading, frontier, late, request, progress, room)
        room -= sum(part.rows for part in found[lane].parts)
    return found


def _lane(
    source: Source,
    reading: Reading,
    lane: LaneReading,
    frontier: Coordinate,
    late: Mapping[str, Coordinate | None],
    request: Request,
    progress: Callable[..., None],
    room: int,
) -> Written:
    incarnation, safe = lane.safe.incarnation, lane.safe.coordinate
    if not incarnation:
        return Written(
            problem="the source does not show which server, timeline and table it is: nothing could be checked"
        )
    if safe is None or frontier == BEFORE_EVERYTHING:
        return Written()
    start = request.starts.get(lane.lane, {}).get(incarnation)
    if lane.lane in late:
        first = late[lane.lane]
        start = None if first is None or start is None else min(first, start)
    high = coordinate_after(min(frontier, safe))
    if start is not None and start >= high:
        return Written()
    made = Part(lane.lane, start, high, 0, 0, "", "", "", incarnation, request.mapping, read_to(reading))
    written: list[Part] = []
    stream = parts_write(source, reading, made, request.url, max(lane.estimated_rows, 1), room)
    while True:
        reached = written[-1].high if written else start
        try:
            part = next(stream, None)
        except OSError as error:
            return Written(tuple(written), f"its folder cannot be written ({error.strerror or error})", reached)
        except EvidenceUnwritable as error:
            return Written(tuple(written), f"its store cannot be written ({error.args[1]})", reached)
        except (FencepostError, _Unarchivable) as error:
            return Written(tuple(written), f"the contents could not be read: {error}", reached)
        if part is None:
            break
        written.append(part)
        progress(step="archiving", done=sum(one.rows for one in written), unit="events")
    if written and written[-1].high < high:
        return Written(
            tuple(written), f"an audit archives {room:,} events at most; the next one goes on", written[-1].high
        )
    if not written and room <= 0:
        return Written((), "this audit archived as much as one may; the next one goes on", start)
    return Written(tuple(written))


def parts_write(source: Source, reading: Reading, made: Part, url: str, estimated: int, room: int) -> Iterator[Part]:
    """The finished parts of `made`'s range, in order. The last one ends where the range does, unless `room` is used up."""
    low = made.low
    held = _Held(url)
    try:
        for table in _histories(source, reading, made, estimated):
            for rows in _with_contents(source, reading, table):
                if room <= 0:
                    break
                rows = rows.slice(0, room)
                room -= rows.num_rows
                held.add(rows)
                if held.is_full:
                    high = coordinate_after(_last(rows))
                    yield held.finish(replace(made, low=low, high=high))
                    low = high
            if room <= 0:
                break
        if held.rows:
            high = made.high if room > 0 else coordinate_after(held.last)
            yield held.finish(replace(made, low=low, high=high))
    finally:
        held.discard()


class _Held:
    """The part that is being written."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._writer: PartWriter | None = None
        self.rows, self._bytes, self._digests = 0, 0, list[str]()
        self.last = BEFORE_EVERYTHING

    @property
    def is_full(self) -> bool:
        is_put = self._writer is not None and self._writer.is_full
        return is_put or self.rows >= ROWS_A_BLOCK or self._bytes >= PART_BYTES

    def add(self, rows: pa.Table) -> None:
        if self._writer is None:
            self._writer = PartWriter(self._url)
        self._writer.write(rows)
        self.rows += rows.num_rows
        self._bytes += rows.nbytes
        self._digests.append(rows_digest(rows))
        self.last = _last(rows)

    def finish(self, part: Part) -> Part:
        assert self._writer is not None
        file, size, digest = self._writer.close()
        done = replace(
            part, rows=self.rows, bytes=size, digest=batch_digest_add(*self._digests), file=file, file_digest=digest
        )
        self._writer, self.rows, self._bytes, self._digests = None, 0, 0, []
        return done

    def discard(self) -> None:
        if self._writer is not None:
            self._writer.discard()


def _histories(source: Source, reading: Reading, made: Part, estimated: int) -> Iterator[pa.Table]:
    """The range's events without their contents, in order, about as many at once as a part holds."""
    pieces = math.ceil(estimated / ROWS_A_BLOCK)
    for piece in _cut(source, reading, CoordinateRange(made.lane, made.low, made.high), pieces):
        yield from _piece(source, reading, piece, pieces)


def _piece(source: Source, reading: Reading, piece: CoordinateRange, pieces: int) -> Iterator[pa.Table]:
    """One piece of the lane; cut finer where it holds many more rows than was estimated."""
    batches, rows = [], 0
    for batch in source.read_history(reading, piece, Width.FULL, with_key=True):
        batches.append(batch)
        rows += batch.num_rows
        if rows > ROWS_HELD and len(finer := _cut(source, reading, piece, pieces * FINER)) > 1:
            for part in finer:
                yield from _piece(source, reading, part, pieces * FINER)
            return
    if batches:
        yield pa.Table.from_batches(batches).select(HISTORY.names).cast(HISTORY).sort_by(ORDER)


def _cut(source: Source, reading: Reading, within: CoordinateRange, pieces: int) -> list[CoordinateRange]:
    """About `pieces` ranges of the whole lane, as far as they lie in `within`."""
    found = []
    for one in source.split(reading, within.lane, pieces):
        low = max((at for at in (one.low, within.low) if at is not None), default=None)
        high = min((at for at in (one.high, within.high) if at is not None), default=None)
        if low is None or high is None or low < high:
            found.append(CoordinateRange(within.lane, low, high))
    return found


def _with_contents(source: Source, reading: Reading, events: pa.Table) -> Iterator[pa.Table]:
    """ARCHIVED rows of these events, a few MiB of contents at once.

    Raises: _Unarchivable where a coordinate has several events, or one has no content.
    """
    done = 0
    for batch in source.read_content(reading, events.select(["lane", *PLACE])):
        mine = events.slice(done, batch.num_rows)
        done += batch.num_rows
        is_same = mine.num_rows == batch.num_rows and all(
            np.array_equal(mine[name].to_numpy(), batch.column(name).to_numpy()) for name in PLACE
        )
        if not is_same:
            raise _Unarchivable("several events at one coordinate, or contents in another order than their events")
        yield pa.table([*mine.columns, batch.column("content")], schema=ARCHIVED)
    if done != events.num_rows:
        raise _Unarchivable(f"{events.num_rows - done:,} events without a content that could be read")


class _Unarchivable(Exception):
    """What the source gave is not one content an event: why, as a phrase."""


def _last(rows: pa.Table) -> Coordinate:
    row = rows.slice(rows.num_rows - 1).select(PLACE).to_pylist()[0]
    return Coordinate(row["position"], row["ordinal"])
