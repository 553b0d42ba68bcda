"""JSON lines, a record a physical line, read with bounded memory; every byte is read, mended or named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from recovery_api.domain.errors import BadFile
from workers.evidence.canonical import Number, UncanonicalContent
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.opening import Picked, Resumed, Utf8

LINE_BYTES = 64 << 20
"""The longest line that is read: a payload of 24 MiB with room for escapes, and still far from the machine's memory."""

GLUED_LOOKS = 64
BOM = b"\xef\xbb\xbf"
_RECORD_START = re.compile(rb'\{\s*"')
_BLANK = b" \t\r\n"


class RecordDecoder:
    """Parses one record a call; numbers stay as written. `repeats`: contents that repeated a member."""

    def __init__(self) -> None:
        self.repeats = 0
        self._written = 0
        self._decoder = json.JSONDecoder(
            parse_float=Number, parse_int=Number, parse_constant=_refuse_constant, object_pairs_hook=self._members
        )

    def decode(self, text: str, at: int = 0) -> tuple[Any, int]:
        """The JSON value at `at`, and where it ends. Raises: json.JSONDecodeError, UncanonicalContent, RepeatedColumn."""
        before = self.repeats
        try:
            value, end = self._decoder.raw_decode(text, at)
        except RecursionError as error:
            raise UncanonicalContent("content", "is nested too deep to be read", "Give its digest instead.") from error
        if isinstance(value, dict) and len(value) != self._written:
            self.repeats = before
            raise RepeatedColumnError(next(iter(value), ""))
        return value, end

    def _members(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        self._written = len(pairs)
        if len(members) != len(pairs):
            self.repeats += 1
        return members


class RepeatedColumnError(ValueError):
    """A record names a column twice."""


Line = tuple[bytes, int, int, bool]
"""A physical line without its end, its number, its offset, and whether it had an end."""

Stream = Utf8 | Picked | Resumed


def lines_read(stream: Stream, notes: FileNotes, number: int = 0, offset: int = 0) -> Iterator[Line]:
    """Every physical line; a stream that breaks off is named. `number`, `offset`: of what was read before.

    Raises: BadFile where a line is too long.
    """
    for bodies, is_ended in stream.chunks(LINE_BYTES):
        for body in bodies:
            number += 1
            if len(body) > LINE_BYTES:
                raise too_long(notes, number, offset)
            notes.lines += 1
            yield body, number, offset, is_ended
            offset += len(body) + is_ended
    broken_note(stream, notes, number, offset)


def too_long(notes: FileNotes, number: int, offset: int) -> BadFile:
    return BadFile(notes.name, f"line {number}, byte {offset}", f"is longer than {LINE_BYTES >> 20} MiB", "")


def broken_note(stream: Stream, notes: FileNotes, number: int, offset: int) -> None:
    if stream.broken:
        notes.blemish("unfinished tail", number, offset, f"{stream.broken}; what followed was not read")


def json_records(line: Line, notes: FileNotes, decoder: RecordDecoder) -> Iterator[Any]:
    """The records of a line, the exact way; what is not one goes to `notes`.

    Raises: BadFile where it is JSON that cannot serve.
    """
    body, number, offset, is_ended = line
    if body.endswith(b"\r"):
        notes.mild["CRLF"] += 1
        body = body[:-1]
    start = offset
    if body.startswith(BOM):
        notes.mild["byte order mark" if offset == 0 else "byte order mark inside"] += 1
        body, start = body[3:], start + 3
    bare = body.strip(b"\0")
    if len(bare) != len(body):
        run = len(body) - len(bare)
        says = f"{run} NUL bytes, as a crash leaves them, were left out; records may be missing there"
        if bare:
            notes.blemish("NUL run", number, start, says)
            start += len(body) - len(body.lstrip(b"\0"))
        else:
            notes.reject("NUL run", number, start, says)
            return
        body = bare
    if not body.strip(_BLANK):
        notes.ignore("blank")
        return
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        says = f"not UTF-8: {error.reason}; the record was not read{_glued(body, start, decoder)}"
        notes.reject("unfinished tail" if not is_ended else "cut character", number, start + error.start, says)
        return
    try:
        yield from _whole(text, notes, decoder)
    except json.JSONDecodeError:
        if is_ended:
            notes.reject("torn record", number, start, f"it was not read{_glued(body, start, decoder)}")
        else:
            notes.reject("unfinished tail", number, start, f"the file ends inside it{_glued(body, start, decoder)}")
    except RepeatedColumnError as error:
        raise BadFile(notes.name, f"line {number}", "a column name is repeated", "Name each column once.") from error
    except UncanonicalContent as error:
        raise BadFile(notes.name, f"line {number}, byte {start}", str(error), "") from error


def _whole(text: str, notes: FileNotes, decoder: RecordDecoder) -> Iterator[Any]:
    """The records of a line that holds nothing but whole records: one, or several where a line end was lost."""
    found, at = [], len(text) - len(text.lstrip())
    while at < len(text):
        record, end = decoder.decode(text, at)
        found.append(record)
        at = end + len(text[end:]) - len(text[end:].lstrip()) if end < len(text) else end
    if len(found) > 1:
        if not all(isinstance(record, dict) for record in found):
            raise json.JSONDecodeError("not records", text, 0)
        notes.mild["glued records"] += 1
    yield from found


def _glued(body: bytes, start: int, decoder: RecordDecoder) -> str:
    """What to say of a whole record that seems to follow in the same line. It is named and not read: it may as well be
    part of the torn record's content.
    """
    for look, match in enumerate(_RECORD_START.finditer(body, 1)):
        if look == GLUED_LOOKS:
            break
        try:
            record, _ = decoder.decode(body[match.start() :].decode("utf-8", "surrogatepass"))
        except (ValueError, UncanonicalContent):
            continue
        if isinstance(record, dict):
            named = f"coordinate {record['coordinate']}" if "coordinate" in record else "a record"
            return f", nor was what looks like {named}, glued to it at byte {start + match.start()}"
    return ""


def _refuse_constant(name: str) -> Any:
    raise UncanonicalContent("number", f"{name} is not JSON", "")
