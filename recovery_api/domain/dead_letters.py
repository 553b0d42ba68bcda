"""A dead-letter export, read: CSV with a header line, or JSON lines. Which columns count is found by their names.

The law: every line is accounted for. Recognised, ignored and rejected lines, with their numbers, add up to what was read.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_parse
from recovery_api.domain.errors import BadCoordinate, BadInput
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.spreadsheets import cell_read

COORDINATE_NAMES = ("coordinate", "position", "id")
"""The first of these that is there names the event, in the source's spelling."""
ID_NAMES = ("eventid", "messageid")
LANE_NAMES = ("lane",)
KEY_NAMES, CONTENT_NAMES, OP_NAMES = ("key",), ("content", "value", "payload"), ("op",)
"""Of a line that has neither: an event may be found by its key and content together."""
KNOWN = (*COORDINATE_NAMES, *ID_NAMES, *LANE_NAMES, *KEY_NAMES, *CONTENT_NAMES, *OP_NAMES)
OURS = {"evidenceclass", "payloaddigest"}
"""Columns by which a file is known that a plan's page gave: its cells were written for a spreadsheet."""
OPS = ("insert", "update", "delete")
LINES_AT_MOST = 1_000_000
NUMBERS_SHOWN = 100
FIELD = "content"


class Written(str):
    """A JSON number as the export has it: nothing rounds it on the way."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Payload:
    """Key and content of a line that names no event otherwise. `key` None: null. `content`: JSON text, of CSV a JSON string.
    `op`: "" where the line says none."""

    key: str | None
    content: str
    op: str = ""
    is_cell: bool = False
    """Of CSV, where an empty cell may be null."""

    def as_text(self) -> str:
        """What `payload_of` reads again."""
        return json.dumps([self.key, self.content, self.op, self.is_cell])

    @property
    def readings(self) -> Iterator[tuple[str, str | None, str | None]]:
        """Operation, key and content (JSON text; None: none at all) that the line may mean. A text may be a content itself, or
        JSON that an exporter wrote as a text.

        >>> list(Payload("k", '"{}"', "insert").readings)
        [('insert', 'k', '"{}"'), ('insert', 'k', '{}')]
        """
        contents: list[str | None] = [self.content]
        value = json.loads(self.content)
        if value is None or value == "":
            contents += [None] if value is None or self.is_cell else []
            contents += ["null"] if self.is_cell else []
        elif isinstance(value, str) and _is_json(value):
            contents.append(value)
        keys = [None, ""] if self.is_cell and not self.key else [self.key]
        yield from product((self.op,) if self.op else OPS, keys, contents)


def payload_of(text: str) -> Payload:
    """What `Payload.as_text` wrote."""
    return Payload(*json.loads(text))


@dataclass(frozen=True, slots=True)
class Named:
    """One event that a line names: by coordinate, or (None) by its event id, or ("") by what it holds."""

    line: int
    lane: str
    coordinate: Coordinate | None
    event_id: str
    payload: Payload | None = None


@dataclass(slots=True)
class Export:
    """What was read. `ignored`: empty lines and those that name an event again. `rejected`: (line, why)."""

    named: list[Named] = field(default_factory=list)
    ignored: list[int] = field(default_factory=list)
    repeated_count: int = 0
    rejected: list[tuple[int, str]] = field(default_factory=list)
    unknown_columns: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    lines_read: int = 0

    def as_row(self) -> dict[str, Any]:
        """The counts, and the first line numbers of what was left out."""
        return {
            "lines_read": str(self.lines_read),
            "recognised": str(len(self.named)),
            "ignored": str(len(self.ignored)),
            "repeated": str(self.repeated_count),
            "rejected": str(len(self.rejected)),
            "ignored_lines": [str(number) for number in self.ignored[:NUMBERS_SHOWN]],
            "rejected_lines": [{"line": str(line), "says": says} for line, says in self.rejected[:NUMBERS_SHOWN]],
            "columns": self.columns,
            "unknown_columns": self.unknown_columns,
        }


def export_read(text: str, spelling: Spelling) -> Export:
    """The events that `text` names. JSON lines where its first character is a brace, else CSV with a header line.

    >>> found = export_read("id,why\\n7,x\\n7,y\\n\\neight,z\\n", Spelling.BIGINT)
    >>> [one.coordinate.position for one in found.named], found.ignored, found.unknown_columns
    ([7], [3, 4], ['why'])
    >>> found.lines_read, found.rejected[0][0]
    (4, 5)

    Raises: BadInput where no column names an event, or there are too many lines.
    """
    text = text.removeprefix("\ufeff")
    found, is_csv = Export(), text.lstrip()[:1] != "{"
    rows: Iterator[tuple[int, Mapping[str, Any] | None]] = _csv_rows(text, found) if is_csv else _json_rows(text, found)
    seen: set[tuple[str, Any]] = set()
    for line, row in rows:
        if found.lines_read > LINES_AT_MOST:
            raise BadInput(FIELD, f"has more than {LINES_AT_MOST:,} lines", "Split it, and import one part at a time.")
        if row is None:
            found.ignored.append(line)
            continue
        try:
            named = _named(line, row, spelling, is_csv=is_csv)
        except (BadInput, BadCoordinate) as error:
            found.rejected.append((line, str(error)))
            continue
        what = (named.lane, named.coordinate or named.payload or named.event_id)
        if what in seen:
            found.ignored.append(line)
            found.repeated_count += 1
            continue
        seen.add(what)
        found.named.append(named)
    return found


def _csv_rows(text: str, found: Export) -> Iterator[tuple[int, Mapping[str, str] | None]]:
    """Each row after the header, numbered by the line it begins at; None: an empty line. The header is no row."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if header is None:
                if cells:
                    header = _columns(cells, found)
                continue
            found.lines_read += 1
            if not any(cell.strip() for cell in cells):
                yield line, None
            elif len(cells) != len(header):
                found.rejected.append((line, f"It has {len(cells)} cells, and the header has {len(header)}."))
            else:
                held = map(cell_read, cells) if set(header) >= OURS else cells
                yield line, dict(zip(header, held, strict=True))
    except csv.Error as error:
        raise BadInput(FIELD, f"cannot be read as CSV after line {before}: {error}", "Mend that line.") from error
    if header is None:
        raise BadInput(FIELD, "is empty", "Give a CSV file with a header line, or JSON lines.")


def _columns(cells: Iterable[str], found: Export) -> list[str]:
    header = [_plain(cell) for cell in cells]
    _unknown_add(found, [cell for cell, name in zip(cells, header, strict=True) if name not in KNOWN])
    twice = sorted({name for name in header if name in KNOWN and header.count(name) > 1})
    if twice:
        raise BadInput(FIELD, f"has the column {twice[0]!r} twice", "Rename or drop one of them.")
    _known_check(header, found)
    return header


def _json_rows(text: str, found: Export) -> Iterator[tuple[int, Mapping[str, Any] | None]]:
    names: set[str] = set()
    for line, words in enumerate(text.split("\n"), start=1):
        if line > 1 and not words and line == text.count("\n") + 1:
            break  # what follows the last line's end
        found.lines_read += 1
        if not words.strip():
            yield line, None
            continue
        try:
            row = json.loads(words, parse_int=Written, parse_float=Written, parse_constant=_constant_refuse)
        except (ValueError, RecursionError):
            found.rejected.append((line, "It is not JSON."))
            continue
        if not isinstance(row, dict):
            found.rejected.append((line, "It is not a JSON object."))
            continue
        _unknown_add(found, [name for name in row if _plain(name) not in KNOWN])
        names |= {_plain(name) for name in row}
        cells = {_plain(name): value for name, value in row.items() if _plain(name) in KNOWN}
        if not all(
            value is None or isinstance(value, str) for name, value in cells.items() if name not in CONTENT_NAMES
        ):
            found.rejected.append(
                (line, "A coordinate, an id, a key, an operation or a lane is neither a text nor a number.")
            )
            continue
        if (content := _first(cells, CONTENT_NAMES)) in cells:
            try:
                cells[content] = _json_text(cells[content])
            except RecursionError:
                found.rejected.append((line, "Its content is nested too deep to be read."))
                continue
        yield line, cells
    _known_check(sorted(names), found)


def _known_check(header: list[str], found: Export) -> None:
    """Raises: BadInput where no column names an event: then every line would be rejected for the same reason."""
    found.columns = [name for name in KNOWN if name in header]
    is_by_content = "key" in header and any(name in header for name in CONTENT_NAMES)
    if not is_by_content and not any(name in header for name in (*COORDINATE_NAMES, *ID_NAMES)):
        listed = ", ".join(found.unknown_columns[:10]) or "none"
        raise BadInput(
            FIELD,
            f"has no column that names an event (columns: {listed})",
            f"Name one of them {', '.join(COORDINATE_NAMES)} or event_id; or two of them key and content.",
        )


def _named(line: int, row: Mapping[str, Any], spelling: Spelling, *, is_csv: bool) -> Named:
    """Raises: BadCoordinate, BadInput."""
    said = {name: (row.get(name) or "").strip() for name in (*COORDINATE_NAMES, *ID_NAMES, *LANE_NAMES, *OP_NAMES)}
    lane = next((said[name] for name in LANE_NAMES if said[name]), SINGLE_LANE)
    event_id = next((said[name] for name in ID_NAMES if said[name]), "")
    if not all(map(_is_storable, (lane, event_id))):
        raise BadInput("the line", "holds a NUL or half a surrogate pair", "No event id and no lane has one.")
    for name in COORDINATE_NAMES:
        if said[name]:
            return Named(line, lane, coordinate_parse(said[name], spelling, name), event_id)
    if event_id:
        return Named(line, lane, None, event_id)
    content = _first(row, CONTENT_NAMES)
    if "key" not in row or content not in row or (is_csv and not row["key"] and not row[content]):
        raise BadInput(
            "the line", "names no event", "It has neither a coordinate nor an event id, nor key and content."
        )
    if said["op"] not in ("", *OPS):
        raise BadInput(
            "the line", f"has the operation {said['op'][:40]!r}", f"Write {', '.join(OPS)}, or leave it out."
        )
    held = json.dumps(row[content]) if is_csv else row[content]
    return Named(line, lane, None, "", Payload(row["key"], held, said["op"], is_csv))


def _first(row: Mapping[str, Any], names: Iterable[str]) -> str:
    """The first of these names that the row has; "": none."""
    return next((name for name in names if name in row), "")


def _json_text(value: Any) -> str:
    """JSON text of what was read, each number as the export has it."""
    if isinstance(value, Written):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_json_text(item)}" for name, item in value.items()) + "}"
    return "[" + ", ".join(map(_json_text, value)) + "]" if isinstance(value, list) else json.dumps(value)


def _constant_refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _unknown_add(found: Export, names: Iterable[str]) -> None:
    for name in names:
        if name not in found.unknown_columns and len(found.unknown_columns) < NUMBERS_SHOWN:
            found.unknown_columns.append(name)


def _plain(name: str) -> str:
    """A column's name without case, spaces and joints.

    >>> _plain(" Event_ID"), _plain("message-id")
    ('eventid', 'messageid')
    """
    return "".join(letter for letter in name.casefold() if letter.isalnum())
