"""CSV in its dialects, and PostgreSQL's COPY text: rows of cells, each with the lines it lies in.

The law: a null is one null, however a tool writes it: an empty cell (in quotes it is the empty text), `\\N`, `NULL`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from recovery_api.domain.errors import BadFile
from workers.evidence.files.jsonlines import LINE_BYTES, Stream, lines_read
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.opening import Utf8

DELIMITERS = (",", ";", "\t", "|")
NULLS = frozenset({"", "NULL", "\\N"})
"""Cells that may stand for null, where nobody said what does."""

_UNDECODED = re.compile("[\udc80-\udcff]")
_FOOTER = re.compile(r"\(\d+ rows?\)", re.ASCII)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPED = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Begun:
    """How far a file was read before, in another way: lines, bytes, and rows."""

    number: int = 0
    offset: int = 0
    rows: int = 0

    def after(self, bodies: Sequence[bytes], rows: int) -> Begun:
        """With these whole lines too."""
        return Begun(self.number + len(bodies), self.offset + sum(map(len, bodies)) + len(bodies), self.rows + rows)


BEGINNING = Begun()


class _Lines:
    """Physical lines of a file as text, for the csv module; remembers where it is, and the `record` begun last."""

    def __init__(self, stream: Stream, notes: FileNotes, begun: Begun) -> None:
        self.number, self.offset, self.next_offset = begun.number, begun.offset, begun.offset
        self.last, self.notes = "", notes
        self.record: list[str] = []
        self._stream = stream

    def __iter__(self) -> Iterator[str]:
        for line, number, offset, is_ended in lines_read(self._stream, self.notes, self.number, self.offset):
            self.number, self.offset, self.next_offset = number, offset, offset + len(line) + is_ended
            if number == 1 and line.startswith(b"\xef\xbb\xbf"):
                self.notes.mild["byte order mark"] += 1
                line = line[3:]
            if line.endswith(b"\r"):
                self.notes.mild["CRLF"] += 1
            if line[:1] == b"\0" or line[-1:] == b"\0":
                bare = line.strip(b"\0")
                says = f"{len(line) - len(bare)} NUL bytes were left out; records may be missing there"
                if not bare.strip():
                    self.notes.reject("NUL run", number, offset, says)
                    continue
                self.notes.blemish("NUL run", number, offset, says)
                line = bare
            self.last = text = line.decode("utf-8", "surrogateescape") + ("\n" if is_ended else "")
            self.record.append(text)
            yield text


Null = Callable[[str, bool], bool]


def null_make(given: str | None, notes: FileNotes) -> Null:
    """Whether a cell that is quoted, or not, stands for null."""
    if given is not None:
        return lambda cell, is_quoted: cell == given and not is_quoted

    def is_null(cell: str, is_quoted: bool) -> bool:
        if cell == "\\N":
            notes.mild["\\N cells"] += 1
        elif cell == "NULL" and not is_quoted:
            notes.mild["NULL cells"] += 1
        else:
            return cell == "" and not is_quoted
        return True

    return is_null


def csv_records(
    stream: Stream,
    notes: FileNotes,
    delimiter: str,
    null: str | None = None,
    columns: tuple[str, ...] = (),
    begun: Begun = BEGINNING,
) -> Iterator[tuple[dict[str, Any], int]]:
    """(record, line number) of each row: texts, and None where a cell is null. A row with too few or too many cells, an
    open quote, and a last line without its end are not read. `begun`: what of the file was read before.

    Raises: BadFile for a header that cannot serve, and where nothing can be read.
    """
    lines, rows, is_null = _Lines(stream, notes, begun), begun.rows, null_make(null, notes)
    limit = csv.field_size_limit(LINE_BYTES)
    maybe_null = NULLS if null is None else {null}
    try:
        reader = csv.reader(iter(lines), strict=True, delimiter=delimiter)
        try:
            header = list(columns) or _header(next(reader, None), notes)
        except csv.Error as error:
            raise BadFile(notes.name, "line 1", f"the header cannot be read ({error})", "") from error
        if not columns:
            notes.ignore("header", lines.number)
        width = len(header)
        while True:
            before, start = lines.number, lines.next_offset
            lines.record.clear()
            try:
                cells = next(reader, None)
            except csv.Error as error:
                is_end = "unexpected end" in str(error)
                until = f"to line {lines.number} " if lines.number > before + 1 else ""
                kind = "unfinished tail" if is_end else "torn record"
                notes.reject(kind, before + 1, start, f"{until}not read ({error})", len(lines.record))
                continue
            if cells is None:
                break
            first, taken = lines.number - len(lines.record) + 1, len(lines.record)
            if not cells or (len(cells) == 1 and width > 1 and not cells[0].strip()):
                notes.ignore("blank", taken)
                continue
            if len(cells) == 1 and width > 1 and _FOOTER.fullmatch(cells[0].strip()):
                notes.ignore("frame", taken)
                continue
            if _is_torn(cells, width, lines, first, start, notes):
                continue
            rows += 1
            if not maybe_null.isdisjoint(cells):
                cells = nulls_taken(cells, "".join(lines.record), delimiter, is_null)
            notes.span = taken
            yield dict(zip(header, cells, strict=True)), first
    finally:
        csv.field_size_limit(limit)
    if rows == 0 and not notes.is_whole:
        raise BadFile(notes.name, f"line {notes.blemishes[0].line}", "no record can be read", f"{notes.blemishes[0]}.")


def _header(cells: list[str] | None, notes: FileNotes) -> list[str]:
    if not cells:
        raise BadFile(notes.name, "line 1", "has no header", "The first line names the columns, or say --columns.")
    header = [cell.strip() for cell in cells]
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise BadFile(notes.name, "line 1", f"column {', '.join(repeated)} is repeated", "Name each column once.")
    return header


def _is_torn(cells: list[str], width: int, lines: _Lines, first: int, start: int, notes: FileNotes) -> bool:
    last, taken = lines.last, len(lines.record)
    is_ended = last.endswith(("\n", "\r"))
    text = last if taken == 1 else "".join(lines.record)
    if len(cells) != width:
        kind = "torn record" if is_ended else "unfinished tail"
        notes.reject(kind, first, start, f"{len(cells)} cells instead of {width}; it was not read", taken)
    elif not is_ended and not last.endswith('"'):
        says = (
            "the file ends inside a line, so its last cell may be cut; it was not read. Every line needs its line end"
        )
        notes.reject("unfinished tail", first, start, says, taken)
    elif not text.isascii() and _UNDECODED.search(text):
        notes.reject("cut character", first, start, "not UTF-8; it was not read", taken)
    elif "\0" in text:
        notes.reject("NUL run", first, start, "NUL bytes inside a row; it was not read", taken)
    else:
        return False
    return True


def nulls_taken(cells: list[Any], raw: str, delimiter: str, is_null: Null) -> list[Any]:
    """The cells of a row, None where one is null. `raw`: the row as it was written."""
    quoted = are_quoted(raw, delimiter) if '"' in raw else [False] * len(cells)
    return [None if is_null(cell, is_quoted) else cell for cell, is_quoted in zip(cells, quoted, strict=True)]


def are_quoted(raw: str, delimiter: str = ",") -> list[bool]:
    """Of each cell of a record that was read without complaint, whether it is quoted: the reader does not tell.

    >>> are_quoted('1,"",,"a,""b"\\n')
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
        comma = raw.find(delimiter, at, end)
        at = end + 1 if comma < 0 else comma + 1
    return found


def copy_records(
    stream: Utf8, notes: FileNotes, null: str | None, columns: tuple[str, ...]
) -> Iterator[tuple[dict[str, Any], int]]:
    """(record, line number) of COPY's text format, and of `mysql --batch`: tabs between, a backslash before what is
    special, `\\N` for null; `\\.` ends it. Raises: BadFile.
    """
    is_null = null_make(null, notes)
    header, rows = list(columns), 0
    for line, number, offset, is_ended in lines_read(stream, notes):
        line = line.removesuffix(b"\r")
        if not line.strip():
            notes.ignore("blank")
            continue
        if line == b"\\.":
            notes.ignore("frame")
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError:
            notes.reject("cut character", number, offset, "not UTF-8; it was not read")
            continue
        cells = text.split("\t")
        if not header:
            header = _header(cells, notes)
            notes.ignore("header")
            continue
        if len(cells) != len(header) or not is_ended:
            kind = "torn record" if is_ended else "unfinished tail"
            notes.reject(kind, number, offset, f"{len(cells)} cells instead of {len(header)}; it was not read")
            continue
        rows += 1
        yield (
            {
                name: None if is_null(cell, cell == "") else unescaped(cell)
                for name, cell in zip(header, cells, strict=True)
            },
            number,
        )
    if rows == 0 and not notes.is_whole:
        raise BadFile(notes.name, f"line {notes.blemishes[0].line}", "no record can be read", f"{notes.blemishes[0]}.")


def unescaped(cell: str) -> str:
    r"""A cell of COPY's text format without its backslashes.

    >>> unescaped(r'a\tb\\n\101')
    'a\tb\\nA'
    """
    if "\\" not in cell:
        return cell

    def one(match: re.Match[str]) -> str:
        escape = match[1]
        if escape[0] == "x" and len(escape) > 1:
            return chr(int(escape[1:], 16))
        if escape[0] in "01234567":
            return chr(int(escape, 8) & 0xFF)
        return _ESCAPES.get(escape, escape)

    return _ESCAPED.sub(one, cell)
