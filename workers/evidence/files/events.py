"""From the records of a file to the tables of evidence.

A file is read once, line by line; of each record only digests, coordinates and keys are kept, so that memory grows with
the number of records and never with their contents. Coordinates stay text until the whole of every file was seen, for a
spelling is decided once; then they are resolved.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate, Spelling
from recovery_api.domain.errors import BadCoordinate, BadFile
from recovery_api.domain.frontiers import SINGLE_LANE
from workers.evidence import schemas
from workers.evidence.canonical import (
    ABSENT,
    Number,
    UncanonicalContent,
    content_digest,
    digest_given,
    number_canonical,
    payload_digest,
)
from workers.evidence.files.jsonlines import json_records
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.spellings import SpellingSigns, coordinates_resolve
from workers.evidence.files.tables import csv_records, parquet_columns, parquet_records

BATCH_ROWS = 65536
OPS = ("insert", "update", "delete")
COLUMNS = {
    *("coordinate", "op", "key", "value", "value_text", "digest"),
    *("generation", "head", "lane", "event_id", "entry"),
}
SHOWN = ("op", "key", "value", "value_text", "digest")
NEEDED = ("coordinate", "op", "key")

RAW = pa.schema(
    [
        *(("coordinate", pa.string()), ("head", pa.string()), ("lane", pa.string()), ("event_id", pa.string())),
        *(("op", pa.string()), ("key", pa.string()), ("payload_digest", schemas.DIGEST)),
        *(("content_digest", pa.string()), ("generation", pa.int64()), ("entry", pa.int64())),
    ]
)


@dataclass
class EventFile:
    """One export, read: its records with coordinates still as text, and what was found besides."""

    path: Path
    notes: FileNotes
    lanes: set[str] = field(default_factory=set)
    raw: list[pa.RecordBatch] = field(default_factory=list)

    def batches(self, spelling: Spelling, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The records in the shape of `schema`: schemas.HISTORY or ACCEPTED, or those with content_digest beside.

        `entry` is the file's own order where the file does not give a history's; always, in a record.
        """
        start = 0
        for batch in self.raw:
            position, ordinal = coordinates_resolve(batch["coordinate"], spelling, f"{self.notes.name}, coordinate")
            head, head_ordinal = coordinates_resolve(batch["head"], spelling, f"{self.notes.name}, head")
            place = pa.array(range(start, start + len(batch)), pa.int64())
            is_ordered = "head_position" not in schema.names and batch["entry"].null_count == 0
            columns = {
                **{name: batch[name] for name in batch.schema.names},
                "position": position,
                "ordinal": ordinal,
                "head_position": head,
                "head_ordinal": head_ordinal,
                "entry": batch["entry"] if is_ordered else place,
            }
            start += len(batch)
            yield pa.record_batch(
                [columns.get(column.name, pa.nulls(len(batch), column.type)) for column in schema], schema=schema
            )

    def parquet(self, path: Path, spelling: Spelling, schema: pa.Schema) -> tuple[Coordinate | None, Coordinate | None]:
        """Writes the records to a Parquet file; their lowest and highest coordinate."""
        import pyarrow.parquet as pq

        extremes: list[Coordinate] = []
        with pq.ParquetWriter(path, schema) as writer:
            for batch in self.batches(spelling, schema):
                writer.write_batch(batch)
                ordered = pa.Table.from_batches([batch]).sort_by([("position", "ascending"), ("ordinal", "ascending")])
                for at in (0, len(batch) - 1):
                    extremes.append(Coordinate(ordered["position"][at].as_py(), ordered["ordinal"][at].as_py()))
        return min(extremes, default=None), max(extremes, default=None)

    def table(self, spelling: Spelling, schema: pa.Schema) -> pa.Table:
        return pa.Table.from_batches(self.batches(spelling, schema), schema=schema).combine_chunks()


def events_read(path: Path, signs: SpellingSigns, name: str | None = None) -> EventFile:
    """The events of a file. Its coordinates' shapes go to `signs`; what could not be read, to the file's notes.

    Raises: BadFile, BadCoordinate.
    """
    file = EventFile(path, FileNotes(name or path.name))
    rows: list[tuple[Any, ...]] = []
    has_content = all_deletes = False
    with closing(records_read(path, file.notes)) as records:
        for record, line in records:
            row = _event(record, line, file.notes, signs)
            has_content = has_content or "value" in record or "value_text" in record or record.get("digest") is not None
            all_deletes = (all_deletes or file.notes.rows == 0) and row[4] == "delete"
            file.notes.rows += 1
            file.lanes.add(row[2])
            rows.append(row)
            if len(rows) == BATCH_ROWS:
                file.raw.append(_batch(rows))
                rows = []
    if rows:
        file.raw.append(_batch(rows))
    if file.notes.rows and not has_content and not all_deletes:
        raise BadFile(file.notes.name, "columns", "neither value nor digest is there", "Add the content or its digest.")
    return file


def event_at(path: Path, places: set[int]) -> dict[int, dict[str, Any]]:
    """Op, key and content of the records at these places of the file, as written: a second reading, for a report."""
    found: dict[int, dict[str, Any]] = {}
    with closing(records_read(path, FileNotes(path.name))) as records:
        for place, (record, _) in enumerate(records):
            if len(found) == len(places):
                break
            if place in places:
                found[place] = {name: record[name] for name in SHOWN if name in record}
                if record.get("digest", ABSENT) is None:
                    del found[place]["digest"]
    return found


def records_read(path: Path, notes: FileNotes) -> Generator[tuple[dict[str, Any], int], None, None]:
    """(record, line) of a file, by what it is: Parquet by its mark, CSV by its name or its header, else JSON lines.

    Raises: BadFile.
    """
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise BadFile(path.name, str(path), f"cannot be opened: {error.strerror}", "") from error
    suffix = path.suffix.lower()
    if start.startswith(b"PAR1") or suffix == ".parquet":
        _check_columns(parquet_columns(path, notes), notes)
        yield from parquet_records(path, notes, COLUMNS)
    elif suffix == ".csv" or (suffix not in (".jsonl", ".ndjson", ".json") and _looks_like_csv(start)):
        for number, (record, line) in enumerate(csv_records(path, notes)):
            if number == 0:
                _check_columns(list(record), notes)
            yield record, line
    else:
        yield from _json_events(path, notes)


def _json_events(path: Path, notes: FileNotes) -> Iterator[tuple[dict[str, Any], int]]:
    unused: set[str] = set()
    for record, line in json_records(path, notes):
        if not isinstance(record, dict):
            remedy = (
                "Each line is one object, not a list of them."
                if isinstance(record, list)
                else "Each line is an object."
            )
            raise BadFile(notes.name, f"line {line}", "is JSON, but not a record", remedy)
        if not record.keys() <= COLUMNS:
            unused |= record.keys() - COLUMNS
        yield record, line
    _note_unused(unused, notes)


def _looks_like_csv(start: bytes) -> bool:
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    return b"," in first and not first.lstrip(b"\0").startswith((b"{", b"["))


def _check_columns(names: list[str], notes: FileNotes) -> None:
    known = [name for name in names if name in COLUMNS or name == "value"]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        says = f"column {', '.join(missing)} is missing"
        raise BadFile(notes.name, "columns", says, f"It has: {', '.join(map(str, names))}.")
    _note_unused(set(names) - set(known), notes)


def _note_unused(names: set[str], notes: FileNotes) -> None:
    if names:
        notes.mild["column not used"] = len(names)
        notes.details["column not used"] = ", ".join(sorted(names))


def _event(record: dict[str, Any], line: int, notes: FileNotes, signs: SpellingSigns) -> tuple[Any, ...]:
    """One row of RAW. Raises: BadFile, BadCoordinate."""

    def refuse(problem: str, remedy: str = "") -> BadFile:
        return BadFile(notes.name, f"line {line}", problem, remedy)

    for name in NEEDED:
        if name not in record:
            raise refuse(f"{name} is missing", "Write null for an event without a key." if name == "key" else "")
    op, key = record["op"], record["key"]
    if op not in OPS:
        raise refuse(f"op {op!r} is not one", f"Known: {', '.join(OPS)}.")
    if isinstance(key, Number | int) and not isinstance(key, bool):
        key = number_canonical(str(key))
    elif key is not None and not isinstance(key, str):
        raise refuse(f"key {key!r} is neither text nor null")
    coordinate = _coordinate(record["coordinate"], f"{notes.name}, line {line}", signs)
    if coordinate is None:
        raise refuse("coordinate is null", "Every event needs one.")
    content = _content_digest(record, op, refuse)
    return (
        coordinate,
        _coordinate(record.get("head"), f"{notes.name}, line {line}, head", signs),
        SINGLE_LANE if record.get("lane") is None else str(record["lane"]),
        None if record.get("event_id") is None else _held(str(record["event_id"])),
        op,
        None if key is None else _held(key),
        payload_digest(op, key, content),
        content if content.isascii() else _held(content),
        _integer(record.get("generation"), "generation", refuse),
        _integer(record.get("entry"), "entry", refuse),
    )


def _content_digest(record: dict[str, Any], op: str, refuse: Callable[..., BadFile]) -> str:
    digest = record.get("digest")
    if digest is not None:
        if not isinstance(digest, str) or not digest or isinstance(digest, Number):
            raise refuse(f"digest {digest!r} is not a text")
        return digest_given(digest)
    content = record.get("value", ABSENT)
    if (content is ABSENT or content is None) and isinstance(record.get("value_text"), str):
        content = record["value_text"]
    try:
        return content_digest(content, op)
    except UncanonicalContent as error:
        raise refuse(str(error)) from error


def _coordinate(value: Any, where: str, signs: SpellingSigns) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        value_text = f"{value}"
        if type(value).__name__ != "Decimal":
            raise BadCoordinate(where, value_text[:60], "a whole number, or a text in the source's spelling")
        value = value_text
    text = str(value).strip()
    signs.see(text, where)
    return text


def _integer(value: Any, name: str, refuse: Callable[..., BadFile]) -> int | None:
    if value is None:
        return None
    try:
        number = int(value)
    except (ValueError, TypeError) as error:
        raise refuse(f"{name} {value!r} is not a whole number") from error
    if not -(2**63) <= number < 2**63 or isinstance(value, float | bool):
        raise refuse(f"{name} {value!r} is not a 64-bit whole number")
    return number


def _held(text: str) -> str:
    """The text as a column can hold it: a lone surrogate is spelled out. Only for show and scope; digests are exact."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch([pa.array(column, kind.type) for column, kind in zip(columns, RAW, strict=True)], schema=RAW)
