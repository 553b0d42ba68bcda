"""CSV and Parquet, as the same stream of records as JSON lines."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from recovery_api.domain.errors import BadFile, FencepostError
from workers.evidence.canonical import content_parse
from workers.evidence.files.jsonlines import LINE_BYTES
from workers.evidence.files.notes import FileNotes

BATCH_ROWS = 4096
_UNDECODED = re.compile("[\udc80-\udcff]")


class _Lines:
    """Physical lines of a file as text, for the csv module; remembers where it is, and the `record` begun last."""

    def __init__(self, path: Path, notes: FileNotes) -> None:
        self.number, self.offset, self.next_offset = 0, 0, 0
        self.last, self.notes = "", notes
        self.record: list[str] = []
        self._file = path.open("rb")

    def __iter__(self) -> Iterator[str]:
        with self._file:
            while line := self._file.readline(LINE_BYTES + 1):
                self.number += 1
                self.offset, self.next_offset = self.next_offset, self.next_offset + len(line)
                if len(line) > LINE_BYTES:
                    says = f"is longer than {LINE_BYTES >> 20} MiB"
                    raise BadFile(self.notes.name, f"line {self.number}, byte {self.offset}", says, "")
                if self.number == 1:
                    if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
                        raise BadFile(self.notes.name, "line 1", "is UTF-16", "Write it as UTF-8.")
                    if line.startswith(b"\xef\xbb\xbf"):
                        self.notes.mild["byte order mark"] += 1
                        line = line[3:]
                if line.endswith(b"\r\n"):
                    self.notes.mild["CRLF"] += 1
                bare = line.strip(b"\0")
                if len(bare) != len(line):
                    says = f"{len(line) - len(bare)} NUL bytes were left out; records may be missing there"
                    self.notes.blemish("NUL run", self.number, self.offset, says)
                    line = bare
                if line:
                    self.last = line.decode("utf-8", "surrogateescape")
                    self.record.append(self.last)
                    yield self.last


def csv_records(path: Path, notes: FileNotes) -> Iterator[tuple[dict[str, Any], int]]:
    """(record, line number) of each row. `value` cells are JSON. An empty cell is a null, as COPY writes it; a quoted empty
    cell of key and value_text is the empty text. A row with too few or too many cells, an open quote, and a last line without its end are not read.

    Raises: BadFile for a header that cannot serve, a `value` that is not JSON, and where nothing can be read.
    """
    lines, rows = _Lines(path, notes), 0
    limit = csv.field_size_limit(LINE_BYTES)
    try:
        reader = csv.reader(iter(lines), strict=True)
        header = _header(next(reader, None), notes)
        while True:
            first, start = lines.number + 1, lines.next_offset
            lines.record.clear()
            try:
                cells = next(reader, None)
            except csv.Error as error:
                is_end = "unexpected end" in str(error)
                until = f"to line {lines.number} " if lines.number > first else ""
                notes.blemish(
                    "unfinished tail" if is_end else "torn record", first, start, f"{until}not read ({error})"
                )
                continue
            if cells is None:
                break
            if not cells:
                notes.mild["blank line"] += 1
                continue
            if _is_torn(cells, header, lines, first, start, notes):
                continue
            rows += 1
            yield _row(dict(zip(header, cells, strict=True)), lines.record, first, notes), first
    finally:
        csv.field_size_limit(limit)
    if rows == 0 and not notes.is_whole:
        raise BadFile(notes.name, f"line {notes.blemishes[0].line}", "no record can be read", f"{notes.blemishes[0]}.")


def _header(cells: list[str] | None, notes: FileNotes) -> list[str]:
    if not cells:
        raise BadFile(notes.name, "line 1", "has no header", "The first line names the columns.")
    header = [cell.strip() for cell in cells]
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise BadFile(notes.name, "line 1", f"column {', '.join(repeated)} is repeated", "Name each column once.")
    return header


def _is_torn(cells: list[str], header: list[str], lines: _Lines, first: int, start: int, notes: FileNotes) -> bool:
    is_ended = lines.last.endswith(("\n", "\r"))
    if len(cells) != len(header):
        kind = "torn record" if is_ended else "unfinished tail"
        notes.blemish(kind, first, start, f"{len(cells)} cells instead of {len(header)}; it was not read")
    elif not is_ended and not lines.last.endswith('"'):
        says = (
            "the file ends inside a line, so its last cell may be cut; it was not read. Every line needs its line end"
        )
        notes.blemish("unfinished tail", first, start, says)
    elif any(_UNDECODED.search(cell) for cell in cells):
        notes.blemish("cut character", first, start, "not UTF-8; it was not read")
    elif any("\0" in cell for cell in cells):
        notes.blemish("NUL run", first, start, "NUL bytes inside a row; it was not read")
    else:
        return False
    return True


def _row(record: dict[str, Any], raw: list[str], line: int, notes: FileNotes) -> dict[str, Any]:
    empty = [name for name, cell in record.items() if cell == ""]
    quoted = dict(zip(record, _are_quoted("".join(raw)), strict=True)) if {"key", "value_text"} & set(empty) else {}
    for name in empty:
        if name not in ("key", "value_text") or not quoted[name]:
            record[name] = None
    if record.get("value") is not None:
        record["value"] = json_cell(record["value"], f"line {line}", notes)
    return record


def _are_quoted(raw: str) -> list[bool]:
    """Of each cell of a record that was read without complaint, whether it is quoted: the reader does not tell.

    >>> _are_quoted('1,"",,"a,""b"\\n')
    [False, True, False, True]
    """
    found, at, end = [], 0, len(raw.rstrip("\r\n"))
    while at <= end:
        is_quoted = raw[at : at + 1] == '"'
        found.append(is_quoted)
        if is_quoted:
            at += 1
            while raw[at] != '"' or raw[at + 1 : at + 2] == '"':
                at += 1 if raw[at] != '"' else 2
        comma = raw.find(",", at, end)
        at = end + 1 if comma < 0 else comma + 1
    return found


def json_cell(cell: str, where: str, notes: FileNotes) -> Any:
    """The content that a `value` cell spells. Raises: BadFile."""
    try:
        return content_parse(cell)
    except json.JSONDecodeError as error:
        says = f"value {cell[:40]!r} is not JSON"
        raise BadFile(notes.name, where, says, "Plain text belongs in a column value_text.") from error
    except FencepostError as error:
        raise BadFile(notes.name, where, str(error), "") from error


def parquet_records(path: Path, notes: FileNotes, wanted: set[str]) -> Iterator[tuple[dict[str, Any], int]]:
    """(record, row number from 1) of each row, of the columns that are wanted.

    A text `value` is JSON; numbers, booleans, lists and structs are themselves.

    Raises: BadFile for a file cut short, a repeated column, or a column type that cannot serve.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise BadFile(notes.name, "schema", f"column {', '.join(repeated)} is repeated", "Name each column once.")
        for name in set(names) & wanted:
            _refuse_type(name, file.schema_arrow.field(name).type, notes)
        number = 0
        is_text = "value" in names and _is_text(file.schema_arrow.field("value").type)
        for batch in file.iter_batches(BATCH_ROWS, columns=[name for name in names if name in wanted]):
            for record in batch.to_pylist():
                number += 1
                if record.get("value") is None:
                    pass
                elif is_text:
                    record["value"] = json_cell(record["value"], f"row {number}", notes)
                else:
                    record["value"] = _content(record["value"], number, notes)
                yield record, number
    except (pa.ArrowInvalid, OSError) as error:
        raise BadFile(notes.name, "footer", "is not a whole Parquet file", str(error).splitlines()[0]) from error


def parquet_columns(path: Path, notes: FileNotes) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names: list[str] = pq.read_schema(path).names
    except (pa.ArrowInvalid, OSError) as error:
        raise BadFile(notes.name, "footer", "is not a whole Parquet file", str(error).splitlines()[0]) from error
    return names


def _is_text(kind: Any) -> bool:
    import pyarrow.types as pt

    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _refuse_type(name: str, kind: Any, notes: FileNotes) -> None:
    import pyarrow.types as pt

    if name in ("coordinate", "head"):
        is_fit = pt.is_integer(kind) or _is_text(kind) or (pt.is_decimal(kind) and kind.scale == 0)
        remedy = "Whole numbers or text."
    elif name in ("generation", "entry"):
        is_fit, remedy = pt.is_integer(kind), "Whole numbers."
    elif name == "value":
        is_fit, remedy = not (pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_temporal(kind)), "JSON as text."
    elif name == "key":
        is_fit, remedy = _is_text(kind) or pt.is_integer(kind), "Text."
    else:
        is_fit, remedy = _is_text(kind), "Text."
    if not is_fit and not pt.is_null(kind):
        raise BadFile(notes.name, f"column {name}", f"type {kind} cannot serve", remedy)


def _content(value: Any, number: int, notes: FileNotes) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise BadFile(notes.name, f"row {number}", f"value {value} is not JSON", "")
    return Decimal(repr(value)) if isinstance(value, float) else value
