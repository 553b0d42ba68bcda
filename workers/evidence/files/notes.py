"""What was found in a file besides its events. The law: recognised + ignored by kind + rejected = lines read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

SHOWN_BLEMISHES = 20

MILD = {
    "byte order mark": "starts with a byte order mark: left out",
    "CRLF": "lines end in CRLF: taken as line ends",
    "glued records": "whole records share a line: each was read",
    "repeated member": "contents repeat a member: the last one counts, as in jsonb",
    "column not used": "columns are not used",
    "byte order mark inside": "holds a byte order mark between records: left out",
    "UTF-16": "is UTF-16: read as such",
    "gzip": "is compressed with gzip: byte positions are those of what it holds",
    "zstd": "is compressed with zstd: byte positions are those of what it holds",
    "NULL cells": "cells that say NULL are taken as null (--null says what stands for null)",
    "\\N cells": "cells that say \\N are taken as null",
    "padded cells": "psql pads its cells: blanks at the end of a text cannot be seen, and an empty text is taken as null",
    "type unknown": "texts that look like bytes in base64 and have no schema are taken as texts (--type says what they are)",
    "key taken": "keys are taken from the content, as no message key is there",
    "message prefix": "logical decoding messages are no events here, by prefix (--prefix says which are)",
    "untied": "messages that no transaction wrote are taken as committed events, as told",
}
"""Findings that leave the file whole."""

IGNORED = {
    "blank": ("blank line", "blank lines"),
    "header": ("header", "headers"),
    "frame": ("line of the table's frame", "lines of the table's frame"),
    "tombstone": ("tombstone", "tombstones"),
    "empty value": ("value of no length", "values of no length"),
    "schema change": ("schema change", "schema changes"),
    "transaction": ("transaction marker", "transaction markers"),
    "heartbeat": ("heartbeat", "heartbeats"),
    "truncate": ("truncate", "truncates"),
    "message": ("logical decoding message", "logical decoding messages"),
    "housekeeping": ("update or delete of an outbox row", "updates or deletes of outbox rows"),
    "re-read": ("row that a snapshot read again", "rows that a snapshot read again"),
    "other prefix": ("message of another prefix", "messages of other prefixes"),
    "replay": ("message published again", "messages published again"),
    "other table": ("event of another table", "events of other tables"),
    "program's own": ("line of the program that wrote it", "lines of the program that wrote it"),
}
"""Lines that hold no event, by kind: one, many."""


@dataclass(frozen=True, slots=True)
class Blemish:
    """A stretch that could not be read as a record. `offset` counts bytes from the start of the file."""

    kind: str
    line: int
    offset: int
    says: str

    def __str__(self) -> str:
        where = f"line {self.line}, byte {self.offset}" if self.offset >= 0 else f"line {self.line}"
        return f"{where}: {self.kind}; {self.says}" if self.line else f"{self.kind}; {self.says}"


@dataclass
class FileNotes:
    """One file: what was read, ignored, rejected, mended. `is_whole` False bounds every verdict.

    `rows` are events. `lines` is what `unit` counts: physical lines, rows of Parquet, elements of an array.
    `recognised`: how many of them held an event; several events may share a line, and one event may span several: `span` of the record
    that was read last.
    """

    name: str
    rows: int = 0
    unit: str = "line"
    lines: int = 0
    recognised: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    rejected_lines: list[int] = field(default_factory=list)
    blemish_count: int = 0
    blemishes: list[Blemish] = field(default_factory=list)
    mild: Counter[str] = field(default_factory=Counter)
    details: dict[str, str] = field(default_factory=dict)
    seen_as: str = ""
    span: int = 1

    @property
    def is_whole(self) -> bool:
        return self.blemish_count == 0

    def blemish(self, kind: str, line: int, offset: int, says: str) -> None:
        """A stretch that may have held records."""
        self.blemish_count += 1
        if len(self.blemishes) < SHOWN_BLEMISHES:
            self.blemishes.append(Blemish(kind, line, offset, says))

    def reject(self, kind: str, line: int, offset: int, says: str, lines: int = 1) -> None:
        """A line (or `lines` of them) that is neither an event nor of a kind that holds none."""
        self.rejected += lines
        if len(self.rejected_lines) < SHOWN_BLEMISHES:
            self.rejected_lines.append(line)
        self.blemish(kind, line, offset, says)

    def ignore(self, kind: str, lines: int = 1) -> None:
        assert kind in IGNORED, kind
        self.ignored[kind] += lines

    def is_balanced(self) -> bool:
        return self.recognised + self.ignored.total() + self.rejected == self.lines

    def unread(self) -> tuple[str, ...]:
        """A sentence for each stretch that was not read; empty where the file is whole."""
        lines = [f"{self.name}, {blemish}." for blemish in self.blemishes]
        if self.blemish_count > len(lines):
            lines.append(f"{self.name}: {self.blemish_count - len(lines)} more stretches were not read.")
        if not self.is_balanced():
            lines.append(f"{self.name}: {self.account()} These do not add up, so something was passed over.")
        if lines:
            lines.append(f"{self.name}: the verdict covers the {self.rows} records that were read, and no more.")
        return tuple(lines)

    def mended(self) -> tuple[str, ...]:
        """A sentence for each thing that was taken in stride."""
        return tuple(
            f"{self.name}: {MILD[kind]} ({self.details.get(kind, count)})." for kind, count in self.mild.items()
        )

    def account(self) -> str:
        """Where every line went.

        >>> notes = FileNotes("a.jsonl", rows=2, lines=3, recognised=2)
        >>> notes.ignore("tombstone")
        >>> notes.account()
        '3 lines: 2 with events, 1 ignored (1 tombstone), 0 rejected.'
        """
        kinds = ", ".join(f"{count:,} {IGNORED[kind][count != 1]}" for kind, count in self.ignored.items())
        more = ", ..." if self.rejected > len(self.rejected_lines) else ""
        where = f" (line {', '.join(map(str, self.rejected_lines))}{more})" if self.rejected_lines else ""
        events = "" if self.rows == self.recognised else f" ({self.rows:,} events)"
        return (
            f"{self.lines:,} {self.unit}{'' if self.lines == 1 else 's'}: {self.recognised:,} with events{events}, "
            f"{self.ignored.total():,} ignored{f' ({kinds})' if kinds else ''}, {self.rejected:,} rejected{where}."
        )

    def as_row(self) -> dict[str, object]:
        return {
            "read_as": self.seen_as,
            f"{self.unit}s": self.lines,
            "recognised": self.recognised,
            "events": self.rows,
            "ignored": dict(self.ignored),
            "rejected": self.rejected,
            "rejected_lines": self.rejected_lines,
        }


def notes_of(parts: Iterable[FileNotes], name: str) -> FileNotes:
    """The notes of a file of several parts, each stretch named with its part."""
    whole = FileNotes(name)
    for part in parts:
        for counter in ("rows", "lines", "recognised", "rejected", "blemish_count"):
            setattr(whole, counter, getattr(whole, counter) + getattr(part, counter))
        whole.unit, whole.seen_as = part.unit, whole.seen_as or part.seen_as
        whole.ignored += part.ignored
        whole.mild += part.mild
        whole.details |= part.details
        whole.rejected_lines += part.rejected_lines
        for one in part.blemishes[: SHOWN_BLEMISHES - len(whole.blemishes)]:
            whole.blemishes.append(Blemish(f"{part.name}: {one.kind}", one.line, one.offset, one.says))
    return whole
