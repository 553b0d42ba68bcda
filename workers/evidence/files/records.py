"""One file's records, from its container through its shape to rows. Every line is an event, ignored by kind, or rejected.

What a fast reader gives exactly is taken from it; any doubt (workers.evidence.quick) reads the record again the exact way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from recovery_api.domain.errors import BadFile
from recovery_api.domain.frontiers import SINGLE_LANE
from workers.evidence.canonical import ABSENT, UncanonicalContent, content_parse
from workers.evidence.files import messages
from workers.evidence.files.collecting import Collector, digests, refuser, row_of
from workers.evidence.files.debezium import BadRecord, NotAnEvent
from workers.evidence.files.delimited import copy_records, csv_records
from workers.evidence.files.jsonarray import array_records
from workers.evidence.files.jsonlines import Line, RecordDecoder, json_records, lines_read
from workers.evidence.files.native import (
    COLUMNS,
    NEEDED,
    OPS,
    SHOWN,
    cells_prepare,
    columns_check,
    native_fields,
    shown_of,
    unused_note,
)
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.opening import Utf8, suffix_of, text_open
from workers.evidence.files.options import Reading, ReadOptions
from workers.evidence.files.parquet import parquet_columns, parquet_records, refuse_type
from workers.evidence.files.psql import psql_records
from workers.evidence.files.recognition import CELLS, console_columns, reading_of
from workers.evidence.files.shapes import Fields, Shape, shape_make
from workers.evidence.quick import Uncertain, canonical_quick, is_each_member_once, parse_quick, record_quick

__all__ = ["SHOWN", "part_read", "part_records"]

Take = Callable[[Any, int, Callable[[str], Any]], None]
_KNOWN: dict[tuple[str, ...], bool] = {}


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


def part_records(path: Path, notes: FileNotes, options: ReadOptions) -> Iterator[dict[str, Any]]:
    """Op, key and content of each event, in order, as written."""
    shown: list[dict[str, Any]] = []
    with text_open(path, notes) as stream:
        start = stream.start()
        reading = reading_of(path, start, suffix_of(path), options)
        part = _Part(path, stream, start, reading, notes, options, None, shown)
        for _ in part.steps():
            yield from shown
            shown.clear()
        yield from shown


class _Part:
    """One file being read. Without a collector its events are shown, exactly."""

    def __init__(
        self,
        path: Path,
        stream: Utf8,
        start: bytes,
        reading: Reading,
        notes: FileNotes,
        options: ReadOptions,
        collector: Collector | None,
        shown: list[dict[str, Any]] | None = None,
    ) -> None:
        self.path, self.stream, self.start, self.reading = path, stream, start, reading
        self.notes, self.options, self.collector, self.shown = notes, options, collector, shown
        self.shape = shape_make(reading.shape, options)
        self._decoder = RecordDecoder()
        self._unused: set[str] = set()
        self._seen: set[int] = set()
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
                for record, line in self._rows():
                    self.take(record, line)
                    yield
        unused_note(self._unused, self.notes)
        if self.shape.takes_key_from_content:
            self.notes.mild["key taken"] += self.shape.takes_key_from_content

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
            has_content = "value" in record or "value_text" in record or record.get("digest") is not None
        else:
            fields = self.shape.fields(record, line, parse)
            has_content = fields.content is not ABSENT or fields.digest is not None
            self._refuse_reread(fields)
        if self.shown is not None:
            self.shown.append(shown_of(record) if self._is_native else _shown(fields))
            return
        assert self.collector is not None
        row = row_of(fields, f"{self.notes.name}, {self.notes.unit} {line}", self.collector.signs, refuse)
        if fields.unknown:
            self.collector.unknown[self.collector.count] = fields.unknown
        self.collector.is_content_seen |= has_content
        self.collector.is_all_deletes &= fields.op == "delete"
        self.collector.add(row)

    def _refuse_reread(self, fields: Fields) -> None:
        """A row that a snapshot reads again is no second event. Raises: NotAnEvent."""
        if self.options.is_record or not self.reading.shape.startswith("debezium"):
            return
        identity = hash((fields.lane, fields.event_id if fields.event_id is not None else fields.key))
        if fields.is_read and identity in self._seen:
            raise NotAnEvent("re-read")
        self._seen.add(identity)

    def _json_lines(self) -> Iterator[None]:
        notes = self.notes
        quick = self._quick_native if self._is_native and self.shown is None else self._quick_shaped
        if self.shown is not None:
            quick = _never
        for line in lines_read(self.stream, notes):
            try:
                quick(line)
            except (Uncertain, RecursionError):
                self._exact_line(line)
            yield
        if self._decoder.repeats:
            notes.mild["repeated member"] += self._decoder.repeats

    def _exact_line(self, line: Line) -> None:
        records = list(json_records(line, self.notes, self._decoder))
        self.notes.lines += max(0, len(records) - 1)  # whole records that share a line count as a line each
        for record in records:
            self.take(record, line[1], line[2])

    def _quick_shaped(self, line: Line) -> None:
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

    def _quick_native(self, line: Line) -> None:
        """The product's own columns, as fast as Python goes: nothing here that the exact way would see otherwise."""
        body = line[0]
        record = record_quick(body)
        if type(record) is not dict:
            raise Uncertain
        names = tuple(record)
        is_known = _KNOWN.get(names)
        if is_known is None:
            is_known = _KNOWN[names] = set(names) <= COLUMNS and "value" in record and set(NEEDED) <= set(names)
        if not is_known:
            raise Uncertain
        op, key, coordinate = record["op"], record["key"], record["coordinate"]
        if op not in OPS or type(coordinate) is not int or (type(key) is not str and key is not None):
            raise Uncertain
        if record["value"] is None or record.get("digest") is not None or (key is not None and not key.isascii()):
            raise Uncertain
        text, members = canonical_quick(record["value"])
        if not is_each_member_once(body, len(names) + members):
            raise Uncertain
        row = _row_quick(record, op, key, coordinate, text)
        collector = self.collector
        assert collector is not None
        collector.is_content_seen = True
        collector.is_all_deletes &= op == "delete"
        collector.add(row)
        self.notes.recognised += 1
        if body.endswith(b"\r"):
            self.notes.mild["CRLF"] += 1

    def _messages(self) -> Iterator[None]:
        notes = self.notes
        pattern = None
        if self.reading.kcat is not None:
            pattern = messages.kcat_pattern(self.reading.kcat)
        has_key, has_headers = console_columns(self.start) if pattern is None else (False, False)
        for body, number, offset, _is_ended in lines_read(self.stream, notes):
            yield
            try:
                text = body.decode().removesuffix("\r")
            except UnicodeDecodeError as error:
                notes.reject("cut character", number, offset, f"not UTF-8: {error.reason}")
                continue
            if not text.strip():
                notes.ignore("blank")
            elif messages.CONSOLE_END.fullmatch(text) or text.startswith("% "):
                notes.ignore("program's own")
            else:
                self._message(text, number, offset, pattern, has_key, has_headers)

    def _message(self, text: str, number: int, offset: int, pattern: Any, has_key: bool, has_headers: bool) -> None:
        def made(parse: Callable[[str], Any]) -> Any:
            if pattern is not None:
                return messages.kcat_message(text, pattern, parse)
            return messages.console_message(text, has_key, has_headers, parse)

        try:
            try:
                message = made(parse_quick)
            except Uncertain:
                message = made(_exact)
            if message is None:
                says = "it is not laid out like the lines before it; a value of several lines is one cause. Use kcat -J"
                self.notes.reject("torn record", number, offset, says)
                return
            if message.value == "" and pattern is not None and "size" not in pattern.groupindex:
                says = "its value is empty or null, which look alike here: add %S to the format, or use kcat -J"
                self.notes.reject("not an event", number, offset, says)
                return
            try:
                self._event(message, number, parse_quick)
            except Uncertain:
                self._event(made(_exact), number, _exact)
        except NotAnEvent as other:
            self.notes.ignore(other.kind)
        except BadRecord as error:
            self.notes.reject("not an event", number, offset, str(error))
        else:
            self.notes.recognised += 1


def _row_quick(record: dict[str, Any], op: str, key: str | None, coordinate: int, text: str) -> dict[str, Any]:
    payload, content = digests(op, key, text)
    row = {
        "coordinate": coordinate,
        "lane": SINGLE_LANE,
        "op": op,
        "key": key,
        "payload_digest": payload,
        "content_digest": content,
        "is_read": False,
    }
    if len(record) > 4:
        for name in ("head", "lane", "event_id", "generation", "entry"):
            value = record.get(name)
            if value is None:
                continue
            if name in ("generation", "entry", "head") and (type(value) is not int or abs(value) >= 2**63):
                raise Uncertain
            if name in ("lane", "event_id") and (type(value) is not str or not value.isascii()):
                raise Uncertain
            row[name] = str(value) if name == "head" else value
    return row


def _exact(text: str) -> Any:
    try:
        return content_parse(text)
    except UncanonicalContent as error:
        raise BadRecord(str(error)) from error


def _or_exact(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return content_parse if parse is _exact else parse


def _never(line: Line) -> None:
    raise Uncertain


def _shown(fields: Fields) -> dict[str, Any]:
    shown: dict[str, Any] = {"op": fields.op, "key": fields.key}
    if fields.digest is not None:
        return {**shown, "digest": fields.digest}
    return shown if fields.content is ABSENT else {**shown, "value": fields.content}
