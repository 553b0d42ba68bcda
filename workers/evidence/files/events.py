"""From the records of a file to the tables of evidence.

A file is read once; of each record only digests, coordinates and keys are kept, so that memory grows with the number of
records and never with their contents. Coordinates stay as written until the whole of every file was seen, for a spelling
is decided once; then they are resolved. So this is no use for the connectors' floor (workers.connectors.rows): its rows hold
their contents and their coordinates as numbers from the first.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import BadFile
from workers.evidence import schemas
from workers.evidence.files.collecting import EVERY, Collector, spooled_read
from workers.evidence.files.notes import FileNotes, notes_of
from workers.evidence.files.opening import parts_of
from workers.evidence.files.options import ReadOptions
from workers.evidence.files.records import Wanted, part_read, part_show
from workers.evidence.files.spellings import SpellingSigns, coordinates_resolve

DEFAULT = ReadOptions()


@dataclass
class EventFile:
    """One export, read: its records with coordinates as written, and what was found besides.

    `tables`: the tables its events are of. `unknown`: for a place in the file, the members that the log did not hold.
    `has_entries`: the file gives an order of its own. `published_again`: of events that a connector published more than once,
    by lane and coordinate as written, how many times more.
    """

    path: Path
    notes: FileNotes
    lanes: set[str] = field(default_factory=set)
    held: list[pa.RecordBatch] = field(default_factory=list)
    spooled: list[Path] = field(default_factory=list)
    tables: dict[str, int] = field(default_factory=dict)
    unknown: dict[int, tuple[str, ...]] = field(default_factory=dict)
    has_contents: bool = True
    has_entries: bool = False
    published_again: dict[tuple[str, Any], int] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Every record of it is one event, in its order."""
        notes = self.notes
        frames = sum(notes.ignored[kind] for kind in ("header", "frame", "blank"))
        is_exact = notes.rows == notes.recognised and notes.rejected == 0 and notes.is_whole
        return is_exact and frames == notes.ignored.total() and not notes.mild["glued records"]

    @property
    def header_lines(self) -> int | None:
        """How many lines lie before the first event, where every event is one line, and nothing else lies between."""
        notes = self.notes
        headers = notes.ignored["header"]
        is_each = self.is_plain and not self.path.is_dir() and notes.unit == "line"
        return headers if is_each and notes.ignored.total() == headers and notes.lines == notes.rows + headers else None

    @property
    def raw(self) -> Iterator[pa.RecordBatch]:
        yield from self.held
        yield from map(spooled_read, self.spooled)

    def batches(self, spelling: Spelling, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The records in the shape of `schema`: schemas.HISTORY or ACCEPTED, or part of one, or content_digest beside.

        `entry` is the file's own order where the file does not give a history's; always, in a record.
        """
        start = 0
        for batch in self.raw:
            count = len(batch)
            names = batch.schema.names
            columns = {name: batch[name] for name in names}
            position, ordinal = coordinates_resolve(batch["coordinate"], spelling, f"{self.notes.name}, coordinate")
            columns |= {"position": position, "ordinal": ordinal}
            if "head" in names and "head_position" in schema.names:
                head = batch["head"]
                columns |= dict(
                    zip(
                        ("head_position", "head_ordinal"),
                        coordinates_resolve(head, spelling, f"{self.notes.name}, head"),
                        strict=True,
                    )
                )
            is_ordered = "head_position" not in schema.names and "entry" in names and batch["entry"].null_count == 0
            if not is_ordered:
                columns["entry"] = pa.array(range(start, start + count), pa.int64())
            start += count
            yield pa.record_batch(schemas.shaped(columns, schema, count), schema=schema)

    def table(self, spelling: Spelling, schema: pa.Schema) -> pa.Table:
        return pa.Table.from_batches(self.batches(spelling, schema), schema=schema).combine_chunks()


def events_read(
    path: Path,
    signs: SpellingSigns,
    name: str | None = None,
    options: ReadOptions = DEFAULT,
    wanted: frozenset[str] = EVERY,
    spool: Path | None = None,
) -> EventFile:
    """The events of a file or folder. Its coordinates' shapes go to `signs`; what could not be read, to its notes.

    `wanted`: which columns to keep; `spool`: where batches are put instead of into memory.

    Raises: BadFile, BadCoordinate, BadInput.
    """
    notes = FileNotes(name or path.name)
    parts = parts_of(path, notes)
    file = EventFile(path, notes)
    is_alone = parts == [path]
    read = []
    collector = Collector(notes, signs, wanted, spool)
    with _uncollected():
        for part in parts:
            own = notes if is_alone else FileNotes(f"{notes.name}/{part.relative_to(path)}")
            collector.notes = own
            shape = part_read(part, own, collector, options)
            file.tables |= {table: line for table, line in shape.tables.items() if table not in file.tables}
            read.append(own)
    collector.flush()
    if not is_alone:
        folder = notes
        file.notes = notes_of(read, notes.name)
        file.notes.blemishes = (folder.blemishes + file.notes.blemishes)[:20]
        file.notes.blemish_count += folder.blemish_count
    if len(file.tables) > 1 and not options.tables:
        named = ", ".join(f"{table} (from line {line})" for table, line in sorted(file.tables.items()))
        remedy = f"Say which: --table {sorted(file.tables)[0]}. Leaves of one partitioned table are all named, or by a pattern."
        raise BadFile(notes.name, "tables", f"holds events of {len(file.tables)} tables: {named}", remedy)
    file.has_contents = collector.is_content_seen or collector.is_all_deletes
    if file.notes.rows and not file.has_contents and options.needs_contents:
        raise BadFile(notes.name, "columns", "neither value nor digest is there", "Add the content or its digest.")
    file.lanes, file.held, file.spooled = collector.lanes, collector.held, collector.spooled
    file.unknown, file.has_entries = collector.unknown, collector.has_entries
    file.published_again = dict(collector.published.again)
    return file


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without Python's search for cycles: records hold none, and looking through each stretch of them is a third of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def event_at(
    path: Path,
    places: set[int],
    options: ReadOptions = DEFAULT,
    is_plain: bool = False,
    header_lines: int | None = None,
) -> dict[int, dict[str, Any]]:
    """Op, key and content of the records at these places of the file, as written: a second reading, for a report.

    `is_plain`: the first reading showed that every record is one event (EventFile.is_plain), so that others are not parsed;
    `header_lines` as EventFile has it.
    """
    wanted = Wanted(places, is_plain, header_lines)
    if places:
        for part in parts_of(path, FileNotes(path.name)):
            if not wanted.is_done:
                part_show(part, FileNotes(part.name), options, wanted)
    return wanted.found
