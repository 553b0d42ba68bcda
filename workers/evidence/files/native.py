"""Records in the product's own columns: coordinate, op, key, and the content as value, value_text or digest."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from recovery_api.domain.errors import BadFile, FencepostError
from workers.evidence.canonical import ABSENT, Number, content_parse
from workers.evidence.files.collecting import key_native
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.shapes import Fields

OPS = ("insert", "update", "delete")
NEEDED = ("coordinate", "op", "key")
COLUMNS = {
    *("coordinate", "op", "key", "value", "value_text", "digest"),
    *("generation", "head", "lane", "event_id", "entry"),
}
SHOWN = ("op", "key", "value", "value_text", "digest")
TEXTS = ("key", "value_text")


def columns_check(names: list[str], notes: FileNotes) -> None:
    """Raises: BadFile where a column that every event needs is not there."""
    missing = [name for name in NEEDED if name not in names]
    if missing:
        says = f"column {', '.join(missing)} is missing"
        remedy = (
            f"It has: {', '.join(map(str, names))}. Say which is which, --map {missing[0]}=COLUMN (a constant: "
            f"--map op==insert), or name a --preset."
        )
        raise BadFile(notes.name, "columns", says, remedy)
    unused_note(set(names) - COLUMNS, notes)


def unused_note(names: set[str], notes: FileNotes) -> None:
    if names:
        notes.mild["column not used"] = len(names)
        notes.details["column not used"] = ", ".join(sorted(names))


def cells_prepare(record: dict[str, Any], line: int, notes: FileNotes, parse: Callable[[str], Any]) -> dict[str, Any]:
    """A row of texts as a record: its `value` is JSON, and an empty text that is none is null. Raises: BadFile."""
    for name, cell in record.items():
        if cell == "" and name not in TEXTS:
            record[name] = None
    value = record.get("value")
    if isinstance(value, bytes):
        value = _decoded(value, line, notes)
    if isinstance(value, str):
        record["value"] = json_cell(value, f"{notes.unit} {line}", notes, parse)
    for name in ("key", "op", "coordinate", "head", "lane", "event_id", "value_text", "digest"):
        if isinstance(record.get(name), bytes):
            record[name] = _decoded(record[name], line, notes)
    return record


def _decoded(value: bytes, line: int, notes: FileNotes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise BadFile(
            notes.name, f"{notes.unit} {line}", "bytes that are no UTF-8", "Give text, or --map them."
        ) from error


def json_cell(cell: str, where: str, notes: FileNotes, parse: Callable[[str], Any] = content_parse) -> Any:
    """The content that a `value` cell spells. Raises: BadFile."""
    try:
        return parse(cell)
    except json.JSONDecodeError as error:
        says = f"value {cell[:40]!r} is not JSON"
        raise BadFile(notes.name, where, says, "Plain text belongs in a column value_text.") from error
    except FencepostError as error:
        raise BadFile(notes.name, where, str(error), "") from error


def native_fields(record: Any, refuse: Callable[..., Exception]) -> Fields:
    """Raises: what `refuse` makes."""
    if not isinstance(record, dict):
        raise refuse("is JSON, but not a record: each line is an object")
    for name in NEEDED:
        if name not in record:
            raise refuse(
                f"{name} is missing{'; write null for an event without a key' if name == 'key' else ''}; or say which "
                f"member it is, --map {name}=..."
            )
    op = record["op"]
    if op not in OPS:
        raise refuse(f"op {op!r} is not one; known: {', '.join(OPS)}")
    content = record.get("value", ABSENT)
    if (content is ABSENT or content is None) and isinstance(record.get("value_text"), str):
        content = record["value_text"]
    return Fields(
        coordinate=record["coordinate"],
        op=op,
        key=key_native(record["key"], refuse),
        content=content,
        digest=record.get("digest"),
        lane=record.get("lane"),
        event_id=record.get("event_id"),
        head=record.get("head"),
        generation=record.get("generation"),
        entry=record.get("entry"),
    )


def shown_of(record: dict[str, Any]) -> dict[str, Any]:
    """Op, key and content as written, for a report."""
    found = {name: record[name] for name in SHOWN if name in record}
    if found.get("digest", ABSENT) is None:
        del found["digest"]
    return {name: str(item) if isinstance(item, Number) and name == "key" else item for name, item in found.items()}
