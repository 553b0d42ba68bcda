"""The small files of a judgement: acknowledged coordinates, keys in scope, the base image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recovery_api.domain.errors import BadFile, FencepostError
from workers.evidence.canonical import Number, content_parse
from workers.evidence.files.delimited import csv_records
from workers.evidence.files.jsonlines import RecordDecoder, json_records, lines_read
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.opening import text_open
from workers.evidence.files.parquet import parquet_records


def coordinates_read(path: Path) -> list[str]:
    """Acknowledged coordinates, as spelled: one a line (a number or a text), objects with `coordinate`, or one JSON
    list; CSV and Parquet with a column `coordinate`. Raises: BadFile also where it is not whole.
    """
    notes = FileNotes(path.name)
    start = _start(path)
    if start.startswith(b"PAR1"):
        records: list[Any] = [record for record, _ in parquet_records(path, notes, {"coordinate"})]
    elif path.suffix.lower() == ".csv":
        with text_open(path, notes) as stream:
            records = [record for record, _ in csv_records(stream, notes, ",")]
    elif _is_bare(start):
        records = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    else:
        decoder = RecordDecoder()
        with text_open(path, notes) as stream:
            records = [one for line in lines_read(stream, notes) for one in json_records(line, notes, decoder)]
    if not notes.is_whole:
        raise BadFile(notes.name, f"line {notes.blemishes[0].line}", "is not whole", f"{notes.blemishes[0]}.")
    if len(records) == 1 and isinstance(records[0], list):
        records = records[0]
    return [_coordinate(record, notes) for record in records]


def keys_read(path: Path) -> list[str]:
    """Keys in scope: one a line as it stands, or one JSON list of texts. An empty file is an empty scope."""
    _start(path)
    text = path.read_text(encoding="utf-8-sig")
    if text.lstrip().startswith("["):
        keys = _json(text, path.name)
        if not isinstance(keys, list) or not all(type(key) is str for key in keys):
            raise BadFile(path.name, "file", "is not a list of texts", "")
        return keys
    return text.removesuffix("\n").split("\n") if text else []


def base_read(path: Path) -> dict[str, Any]:
    """The base image: one JSON object, key to content."""
    _start(path)
    base = _json(path.read_text(encoding="utf-8-sig"), path.name)
    if not isinstance(base, dict):
        raise BadFile(path.name, "file", "is not a JSON object", "Key to content.")
    return base


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4096)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise BadFile(path.name, str(path), f"cannot be opened: {error.strerror}", "") from error


def _is_bare(start: bytes) -> bool:
    """Plain lines like `A/10` or `7001:42`, which are no JSON."""
    first = start.split(b"\n", 1)[0].strip()
    return first[:1].isalnum() and (b"/" in first or b":" in first)


def _json(text: str, name: str) -> Any:
    try:
        return content_parse(text)
    except json.JSONDecodeError as error:
        raise BadFile(name, f"line {error.lineno}", "is not JSON", error.msg) from error
    except FencepostError as error:
        raise BadFile(name, "file", str(error), "") from error


def _coordinate(record: Any, notes: FileNotes) -> str:
    value = record.get("coordinate") if isinstance(record, dict) else record
    if value is None or isinstance(value, bool | float | list | dict) or not isinstance(value, str | int | Number):
        raise BadFile(notes.name, "coordinate", f"{value!r} is not a coordinate", "")
    return str(value).strip()
