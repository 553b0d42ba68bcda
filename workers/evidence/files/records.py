"""One file's records, from its container through its shape to rows. Every line is an event, ignored by kind, or rejected.

What a fast reader gives exactly is taken from it; any doubt (workers.evidence.quick) reads the record again the exact way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recovery_api.domain.errors import BadFile
from recovery_api.domain.frontiers import SINGLE_LANE
from workers.evidence.canonical import ABSENT, UncanonicalContent, content_parse
from workers.evidence.files.collecting import Collector, refuser, row_of
from workers.evidence.files.debezium import BadRecord, NotAnEvent
from workers.evidence.files.delimited import copy_records, csv_records
from workers.evidence.files.dumps import DumpLine, dump_lines
from workers.evidence.files.emitted import Published
from workers.evidence.files.jsonarray import array_records
from workers.evidence.files.jsonlines import (
    Line,
    RecordDecoder,
    json_records,
    lines_read,
)
from workers.evidence.files.native import (
    COLUMNS,
    NEEDED,
    cells_prepare,
    columns_check,
    native_fields,
    shown_of,
    unused_note,
)
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.opening import Picked, Utf8, suffix_of, text_open
from workers.evidence.files.options import Reading, ReadOptions
from workers.evidence.files.parquet import parquet_columns, parquet_records, refuse_type
from workers.evidence.files.psql import psql_records
from workers.evidence.files.recognition import CELLS, reading_of
from workers.evidence.files.shapes import Fields, Shape, gtid_lane, shape_make
from workers.evidence.files.stretches import csv_take, lines_take, rows_take
from workers.evidence.quick import Uncertain, parse_quick

Take = Callable[[Any, int, Callable[[str], Any]], None]


def part_read(path: Path, notes: FileNotes, collector: Collector, options: ReadOptions) -> Shape:
    """Reads one file into the collector. The shape remembers the tables that its events were of.

    Raises: BadFile, BadCoordinate, BadInput.
    """
    with text_open(path, notes) as stream:
        start = stream.start()
        reading = reading_of(path, start, suffix_of(path), options)
        notes.seen_as = reading.says
        part = _Part(path, stream, start, reading, notes, options, collector)
        part.read()
    if not notes.rows and not notes.is_whole and notes.rejected:
        line = notes.blemishes[0].line
        raise BadFile(notes.name, f"{notes.unit} {line}", "no record can be read", f"{notes.blemishes[0]}.")
    return part.shape


@dataclass
class Wanted:
    """Events to show, by their place in a file or folder. `is_plain`: every record of it is known to be one event.

    `header_lines`: where moreover every record is one line of its own, how many lines lie before the first; else None.

    `at` counts the events that were passed; `found`: op, key and content as written.
    """

    places: set[int]
    is_plain: bool = False
    header_lines: int | None = None
    at: int = 0
    found: dict[int, dict[str, Any]] = field(default_factory=dict)
    published: Published = field(default_factory=Published)

    @property
    def is_here(self) -> bool:
        return self.at in self.places

    @property
    def is_done(self) -> bool:
        return len(self.found) == len(self.places)


def part_show(path: Path, notes: FileNotes, options: ReadOptions, wanted: Wanted) -> None:
    """Finds the wanted events of one file, read again; what is not wanted is only counted."""
    with text_open(path, notes) as stream:
        start = stream.start()
        reading = reading_of(path, start, suffix_of(path), options)
        for _ in _Part(path, stream, start, reading, notes, options, None, wanted).steps():
            if wanted.is_done:
                return


class _Part:
    """One file being read. Without a collector wanted events are shown, exactly."""

    def __init__(
        self,
        path: Path,
        stream: Utf8,
        start: bytes,
        reading: Reading,
        notes: FileNotes,
        options: ReadOptions,
        collector: Collector | None,
        wanted: Wanted | None = None,
    ) -> None:
        self.path, self.stream, self.start, self.reading = path, stream, start, reading
        self.notes, self.options, self.collector, self.wanted = notes, options, collector, wanted
        self.shape = shape_make(reading.shape, options)
        self._decoder = RecordDecoder()
        self._unused: set[str] = set()
        self._seen: set[int] = set()
        self._published = collector.published if collector is not None else wanted.published if wanted else Published()
        self._is_native = reading.shape == "native"

    def read(self) -> None:
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """Reads, one record or line a step."""
        match self.reading.container:
            case "jsonl":
                yield from self._json_lines()
            case "console" | "kcat":
                yield from self._messages()
            case _:
                if self.wanted is not None and self.wanted.header_lines is not None and self.reading.container == "csv":
                    yield from self._picked(self.wanted, self.wanted.header_lines)
                    return
                yield from self._cells() if self._is_quick else self._each(self._rows())
        unused_note(self._unused, self.notes)
        self._told_note()

    @property
    def _is_quick(self) -> bool:
        """Rows in the product's own columns that nobody wants to see."""
        is_own = self._is_native and self.wanted is None and not self.options.by_event_id
        return is_own and self.reading.container in (*CELLS, "jsonl")

    def _cells(self) -> Iterator[None]:
        assert self.collector is not None
        notes, collector, options = self.notes, self.collector, self.options
        if self.reading.container == "csv" and not options.columns:
            yield from csv_take(
                self.stream, notes, collector, self.reading.delimiter, options.null, self.take, self._many
            )
        else:
            yield from rows_take(self._rows(), notes, collector, self.take)

    def _many(self, rows: Iterator[tuple[dict[str, Any], int]]) -> Iterator[None]:
        assert self.collector is not None
        yield from rows_take(self._checked(rows), self.notes, self.collector, self.take)

    def _each(self, rows: Iterator[tuple[Any, int]]) -> Iterator[None]:
        for record, line in rows:
            if self.wanted is not None and self.wanted.is_plain and not self.wanted.is_here:
                self.wanted.at += 1
                continue
            self.take(record, line)
            yield

    def _told_note(self) -> None:
        notes, shape = self.notes, self.shape
        for kind, count in (
            ("key taken", shape.takes_key_from_content),
            ("untied", shape.untied),
            ("message prefix", shape.prefixes.total()),
        ):
            if count:
                notes.mild[kind] += count
        if shape.prefixes:
            notes.details["message prefix"] = ", ".join(f"{name} {count}" for name, count in shape.prefixes.items())

    def _rows(self) -> Iterator[tuple[Any, int]]:
        notes, options = self.notes, self.options
        match self.reading.container:
            case "array":
                return array_records(self.stream, notes)
            case "csv":
                rows = csv_records(self.stream, notes, self.reading.delimiter, options.null, options.columns)
            case "copy":
                rows = copy_records(self.stream, notes, options.null, options.columns)
            case "psql":
                rows = psql_records(self.stream, notes, options.null)
            case _:
                return self._parquet()
        return self._checked(rows)

    def _picked(self, wanted: Wanted, header_lines: int) -> Iterator[None]:
        """The wanted rows alone are cut into cells."""
        numbers = {*range(header_lines), *(place + header_lines for place in wanted.places)}
        picked = Picked(self.stream, numbers)
        rows = csv_records(picked, self.notes, self.reading.delimiter, self.options.null, self.options.columns)
        for place, (record, line) in zip(sorted(wanted.places), self._checked(rows), strict=False):
            wanted.at = place
            self.take(record, line)
            yield

    def _checked(self, rows: Iterator[tuple[dict[str, Any], int]]) -> Iterator[tuple[dict[str, Any], int]]:
        for number, (record, line) in enumerate(rows):
            if number == 0:
                self._columns(list(record))
            yield record, line

    def _parquet(self) -> Iterator[tuple[dict[str, Any], int]]:
        types = parquet_columns(self.path, self.notes)
        self._columns(list(types))
        wanted = None
        if self._is_native:
            wanted = set(types) & COLUMNS
            for name in wanted:
                refuse_type(name, types[name], self.notes)
        return parquet_records(self.path, self.notes, wanted, frozenset(types))

    def _columns(self, names: list[str]) -> None:
        if self._is_native and self.options.by_event_id and not set(NEEDED) <= set(names):
            self.shape, self._is_native = shape_make("columns", self.options), False
        if self._is_native:
            columns_check(names, self.notes)

    def take(self, record: Any, line: int, offset: int = -1) -> None:
        """One record, exactly read already."""
        span = self.notes.span
        try:
            try:
                self._event(record, line, parse_quick)
            except (Uncertain, RecursionError):
                self._event(record, line, _exact)
        except NotAnEvent as other:
            self.notes.ignore(other.kind, span)
        except BadRecord as error:
            self.notes.reject("not an event", line, offset, str(error), span)
        else:
            self.notes.recognised += span

    def _event(self, record: Any, line: int, parse: Callable[[str], Any]) -> None:
        refuse = refuser(self.notes, line)
        if self._is_native:
            if self.reading.container in CELLS:
                record = cells_prepare(dict(record), line, self.notes, _or_exact(parse))
            if isinstance(record, dict) and not record.keys() <= COLUMNS:
                self._unused |= record.keys() - COLUMNS
            fields = native_fields(record, refuse)
            gtid_lane(fields)
            has_content = "value" in record or "value_text" in record or record.get("digest") is not None
        else:
            fields = self.shape.fields(record, line, parse)
            has_content = fields.content is not ABSENT or fields.digest is not None
        if self.options.by_event_id:
            fields.coordinate = fields.head = None  # the sink's own, which no event has
        if self.wanted is not None:
            if self.wanted.is_here:
                if parse is parse_quick:
                    raise Uncertain  # numbers are shown as they were written
                self._refuse_known(fields)
                self.wanted.found[self.wanted.at] = shown_of(record) if self._is_native else _shown(fields)
            else:
                self._refuse_known(fields)
            self.wanted.at += 1
            return
        assert self.collector is not None
        where = f"{self.notes.name}, {self.notes.unit} {line}"
        row = row_of(fields, where, self.collector.signs, refuse, not self.options.by_event_id)
        self._refuse_known(fields)  # last: whatever raises Uncertain comes here again
        self.shape.takes_key_from_content += fields.is_key_taken
        self.shape.untied += fields.emitted is not None and fields.emitted.is_untied and not self.options.is_record
        if fields.unknown:
            self.collector.unknown[self.collector.count] = fields.unknown
        self.collector.is_content_seen |= has_content
        self.collector.is_all_deletes &= fields.op == "delete"
        self.collector.add(row)

    def _refuse_known(self, fields: Fields) -> None:
        """A row that a snapshot reads again is no second event, and neither is a message published again.

        Raises: NotAnEvent, BadRecord.
        """
        if self.options.is_record or not self.reading.shape.startswith("debezium"):
            return
        if fields.emitted is not None:
            self._published.once(
                fields.emitted, SINGLE_LANE if fields.lane is None else str(fields.lane), fields.coordinate
            )
            return
        identity = hash((fields.lane, fields.event_id if fields.event_id is not None else fields.key))
        if fields.is_read and identity in self._seen:
            raise NotAnEvent("re-read")
        self._seen.add(identity)

    def _json_lines(self) -> Iterator[None]:
        notes = self.notes
        if self._is_quick:
            assert self.collector is not None
            yield from lines_take(self.stream, notes, self.collector, self._line)
        else:
            for line in self._lines():
                if self.wanted is not None and self.wanted.is_plain and not self.wanted.is_here and line[0].strip():
                    self.wanted.at += 1
                    continue
                self._line(line)
                yield
        if self._decoder.repeats:
            notes.mild["repeated member"] += self._decoder.repeats

    def _lines(self) -> Iterator[Line]:
        """Every line; of those that are an event each, the wanted ones alone."""
        wanted = self.wanted
        if wanted is None or wanted.header_lines is None:
            yield from lines_read(self.stream, self.notes)
            return
        picked = Picked(self.stream, wanted.places)
        for place, line in zip(sorted(wanted.places), lines_read(picked, self.notes), strict=False):
            wanted.at = place
            yield line

    def _line(self, line: Line) -> None:
        try:
            self._quick_line(line)
        except (Uncertain, RecursionError):
            self._exact_line(line)

    def _exact_line(self, line: Line) -> None:
        records = list(json_records(line, self.notes, self._decoder))
        self.notes.lines += max(0, len(records) - 1)  # whole records that share a line count as a line each
        for record in records:
            self.take(record, line[1], line[2])

    def _quick_line(self, line: Line) -> None:
        body, number, offset, _ = line
        record = parse_quick(body)
        try:
            self._event(record, number, parse_quick)
        except NotAnEvent as other:
            self.notes.ignore(other.kind)
        except BadRecord as error:
            self.notes.reject("not an event", number, offset, str(error))
        else:
            self.notes.recognised += 1
        if body.endswith(b"\r"):
            self.notes.mild["CRLF"] += 1

    def _messages(self) -> Iterator[None]:
        for line in dump_lines(self.stream, self.notes, self.start, self.reading.kcat):
            try:
                self._message(line)
            except NotAnEvent as other:
                self.notes.ignore(other.kind)
            except BadRecord as error:
                self.notes.reject("not an event", line.number, line.offset, str(error))
            else:
                self.notes.recognised += 1
            yield

    def _message(self, line: DumpLine) -> None:
        try:
            message = line.message(parse_quick)
            self._event(message, line.number, parse_quick)
        except Uncertain:
            self._event(line.message(_exact), line.number, _exact)


def _exact(text: str) -> Any:
    try:
        return content_parse(text)
    except UncanonicalContent as error:
        raise BadRecord(str(error)) from error


def _or_exact(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return content_parse if parse is _exact else parse


def _shown(fields: Fields) -> dict[str, Any]:
    shown: dict[str, Any] = {"op": fields.op, "key": fields.key}
    if fields.digest is not None:
        return {**shown, "digest": fields.digest}
    return shown if fields.content is ABSENT else {**shown, "value": fields.content}
