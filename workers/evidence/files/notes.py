"""What was found in a file besides its records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

SHOWN_BLEMISHES = 20

MILD = {
    "byte order mark": "starts with a byte order mark: left out",
    "CRLF": "lines end in CRLF: taken as line ends",
    "blank line": "blank lines: passed over",
    "glued records": "whole records share a line: each was read",
    "repeated member": "contents repeat a member: the last one counts, as in jsonb",
    "column not used": "columns are not used",
    "byte order mark inside": "holds a byte order mark between records: left out",
}
"""Findings that leave the file whole."""


@dataclass(frozen=True, slots=True)
class Blemish:
    """A stretch that could not be read as a record. `offset` counts bytes from the start of the file."""

    kind: str
    line: int
    offset: int
    says: str

    def __str__(self) -> str:
        return f"line {self.line}, byte {self.offset}: {self.kind}; {self.says}"


@dataclass
class FileNotes:
    """One file: how many records were read, what was not, what was mended. `is_whole` False bounds every verdict."""

    name: str
    rows: int = 0
    blemish_count: int = 0
    blemishes: list[Blemish] = field(default_factory=list)
    mild: Counter[str] = field(default_factory=Counter)
    details: dict[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return self.blemish_count == 0

    def blemish(self, kind: str, line: int, offset: int, says: str) -> None:
        self.blemish_count += 1
        if len(self.blemishes) < SHOWN_BLEMISHES:
            self.blemishes.append(Blemish(kind, line, offset, says))

    def unread(self) -> tuple[str, ...]:
        """A sentence for each stretch that was not read; empty where the file is whole."""
        lines = [f"{self.name}, {blemish}." for blemish in self.blemishes]
        if self.blemish_count > len(lines):
            lines.append(f"{self.name}: {self.blemish_count - len(lines)} more stretches were not read.")
        if lines:
            lines.append(f"{self.name}: the verdict covers the {self.rows} records that were read, and no more.")
        return tuple(lines)

    def mended(self) -> tuple[str, ...]:
        """A sentence for each thing that was taken in stride."""
        return tuple(
            f"{self.name}: {MILD[kind]} ({self.details.get(kind, count)})." for kind, count in self.mild.items()
        )
