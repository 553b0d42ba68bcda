"""A file in the product's own columns, read a stretch of lines or rows at once, and line by line where that is not certain.

The law: a line that the stretch cannot vouch for is read as if there were no stretches; only the time differs.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from workers.evidence.files.collecting import Collector
from workers.evidence.files.delimited import NULLS, Begun, csv_records, null_make, nulls_taken
from workers.evidence.files.jsonlines import BOM, LINE_BYTES, Line, broken_note, too_long
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.opening import Resumed, Utf8
from workers.evidence.files.quick_rows import BARE, Columns, cells_columns, lines_columns
from workers.evidence.quick import Uncertain

ROWS = 1024
"""Rows of cells that are looked at together."""

FEW = 64
"""A stretch that is not certain is cut into pieces of this many; those that are not certain either are read one by one."""

Record = dict[str, Any]
Take = Callable[[Record, int], None]
T = TypeVar("T")


def lines_take(stream: Utf8, notes: FileNotes, collector: Collector, take: Callable[[Line], None]) -> Iterator[None]:
    """JSON lines into the collector, a stretch a step. `take`: reads one line by itself."""
    number = offset = 0
    for bodies, is_ended in stream.chunks(LINE_BYTES):
        for piece, columns in pieces(bodies, lines_columns):
            if columns is not None:
                collector.stretch(columns, len(piece))
                _lines_note(piece, len(piece), notes)
                offset += sum(map(len, piece)) + is_ended * len(piece)
            else:
                for at, body in enumerate(piece, 1):
                    if len(body) > LINE_BYTES:
                        raise too_long(notes, number + at, offset)
                    notes.lines += 1
                    take((body, number + at, offset, is_ended))
                    offset += len(body) + is_ended
            number += len(piece)
        yield
    broken_note(stream, notes, number, offset)


def pieces(items: Sequence[T], vouch: Callable[[Sequence[T]], Columns]) -> list[tuple[Sequence[T], Columns | None]]:
    """The items in order, in as few pieces as it can vouch for, each with its columns; None: read them one by one."""
    try:
        return [(items, vouch(items))]
    except (Uncertain, RecursionError):
        if len(items) <= FEW:
            return [(items, None)]
    return [piece for start in range(0, len(items), FEW) for piece in pieces(items[start : start + FEW], vouch)]


def rows_take(rows: Iterable[tuple[Record, int]], notes: FileNotes, collector: Collector, take: Take) -> Iterator[None]:
    """Rows of cells into the collector, a stretch a step. `take`: reads one row by itself."""
    held: list[_Row] = []
    for record, line in rows:
        held.append(_Row(list(record.values()), line, notes.span))
        if len(held) == ROWS:
            _rows_take(held, list(record), notes, collector, take)
            held.clear()
            yield
    if held:
        _rows_take(held, list(record), notes, collector, take)
    yield


class _Row(NamedTuple):
    """Cells, the number of its first line, and how many lines it spans."""

    cells: list[Any]
    line: int
    span: int


def _rows_take(rows: Sequence[_Row], header: list[str], notes: FileNotes, collector: Collector, take: Take) -> None:
    is_bare = BARE.issuperset(header) and len(header) == len(BARE)

    def vouch(piece: Sequence[_Row]) -> Columns:
        columns = zip(*(row.cells for row in piece), strict=True)
        return cells_columns(dict(zip(header, columns, strict=True)))

    for piece, columns in pieces(rows, vouch) if is_bare else [(rows, None)]:
        if columns is not None:
            collector.stretch(columns, len(piece))
            notes.recognised += sum(row.span for row in piece)
        else:
            for row in piece:
                notes.span = row.span
                take(dict(zip(header, row.cells, strict=True)), row.line)


def csv_take(
    stream: Utf8,
    notes: FileNotes,
    collector: Collector,
    delimiter: str,
    null: str | None,
    take: Take,
    rest_take: Callable[[Iterator[tuple[Record, int]]], Iterator[None]],
) -> Iterator[None]:
    """CSV of the columns that every event needs, a row a line, into the collector, a stretch a step.

    From the first stretch on in which a row is not a line, or is torn, `rest_take` reads the rest.
    """
    header: list[str] = []
    begun, is_null = Begun(), null_make(null, notes)
    nulls = NULLS if null is None else frozenset({null})
    chunks = stream.chunks(LINE_BYTES)
    for bodies, is_ended in chunks:
        try:
            lines, rows = _rows(bodies, is_ended, delimiter)
            is_first = not header
            if is_first:
                header, lines, rows = [cell.strip() for cell in rows[0]], lines[1:], rows[1:]
            if set(map(len, rows)) - {len(BARE)} or sorted(header) != sorted(BARE):
                raise Uncertain
        except Uncertain:
            rest = Resumed((bodies, is_ended), chunks, stream)
            known = tuple(header) if begun.number else ()
            yield from rest_take(csv_records(rest, notes, delimiter, null, known, begun))
            return
        if is_first:
            notes.ignore("header")
        held = [_Row(cells, line, 1) for line, cells in enumerate(rows, begun.number + 1 + is_first)]
        if not nulls.isdisjoint(chain.from_iterable(rows)):
            held = [
                row
                if nulls.isdisjoint(row.cells)
                else row._replace(cells=nulls_taken(row.cells, text, delimiter, is_null))
                for row, text in zip(held, lines, strict=True)
            ]
        if held:
            _rows_take(held, header, notes, collector, take)
        _lines_note(bodies, 0, notes)
        begun = begun.after(bodies, len(rows))
        yield
    if not begun.number:  # nothing is there, not even a header
        yield from rest_take(csv_records(stream, notes, delimiter, null))
        return
    broken_note(stream, notes, begun.number, begun.offset)


def _lines_note(bodies: Sequence[bytes], events: int, notes: FileNotes) -> None:
    notes.lines += len(bodies)
    notes.recognised += events
    if returns := (b"\n".join(bodies) + b"\n").count(b"\r\n"):
        notes.mild["CRLF"] += returns


def _rows(bodies: list[bytes], is_ended: bool, delimiter: str) -> tuple[list[str], list[list[str]]]:
    """Lines, and a row of each. Raises: Uncertain where a row may be of several lines, or a line is not one."""
    whole = b"\n".join(bodies)
    if not is_ended or b"\0" in whole or whole.startswith(BOM):
        raise Uncertain
    try:
        lines = whole.decode().split("\n")
        rows = list(csv.reader(lines, strict=True, delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error) as error:
        raise Uncertain from error
    if len(rows) != len(lines):
        raise Uncertain
    return lines, rows
