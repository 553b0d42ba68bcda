"""A JSON list of records, however it is laid out, read with bounded memory. What breaks it off is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from recovery_api.domain.errors import BadFile
from workers.evidence.canonical import UncanonicalContent
from workers.evidence.files.jsonlines import LINE_BYTES, RecordDecoder, RepeatedColumnError
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.opening import Utf8

NEAR_END = 16
"""An error this near to the end of what was read may be no error once more is read."""

_BLANK = " \t\r\n\ufeff"


def array_records(stream: Utf8, notes: FileNotes) -> Iterator[tuple[Any, int]]:
    """(element, its number from 1) of a list, or of several one after the other. Raises: BadFile."""
    notes.unit = "element"
    decoder, text, at, is_inside = RecordDecoder(), _Text(stream, notes), 0, False
    while True:
        at = text.skip(at, _BLANK + "," if is_inside else _BLANK)
        if at >= len(text.held):
            if text.more(at):
                at = 0
                continue
            if is_inside:
                notes.blemish("unfinished tail", text.line, -1, "the list has no end; records may be missing")
            break
        if not is_inside or text.held[at] == "]":
            if text.held[at] not in "[]" or (is_inside is (text.held[at] == "[")):
                _stop(notes, text, at, "is neither in a list nor between two")
                break
            is_inside, at = not is_inside, at + 1
            continue
        try:
            element, end = decoder.decode(text.held, at)
        except json.JSONDecodeError as error:
            may_go_on = error.pos >= len(text.held) - NEAR_END or error.msg.startswith("Unterminated string")
            if may_go_on and text.more(at):
                at = 0
                continue
            _stop(notes, text, at, error.msg)
            break
        except RepeatedColumnError as error:
            raise BadFile(notes.name, f"line {text.line}", "a column name is repeated", "Name each once.") from error
        except UncanonicalContent as error:
            raise BadFile(notes.name, f"line {text.line}", str(error), "") from error
        if end == len(text.held) and text.more(at):  # a number may go on
            at = 0
            continue
        notes.lines += 1
        yield element, notes.lines
        text.line += text.held.count("\n", at, end)
        at = end
    if stream.broken:
        notes.blemish("unfinished tail", text.line, -1, f"{stream.broken}; what followed was not read")
    if decoder.repeats:
        notes.mild["repeated member"] += decoder.repeats


def _stop(notes: FileNotes, text: _Text, at: int, says: str) -> None:
    notes.lines += 1
    seen = text.held[at : at + 30]
    notes.reject(
        "torn list", notes.lines, -1, f"from line {text.line} on nothing was read ({says}; it begins {seen!r})"
    )


class _Text:
    """What is held of a stream, as text; `line` is the number of the line at which reading stands."""

    def __init__(self, stream: Utf8, notes: FileNotes) -> None:
        self.held, self.line = "", 1
        self._stream, self._notes, self._cut = stream, notes, b""

    def skip(self, at: int, blanks: str) -> int:
        end = at
        while end < len(self.held) and self.held[end] in blanks:
            end += 1
        self.line += self.held.count("\n", at, end)
        return end

    def more(self, at: int) -> bool:
        """Lets go what lies before `at` and reads as much again as is held; False at the end."""
        parts = [self.held[at:]]
        wanted = length = len(parts[0])
        while length < 2 * wanted or length == wanted:
            data = self._stream.read()
            if not data:
                break
            parts.append(self._decoded(data))
            length += len(parts[-1])
        self.held = "".join(parts)
        if wanted > LINE_BYTES:
            says = f"holds an element of more than {LINE_BYTES >> 20} MiB"
            raise BadFile(self._notes.name, f"line {self.line}", says, "")
        return length > wanted

    def _decoded(self, data: bytes) -> str:
        whole = self._cut + data
        try:
            text, self._cut = whole.decode(), b""
        except UnicodeDecodeError as error:
            if len(whole) - error.start >= 4:
                raise BadFile(self._notes.name, f"line {self.line}", f"not UTF-8: {error.reason}", "") from error
            text, self._cut = whole[: error.start].decode(), whole[error.start :]
        return text
