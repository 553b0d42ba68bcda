"""A folder of files as a source: nothing at or below a frontier may change, and every reading checks that.

There is no snapshot. A reading names each file by its size and digest. Whoever reads those bytes later computes the
digest again, and a file that was rewritten or removed makes the reading fail. A file that grows is read as far as it
went. What lies at or below a pinned frontier is counted and digested again before it is judged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format
from recovery_api.domain.errors import SnapshotLost, TerminalError, Unsuitable
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.grounds import Standing
from recovery_api.domain.kinds.archive_files import KIND, spelling_of
from recovery_api.domain.kinds.base import Retention, options_parse
from workers.connectors.folders import files_of, folder_resolve
from workers.connectors.progress import progress_beat
from workers.connectors.protocols.source import ImmutableSource
from workers.connectors.readings import (
    BatchDigest,
    ConnectionReport,
    CoordinateRange,
    CursorReading,
    LaneReading,
    LateRows,
    Reading,
    SafeFrontier,
    Width,
)
from workers.connectors.rows import (
    below,
    history_columns,
    inside,
    lanes_of,
    payload_of,
    ranges_of,
    rows_at,
    table_digest,
)
from workers.evidence.canonical import batch_digest_add, json_string, json_written
from workers.evidence.files import SpellingSigns, event_at, events_read
from workers.evidence.schemas import BATCH, HISTORY

GROUND = "files in order"
SAYS = "Everything that is in the files may be judged: what is still to be written lies above it."
WORD = "that the archive is written in committed order"
HASHED_AT_ONCE = 1 << 20
TRIES = 3
"""How often a file is read again that somebody writes meanwhile."""
CONTENTS_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Held:
    """One file as it was read: so many bytes of this digest, so many events. `lanes`: by lane the lowest and the highest
    coordinate, as pairs, and count and batch digest."""

    name: str
    size: int
    digest: str
    rows: int
    lanes: dict[str, tuple[list[int], list[int], int, str]]
    unread: tuple[str, ...] = ()


def file_source(path: Path, spelling: Spelling) -> ArchiveFiles:
    """One file as a source whose coordinates are spelled so. It is read where any end may be (workers.connectors.folders)."""
    given = {"folder": str(path.parent), "pattern": path.name, "coordinate_spelling": spelling.value}
    return ArchiveFiles(options_parse(KIND, given))


class ArchiveFiles:
    """Source `archive_files`. Made from parsed options; reads nothing until asked."""

    kind = "archive_files"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = dict(options)
        self.spelling: Spelling = spelling_of(options)
        self._known: dict[tuple[str, int, str], Held] = {}
        self._pinned: dict[str, tuple[Coordinate, BatchDigest]] = {}

    def test(self) -> ConnectionReport:
        """What is there. A thing that is wrong is a problem in the report, not an error."""
        try:
            reading = self._reading(self._held())
        except (TerminalError, SnapshotLost) as error:
            return ConnectionReport(False, {"error": error.as_row()}, (str(error),))
        lanes = {lane: self._lane_facts(one) for lane, one in reading.lanes.items()}
        facts = {"identity": reading.identity, "files": len(reading.handle["files"]), "lanes": lanes}
        return ConnectionReport(reading.is_complete, facts, self._unread(reading), reading.weaknesses)

    def cursors(self) -> Mapping[str, CursorReading]:
        return {}

    @contextmanager
    def hold_pin(self) -> Iterator[Reading]:
        """Nothing is held, for what is immutable needs no snapshot. `hold_snapshot` looks at it again."""
        reading = self._reading(self._held())
        self._pinned = {
            lane: (one.head, self._counted(_files_in(reading), lane, one.head))
            for lane, one in reading.lanes.items()
            if one.head is not None
        }
        yield reading

    @contextmanager
    def hold_snapshot(self) -> Iterator[Reading]:
        """What the files hold now. Where that is not what was pinned, at or below the frontier, the reading is not whole."""
        reading = self._reading(self._held())
        for lane, (frontier, then) in self._pinned.items():
            now = self._counted(_files_in(reading), lane, frontier)
            if now != then:
                reading = self._refuted(reading, lane, frontier, then, now)
        yield reading

    def count_and_digest(self, lane: str, below: Coordinate) -> BatchDigest:
        return self._counted(self._held(), lane, below)

    def split(self, reading: Reading, lane: str, parts: int) -> list[CoordinateRange]:
        """Cut where files begin, so that few tasks read a file that another one reads, too."""
        lows = sorted(held.lanes[lane][0] for held in _files_in(reading) if lane in held.lanes)
        return ranges_of(lows[1:], lane, parts)

    def read_history(
        self,
        reading: Reading,
        range_: CoordinateRange,
        width: Width,
        with_key: bool = False,
        late: LateRows | None = None,
    ) -> Iterator[pa.RecordBatch]:
        names = history_columns(width, with_key)
        for held in _files_in(reading):
            if _holds(held, range_.lane, range_.low, range_.high):
                rows = self._rows(held)
                yield from rows.filter(inside(rows, range_)).select(names).to_batches()

    def read_content(self, reading: Reading, coordinates: pa.Table) -> Iterator[pa.RecordBatch]:
        files = {held.name: held for held in _files_in(reading)}
        asked = {lane: (one.lowest, one.head) for lane, one in lanes_of(coordinates).items()}
        wanted = []
        for held in files.values():
            if not any(_holds(held, lane, low, high) for lane, (low, high) in asked.items()):
                continue
            rows = self._rows(held).append_column("place", pa.array(range(held.rows), pa.int64()))
            wanted += [(held.name, row) for row in rows_at(rows, coordinates).to_pylist()]
        wanted.sort(key=lambda one: (one[1]["lane"], one[1]["position"], one[1]["ordinal"]))
        for at in range(0, len(wanted), CONTENTS_AT_ONCE):
            yield self._contents(files, wanted[at : at + CONTENTS_AT_ONCE])

    # -- files ------------------------------------------------------------------------------------------------------

    def _held(self) -> list[Held]:
        """Each file as it is now. Raises: AccessDenied, NotFound, BadFile, BadCoordinate; SnapshotLost while one is written."""
        folder = folder_resolve(self.options["folder"])
        return [self._hold(path) for path in files_of(folder, self.options["pattern"])]

    def _hold(self, path: Path) -> Held:
        for _ in range(TRIES):
            size, digest = _size_and_digest(path)
            if (path.name, size, digest) in self._known:
                return self._known[path.name, size, digest]
            rows, unread = self._table(path)
            if _size_and_digest(path) == (size, digest):
                held = Held(path.name, size, digest, rows.num_rows, _lanes_of(rows), unread)
                self._known[path.name, size, digest] = held
                return held
        raise SnapshotLost(str(path), "it is written while it is read; put files there whole, by renaming them")

    def _rows(self, held: Held) -> pa.Table:
        """The file's events as held. Raises: SnapshotLost where its bytes are no longer those."""
        path = folder_resolve(self.options["folder"]) / held.name
        rows, _ = self._table(path)
        if _size_and_digest(path, held.size) != (held.size, held.digest) or rows.num_rows < held.rows:
            raise SnapshotLost(str(path), "it was rewritten or taken away while it was read")
        return rows.slice(0, held.rows)

    def _table(self, path: Path) -> tuple[pa.Table, tuple[str, ...]]:
        """The file's events in their order, and what could not be read of it."""
        file = events_read(path, SpellingSigns(), path.name)
        progress_beat()
        rows = file.table(self.spelling, HISTORY)
        rows = rows.set_column(
            HISTORY.get_field_index("entry"), HISTORY.field("entry"), pa.nulls(len(rows), pa.int64())
        )
        if self.options["lane_from"] == "file":
            lane = pa.repeat(path.name.partition(".")[0], len(rows))
            rows = rows.set_column(HISTORY.get_field_index("lane"), HISTORY.field("lane"), lane)
        return rows, tuple(file.notes.unread())

    def _contents(self, files: Mapping[str, Held], wanted: list[tuple[str, dict[str, Any]]]) -> pa.RecordBatch:
        records = {}
        for name in {name for name, _ in wanted}:
            places = {row["place"] for held, row in wanted if held == name}
            records[name] = event_at(folder_resolve(self.options["folder"]) / name, places)
        sent = []
        for name, row in wanted:
            event = {**row, "content": _content(records[name].get(row["place"], {}))}
            if payload_of(event) != row["payload_digest"]:
                at = coordinate_format(Coordinate(row["position"], row["ordinal"]), self.spelling)
                remedy = "Write the content itself, not its digest; keys are texts or numbers."
                raise Unsuitable(f"the event at {at} in {name}", "its content is not what was judged", remedy)
            sent.append({column: event[column] for column in BATCH.names})
        return pa.RecordBatch.from_pylist(sent, schema=BATCH)

    # -- readings ---------------------------------------------------------------------------------------------------

    def _reading(self, files: list[Held]) -> Reading:
        named = sorted({lane for held in files for lane in held.lanes}) or [SINGLE_LANE]
        lanes = {lane: self._lane(lane, files) for lane in named}
        unread = tuple(sentence for held in files for sentence in held.unread)
        said = tuple(dict.fromkeys(one.safe.weakness for one in lanes.values() if one.safe.weakness))
        held = hashlib.sha256(json.dumps([asdict(one) for one in files]).encode()).hexdigest()
        rows = sum(one.rows for one in files)
        return Reading(
            identity=f"{len(files)} files in {self.options['folder']}, {rows} events, digest {held[:16]}",
            handle={"files": [asdict(one) for one in files]},
            lanes=lanes,
            is_complete=not unread,
            weaknesses=(*said, *unread),
        )

    def _lane(self, lane: str, files: list[Held]) -> LaneReading:
        mine = [held.lanes[lane] for held in files if lane in held.lanes]
        if not mine:
            return LaneReading(lane, None, None, None, self._safe(None))
        low, high = Coordinate(*min(one[0] for one in mine)), Coordinate(*max(one[1] for one in mine))
        floor = low if self.options["retention"] == Retention.PURGES else None
        return LaneReading(lane, high, low, floor, self._safe(high), sum(one[2] for one in mine))

    def _safe(self, head: Coordinate | None) -> SafeFrontier:
        """On the owner's word, or assumed: nothing in a folder shows what will be written."""
        is_attested = self.options["is_written_in_order"]
        told = "Its owner says" if is_attested else "It is assumed, and nobody has said,"
        where = [str(self.options[name]) for name in ("folder", "pattern", "lane_from", "coordinate_spelling")]
        return SafeFrontier(
            coordinate=head,
            ground=GROUND,
            says=SAYS,
            weakness=f"{told} {WORD}; count and digest of what is there are read again, and only what changes is found.",
            standing=Standing.ATTESTED if is_attested else Standing.ASSUMED,
            given=WORD,
            catalogue=hashlib.sha256(json.dumps([*where, is_attested]).encode()).hexdigest(),
            incarnation="/".join(where[:2]),
        )

    def _counted(self, files: list[Held], lane: str, frontier: Coordinate) -> BatchDigest:
        """Count and digest of the lane's events at or below the frontier; only a file that goes on above it is read again."""
        parts = []
        for held in files:
            if lane not in held.lanes or Coordinate(*held.lanes[lane][0]) > frontier:
                continue
            _, high, count, digest = held.lanes[lane]
            if Coordinate(*high) > frontier:
                rows = self._rows(held)
                found = table_digest(rows.filter(below(rows, lane, frontier)))
                count, digest = found.count, found.digest
            parts.append((count, digest))
        return BatchDigest(sum(count for count, _ in parts), batch_digest_add(*(digest for _, digest in parts)))

    def _refuted(
        self, reading: Reading, lane: str, frontier: Coordinate, then: BatchDigest, now: BatchDigest
    ) -> Reading:
        at = coordinate_format(frontier, self.spelling)
        changed = f"{then.count} events lay at or below {at} when it was pinned, and {now.count} do now"
        if then.count == now.count:
            changed = f"the {now.count} events at or below {at} are not those that it was pinned with"
        lanes = dict(reading.lanes)
        if lane in lanes:
            lanes[lane] = replace(lanes[lane], safe=lanes[lane].safe.unproven(changed))
        said = f"The files changed while they were read: {changed}. Read again once nobody writes below the frontier."
        return replace(reading, lanes=lanes, is_complete=False, weaknesses=(*reading.weaknesses, said))

    def _lane_facts(self, lane: LaneReading) -> dict[str, Any]:
        ends = (lane.lowest, lane.head)
        lowest, head = (one and coordinate_format(one, self.spelling) for one in ends)
        return {"lowest": lowest, "highest": head, "events": lane.estimated_rows}

    def _unread(self, reading: Reading) -> tuple[str, ...]:
        return tuple(sentence for held in _files_in(reading) for sentence in held.unread)


def _files_in(reading: Reading) -> list[Held]:
    return [Held(**{**row, "unread": tuple(row["unread"])}) for row in reading.handle["files"]]


def _lanes_of(rows: pa.Table) -> dict[str, tuple[list[int], list[int], int, str]]:
    lanes = {}
    for lane in sorted(set(rows["lane"].to_pylist())):
        mine = rows.filter(pc.equal(rows["lane"], lane))
        places = sorted(zip(mine["position"].to_pylist(), mine["ordinal"].to_pylist(), strict=True))
        found = table_digest(mine)
        lanes[lane] = (list(places[0]), list(places[-1]), found.count, found.digest)
    return lanes


def _holds(held: Held, lane: str, low: Coordinate | None, high: Coordinate | None) -> bool:
    """Whether the file may hold events of the lane from `low` to `high`."""
    if lane not in held.lanes:
        return False
    lowest, highest, *_ = held.lanes[lane]
    return (low is None or Coordinate(*highest) >= low) and (high is None or Coordinate(*lowest) <= high)


def _content(record: Mapping[str, Any]) -> str | None:
    """The event's content as JSON text. None: it has none."""
    value = record.get("value")
    if value is None and isinstance(record.get("value_text"), str):
        return json_string(record["value_text"])
    return json_written(value) if "value" in record else None


def _size_and_digest(path: Path, size: int | None = None) -> tuple[int, str]:
    """How many bytes, at most `size`, the file holds, and their SHA-256. Raises: SnapshotLost where it is gone."""
    found, length = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while size is None or length < size:
                part = file.read(HASHED_AT_ONCE if size is None else min(HASHED_AT_ONCE, size - length))
                if not part:
                    break
                found.update(part)
                progress_beat()
                length += len(part)
    except OSError as error:
        raise SnapshotLost(str(path), f"it cannot be read: {error.strerror}") from error
    return length, found.hexdigest()


if TYPE_CHECKING:
    _is_checked: type[ImmutableSource] = ArchiveFiles
