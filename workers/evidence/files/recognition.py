"""What a file is taken for, from its name and its first lines; said before anything else is.

The law: how records lie in a file and what a record is are two questions; where somebody answered one, nothing is guessed.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from recovery_api.domain.errors import BadInput
from workers.evidence.canonical import UncanonicalContent, content_parse
from workers.evidence.files import debezium, messages
from workers.evidence.files.delimited import DELIMITERS
from workers.evidence.files.messages import CONSOLE_SIGN, Message, content_of, is_wrapper, message_of
from workers.evidence.files.options import Reading, ReadOptions
from workers.evidence.files.psql import RULE
from workers.evidence.files.shapes import looks_like_outbox

SHOWN_LINES = 40
OWN = {"coordinate", "op", "key"}
_KEYED = re.compile(rb"(?:[^\t\n{\[]*\t){1,2}(?:[{\[]|null\r?\n)")
"""A console dump's line: headers, key and a value that is JSON or null."""

CELLS = ("csv", "copy", "psql", "parquet")
DELIMITER_WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SHAPE_WORDS = {
    "native": "Fencepost's own columns",
    "columns": "columns as mapped",
    "debezium": "Debezium change events",
    "debezium-outbox": "Debezium change events of an outbox table, each insert an event",
    "router": "messages of Debezium's outbox event router, by their header id",
    "messages": "messages, each an event at its offset",
}
PRESETS = {
    "debezium": "debezium",
    "debezium-outbox": "debezium-outbox",
    "debezium-router": "router",
    "messages": "messages",
}
"""Presets for files, and the shape of each; table presets are columns."""


def reading_of(path: Path, start: bytes, suffix: str, options: ReadOptions) -> Reading:
    """What the file is taken for. Raises: BadInput."""
    container, delimiter = _container(start, suffix, options)
    kcat = options.format.partition(":")[2] if options.format.startswith("kcat:") else None
    records = list(_sample(start, container, delimiter, kcat))
    shape = _shape(records, container, options)
    return Reading(container, shape, delimiter, kcat, _says(container, shape, delimiter, records, start, options))


def _container(start: bytes, suffix: str, options: ReadOptions) -> tuple[str, str]:
    if options.format not in ("auto", "csv"):
        return ("kcat", "") if options.format.startswith("kcat:") else (_alias(options.format, start), "\t")
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip(b"\0")
    bare = text.lstrip()
    if options.format == "csv" or suffix in (".csv", ".tsv"):
        if options.format != "csv" and _is_psql(text):
            return "psql", "|"
        return "csv", _delimiter(text, "\t" if suffix == ".tsv" else ",", options)
    if start.startswith(b"PAR1") or suffix == ".parquet":
        return "parquet", ""
    if CONSOLE_SIGN.match(bare) or (_KEYED.match(bare) and not options.columns):
        return "console", "\t"
    if bare.startswith(b"["):
        return "array", ""
    if suffix in (".jsonl", ".ndjson", ".json") or bare.startswith((b"{", b"null")):
        return "jsonl", ""
    if _is_psql(text):
        return "psql", "|"
    if options.columns and b"\t" in text.split(b"\n", 1)[0]:
        return "copy", "\t"
    first = bare.split(b"\n", 1)[0]
    if any(mark.encode() in first for mark in DELIMITERS):
        delimiter = _delimiter(bare, ",", options)
        if delimiter == "\t" and b"\\N" in start:
            return "copy", delimiter
        return "csv", delimiter
    return "jsonl", ""


def _alias(name: str, start: bytes) -> str:
    is_list = name == "jsonl" and start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    return "array" if is_list else "jsonl" if name == "kcat" else name


def _is_psql(text: bytes) -> bool:
    lines = text[: 1 << 14].decode("utf-8", "replace").splitlines()[:6]
    return any(RULE.fullmatch(line.strip()) and lines[at - 1].strip() for at, line in enumerate(lines) if at)


def _delimiter(text: bytes, default: str, options: ReadOptions) -> str:
    """The one that cuts the first line into most cells, quotes respected."""
    first = text.split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    counts = {}
    for mark in DELIMITERS:
        try:
            counts[mark] = len(next(csv.reader([first], delimiter=mark), []))
        except csv.Error:
            counts[mark] = 0
    best = max(counts.values())
    return default if counts[default] == best or best <= 1 else next(m for m in DELIMITERS if counts[m] == best)


def _sample(start: bytes, container: str, delimiter: str, kcat: str | None) -> Iterable[Any]:
    """The first records, as far as they can be seen; a message for a line of a topic's dump."""
    lines = _whole_lines(start)
    if container == "jsonl":
        for line in lines:
            yield from _parsed(line.strip(b"\0 \t\r"))
    elif container == "array":
        yield from _first_elements(start)
    elif container in ("console", "kcat"):
        pattern = messages.kcat_pattern(kcat) if kcat else None
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if pattern is not None:
                found = messages.kcat_message(text, pattern, content_parse)
            else:
                found = messages.console_message(text, *console_columns(start), content_parse)
            if found is not None and text:
                yield found


def _parsed(line: bytes) -> Iterable[Any]:
    try:
        yield content_parse(line.decode())
    except (ValueError, UncanonicalContent):
        return


def _first_elements(start: bytes) -> Iterable[Any]:
    decoder = json.JSONDecoder()
    text = start.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n")[1:].lstrip()
    for _ in range(SHOWN_LINES):
        try:
            element, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            return
        yield element
        text = text[end:].lstrip(" \t\r\n,")


def console_columns(start: bytes) -> tuple[bool, bool]:
    """Whether the console consumer printed keys, and headers: from how most of its first lines are laid out."""
    lines = [line for line in _whole_lines(start) if b"\t" in line]
    rests = [messages.console_rest(line.decode("utf-8", "replace")) for line in lines]
    cells = [rest.split("\t") for rest in rests if rest]
    if not cells:
        return False, False
    with_headers = sum(len(row) > 1 and messages.is_headers(row[0]) for row in cells)
    has_headers = 2 * with_headers > len(cells)
    with_key = sum(len(row) > 1 + has_headers for row in cells)
    return 2 * with_key > len(cells), has_headers


def _whole_lines(start: bytes) -> list[bytes]:
    """The first lines, without one that may be cut."""
    lines = start.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return lines[:-1][:SHOWN_LINES] if len(lines) > 1 else lines


def _shape(records: list[Any], container: str, options: ReadOptions) -> str:
    is_mapped = bool(options.maps or options.cell_maps)
    if container in CELLS:
        return "columns" if is_mapped else "native"
    if options.preset in PRESETS:
        return PRESETS[options.preset]
    objects = [record for record in records if isinstance(record, dict | Message)]
    is_own = any(isinstance(record, dict) and len(OWN & record.keys()) >= 2 for record in objects)
    if is_own and not any(_is_change(record) for record in objects):
        return "columns" if is_mapped else "native"
    if options.preset is not None:
        return "columns"
    if any(_is_change(record) for record in objects):
        rows = [_message(record).value for record in objects if _is_change(record)]
        images = [image for value in rows if (image := debezium.unwrapped(value)[0].get("after"))]
        return "debezium-outbox" if images and all(map(looks_like_outbox, images)) else "debezium"
    wrapped = [_message(record) for record in objects if isinstance(record, Message) or is_wrapper(record)]
    if any("id" in message.headers for message in wrapped):
        return "router"
    if wrapped:
        return "messages"
    if any(debezium.other_kind(record) for record in objects):
        return "debezium"
    return "columns" if is_mapped or options.by_event_id else "native"


def _is_change(record: Any) -> bool:
    value = _message(record).value
    if isinstance(record, dict) and not is_wrapper(record) and set(record) <= {"key", "value", "headers"}:
        value = content_of(record.get("value"), content_parse)
    return debezium.is_change(value) or debezium.is_flattened(value)


def _message(record: Any) -> Message:
    if isinstance(record, Message):
        return record
    if is_wrapper(record):
        return message_of(record, content_parse)
    if isinstance(record, dict) and record.keys() <= {"key", "value", "headers"} and "value" in record:
        return Message(record.get("key"), content_of(record["value"], content_parse))
    return Message(value=record)


def _says(container: str, shape: str, delimiter: str, records: list[Any], start: bytes, options: ReadOptions) -> str:
    held = {
        "jsonl": "JSON lines",
        "array": "a JSON list",
        "csv": f"CSV with {DELIMITER_WORDS.get(delimiter, delimiter)}",
        "copy": "PostgreSQL's COPY text",
        "psql": "psql's table",
        "parquet": "Parquet",
        "console": "a dump of the console consumer",
        "kcat": "a dump of kcat",
    }[container]
    wrapped = [record for record in records if is_wrapper(record)]
    if wrapped:
        held += " of kcat -J" if any("payload" in record for record in wrapped) else " of whole messages"
    what = SHAPE_WORDS[shape]
    if shape.startswith("debezium"):
        values = [_message(record).value for record in records if _is_change(record)]
        if any(debezium.unwrapped(value)[1] is not None for value in values):
            what += " with their schema"
        if any(debezium.is_flattened(value) for value in values):
            what += ", flattened"
        if options.prefixes:
            what += f", messages of prefix {' or '.join(options.prefixes)} the events"
    chosen = " (as told)" if options.preset or options.maps or options.format != "auto" else ""
    return f"{held}: {what}{chosen}"


def preset_known(name: str, tables: Iterable[str]) -> None:
    """Raises: BadInput for a name that is no preset for files and no table's."""
    if name not in PRESETS and name not in set(tables):
        known = ", ".join([*PRESETS, *sorted(tables)])
        raise BadInput("--preset", f"{name!r} is not known", f"Known for files: {known}.")
