"""The lines of a topic's dump in text, each a message: the console consumer's, or kcat's by its format string."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from workers.evidence.files.debezium import BadRecord
from workers.evidence.files.jsonlines import lines_read
from workers.evidence.files.messages import CONSOLE_END, Message, Parse, console_message, kcat_message, kcat_pattern
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.opening import Utf8
from workers.evidence.files.recognition import console_columns


@dataclass(frozen=True, slots=True)
class DumpLine:
    """One line, and how it is laid out. `pattern` None: the console consumer's."""

    text: str
    number: int
    offset: int
    pattern: re.Pattern[str] | None
    has_key: bool
    has_headers: bool

    def message(self, parse: Parse) -> Message:
        """Raises: BadRecord where it is not laid out like the lines before it, or says two things at once."""
        if self.pattern is None:
            found = console_message(self.text, self.has_key, self.has_headers, parse)
        else:
            found = kcat_message(self.text, self.pattern, parse)
        if found is None:
            raise BadRecord(
                "it is not laid out like the lines before it; a value of several lines is one cause. Use kcat -J"
            )
        if found.value == "" and self.pattern is not None and "size" not in self.pattern.groupindex:
            raise BadRecord("its value is empty or null, which look alike here: add %S to the format, or use kcat -J")
        return found


def dump_lines(stream: Utf8, notes: FileNotes, start: bytes, kcat: str | None) -> Iterator[DumpLine]:
    """The lines that may be messages; blank ones and the exporting program's own are ignored, others are rejected."""
    pattern = None if kcat is None else kcat_pattern(kcat)
    has_key, has_headers = console_columns(start) if pattern is None else (False, False)
    for body, number, offset, is_ended in lines_read(stream, notes):
        try:
            text = body.decode().removesuffix("\r")
        except UnicodeDecodeError as error:
            notes.reject("cut character", number, offset, f"not UTF-8: {error.reason}")
            continue
        if not text.strip():
            notes.ignore("blank")
        elif CONSOLE_END.fullmatch(text) or text.startswith("% "):
            notes.ignore("program's own")
        elif not is_ended:
            notes.reject("unfinished tail", number, offset, "the file ends inside it; it was not read")
        else:
            yield DumpLine(text, number, offset, pattern, has_key, has_headers)
