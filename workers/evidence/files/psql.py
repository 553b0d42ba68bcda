"""psql's table as it stands on a screen. It pads its cells and shows null as nothing, which is said; a cell of several
lines cannot be put together again and is rejected.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from recovery_api.domain.errors import BadFile
from workers.evidence.files.delimited import null_make
from workers.evidence.files.jsonlines import lines_read
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.opening import Utf8

RULE = re.compile(r"[ |+]?-+(?:\+-+)*[|+]?", re.ASCII)
_FOOTER = re.compile(r"\((\d+) rows?\)", re.ASCII)


def psql_records(stream: Utf8, notes: FileNotes, null: str | None) -> Iterator[tuple[dict[str, Any], int]]:
    """(record, line number) of each row. The number of rows in the footer is held against those that were read.

    Raises: BadFile.
    """
    header: list[str] = []
    widths: list[int] = []
    before, rows, torn, shown, is_continued = "", 0, 0, None, False
    is_null = null_make(null, notes)
    notes.mild["padded cells"] += 1
    for line, number, offset, _ in lines_read(stream, notes):
        try:
            text = line.decode().rstrip("\r")
        except UnicodeDecodeError:
            notes.reject("cut character", number, offset, "not UTF-8; it was not read")
            continue
        bare = text.strip()
        if not bare:
            notes.ignore("blank")
        elif not header:
            if RULE.fullmatch(bare) and before:
                header = [cell.strip() for cell in before.strip().strip("|").split("|")]
                widths = [len(dashes) for dashes in bare.strip("|+").split("+")]
                if len(widths) != len(header):
                    raise BadFile(notes.name, f"line {number}", "the rule does not fit the header", "")
            before = text
            notes.ignore("header" if header else "frame")
        elif match := _FOOTER.fullmatch(bare):
            shown = int(match[1])
            notes.ignore("frame")
        elif RULE.fullmatch(bare):
            notes.ignore("frame")
        else:
            was_continued = is_continued
            cells, is_continued = _cells(text, widths)
            if cells is None or is_continued or was_continued:
                torn += not was_continued
                says = (
                    "its cells do not lie under the header's; a cell of several lines is one cause. Export CSV instead"
                )
                notes.reject("torn record", number, offset, says)
                continue
            rows += 1
            yield (
                {name: None if is_null(cell, False) else cell for name, cell in zip(header, cells, strict=True)},
                number,
            )
    if not header:
        raise BadFile(notes.name, "line 1", "has no header with a rule below it", "")
    if shown is None:
        notes.blemish("unfinished tail", notes.lines, -1, "the line with the number of rows is not there")
    elif shown != rows + torn:
        notes.blemish("rows missing", notes.lines, -1, f"it says {shown} rows, and {rows + torn} are there")


def _cells(text: str, widths: list[int]) -> tuple[list[str] | None, bool]:
    """The cells by where the rule has its joints, in columns of a screen (a wide character takes two); and whether one of
    them goes on in the next line, which a plus at its end says.
    """
    text = text.strip("\r\n")
    if text.startswith("|"):
        text = text[1:].rstrip().removesuffix("|")
    cells, at, last, is_continued = [], 0, len(widths) - 1, False
    for place, width in enumerate(widths):
        end, taken = at, 0
        while end < len(text) and (taken < width or _is_combining(text[end])):
            taken += _width(text[end])
            end += 1
        cell = text[at:end]
        is_joint = text[end : end + 1] == "|" if place < last else not text[end:].strip()
        if taken > width or not is_joint:
            return None, is_continued
        is_continued |= cell.endswith("+") and taken == width
        cells.append(cell.strip())
        at = end + 1
    return cells, is_continued


def _is_combining(letter: str) -> bool:
    return unicodedata.combining(letter) > 0 or unicodedata.category(letter) in ("Mn", "Me", "Cf")


def _width(letter: str) -> int:
    return 0 if _is_combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
