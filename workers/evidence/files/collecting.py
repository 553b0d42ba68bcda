"""Rows of evidence, gathered in columns and let go in batches, so that memory holds digests and never contents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

import pyarrow as pa

from recovery_api.domain.coordinates import INT64_MAX, INT64_MIN
from recovery_api.domain.errors import BadCoordinate, BadFile
from recovery_api.domain.frontiers import SINGLE_LANE
from workers.evidence import schemas
from workers.evidence.canonical import (
    ABSENT,
    Number,
    UncanonicalContent,
    digest_given,
    number_canonical,
    payload_digest,
)
from workers.evidence.files.emitted import Published
from workers.evidence.files.notes import FileNotes
from workers.evidence.files.spellings import SpellingSigns
from workers.evidence.quick import Uncertain, canonical_checked

BATCH_ROWS = 16384
TYPES: dict[str, pa.DataType] = {
    "head": pa.string(),
    "lane": pa.dictionary(pa.int32(), pa.string()),
    "event_id": pa.string(),
    "op": pa.string(),
    "key": pa.string(),
    "payload_digest": schemas.DIGEST,
    "content_digest": pa.string(),
    "generation": pa.int64(),
    "entry": pa.int64(),
    "is_read": pa.bool_(),
}
"""Columns beside the coordinate, which is whole numbers or text from batch to batch."""

EVERY = frozenset(TYPES)
DEFAULTS = {"lane": SINGLE_LANE, "is_read": False}


class Collector:
    """Columns of one file. `wanted`: which of TYPES are kept. `spool`: a file that batches go to, or None: they are held."""

    def __init__(
        self, notes: FileNotes, signs: SpellingSigns, wanted: frozenset[str] = EVERY, spool: Path | None = None
    ) -> None:
        self.notes, self.signs, self.wanted = notes, signs, wanted
        self.lanes: set[str] = set()
        self.held: list[pa.RecordBatch] = []
        self.is_content_seen, self.is_all_deletes, self.count = False, True, 0
        self.has_entries = False
        self.unknown: dict[int, tuple[str, ...]] = {}
        self.published = Published()
        self.spooled: list[Path] = []
        self._spool = spool
        self._columns: dict[str, list[Any]] = {name: [] for name in ("coordinate", *sorted(wanted))}

    def add(self, values: dict[str, Any]) -> None:
        """One row: `coordinate` as text or number, and TYPES by name."""
        for name, column in self._columns.items():
            column.append(values.get(name))
        self.lanes.add(values["lane"])
        self.has_entries |= values.get("entry") is not None
        self.notes.rows += 1
        self.count += 1
        if len(self._columns["coordinate"]) >= BATCH_ROWS:
            self.flush()

    def stretch(self, columns: Mapping[str, Sequence[Any]], count: int) -> None:
        """Many rows at once: `coordinate`, `op`, and TYPES by name, with contents; what is not there is as if not said."""
        for name, column in self._columns.items():
            given = columns.get(name)
            column.extend([DEFAULTS.get(name)] * count if given is None else given)
        self.lanes |= set(columns.get("lane", (SINGLE_LANE,)))
        self.has_entries |= any(entry is not None for entry in columns.get("entry", ()))
        self.is_content_seen, self.is_all_deletes = True, self.is_all_deletes and set(columns["op"]) == {"delete"}
        self.notes.rows += count
        self.count += count
        if len(self._columns["coordinate"]) >= BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        coordinates = self._columns["coordinate"]
        if not coordinates:
            return
        arrays, names = [_coordinates(coordinates, self.signs, self.notes.name)], ["coordinate"]
        for name in sorted(self.wanted):
            column = self._columns[name]
            if name == "head":
                for text in {held for held in column if held is not None}:
                    self.signs.see(text, f"{self.notes.name}, head")
            arrays.append(pa.array(column, TYPES[name]))
            names.append(name)
        self.held.append(pa.record_batch(arrays, names=names))
        for column in self._columns.values():
            column.clear()
        if self._spool is not None:
            self._write()

    def _write(self) -> None:
        assert self._spool is not None
        place = self._spool.with_name(f"{self._spool.name}.{len(self.spooled)}")
        batch = self.held.pop()
        with pa.OSFile(str(place), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
            writer.write_batch(batch)
        self.spooled.append(place)


def spooled_read(place: Path) -> pa.RecordBatch:
    """A batch that lies on disk, not copied into memory."""
    return pa.ipc.open_file(pa.memory_map(str(place))).get_batch(0)


def _coordinates(given: list[Any], signs: SpellingSigns, name: str) -> pa.Array:
    """Whole numbers where all of a batch are, else texts; their shapes are seen here for numbers, by the caller for texts."""
    kinds = set(map(type, given))
    if kinds == {type(None)}:
        return pa.nulls(len(given), pa.int64())
    if kinds == {int} and min(given) >= INT64_MIN and max(given) <= INT64_MAX:
        signs.see_numbers(min(given), max(given), name)
        return pa.array(given, pa.int64())
    for one in given:
        if type(one) is int:
            signs.see(str(one), name)
    return pa.array([str(one) for one in given], pa.string())


def held_text(text: str) -> str:
    """The text as a column can hold it: a lone surrogate is spelled out. Only for show and scope; digests are exact."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def digests(op: str, key: str | None, text: str) -> tuple[bytes, str]:
    """Payload digest and content digest, of a content's canonical text."""
    content = sha256(text.encode()).hexdigest()
    quoted = "null" if key is None else encode_basestring(key)
    try:
        return sha256(f"{op} {quoted} {content}".encode()).digest(), content
    except UnicodeEncodeError:
        return payload_digest(op, key, content), content


def digests_column(
    ops: Sequence[str], keys: Sequence[str | None], texts: Sequence[str]
) -> tuple[list[bytes], list[str]]:
    """The same of many; no text holds a lone surrogate."""
    contents = [sha256(text.encode()).hexdigest() for text in texts]
    quoted = ["null" if key is None else encode_basestring(key) for key in keys]
    rows = zip(ops, quoted, contents, strict=True)
    return [sha256(f"{op} {key} {content}".encode()).digest() for op, key, content in rows], contents


def row_of(
    given: Any, where: str, signs: SpellingSigns, refuse: Callable[[str], Exception], needs_coordinate: bool = True
) -> dict[str, Any]:
    """A row for Collector.add from shapes.Fields. Raises: what `refuse` makes, BadCoordinate, Uncertain."""
    key = given.key
    coordinate = coordinate_seen(given.coordinate, where, signs)
    if coordinate is None and needs_coordinate:
        raise refuse("coordinate is null, and every event needs one")
    if given.digest is not None:
        if not isinstance(given.digest, str) or not given.digest or isinstance(given.digest, Number):
            raise refuse(f"digest {given.digest!r} is not a text")
        content = digest_given(given.digest)
        payload = payload_digest(given.op, key, content)
    else:
        text = content_text(given.content, given.op, refuse)
        payload, content = digests(given.op, key, text)
    return {
        "coordinate": coordinate,
        "head": _as_text(coordinate_seen(given.head, f"{where}, head", signs)),
        "lane": SINGLE_LANE if given.lane is None else str(given.lane),
        "event_id": None if given.event_id is None else held_text(str(given.event_id)),
        "op": given.op,
        "key": None if key is None else held_text(key),
        "payload_digest": payload,
        "content_digest": content if content.isascii() else held_text(content),
        "generation": integer(given.generation, "generation", refuse),
        "entry": integer(given.entry, "entry", refuse),
        "is_read": given.is_read,
    }


def content_text(content: Any, op: str, refuse: Callable[[str], Exception]) -> str:
    if content is ABSENT:
        return "null" if op == "delete" else ""
    try:
        return canonical_checked(content)
    except UncanonicalContent as error:
        raise refuse(str(error)) from error


def coordinate_seen(value: Any, where: str, signs: SpellingSigns) -> Any:
    """The coordinate as a number where it is one, else as text whose shape was seen. Raises: BadCoordinate, Uncertain."""
    if value is None:
        return None
    if type(value) is int:
        return value
    if isinstance(value, float):
        raise Uncertain
    if isinstance(value, bool) or not isinstance(value, str | int):
        if type(value).__name__ != "Decimal":
            raise BadCoordinate(where, f"{value}"[:60], "a whole number, or a text in the source's spelling")
        value = f"{value}"
    text = str(value).strip()
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    signs.see(text, where)
    return text


def _as_text(value: Any) -> str | None:
    return None if value is None else str(value)


def key_native(key: Any, refuse: Callable[[str], Exception]) -> str | None:
    if key is None or type(key) is str:
        return key
    if isinstance(key, float):
        raise Uncertain
    if isinstance(key, Number | int) and not isinstance(key, bool):
        return number_canonical(str(key))
    if isinstance(key, str):
        return str(key)
    raise refuse(f"key {key!r} is neither text nor null")


def integer(value: Any, name: str, refuse: Callable[[str], Exception]) -> int | None:
    if value is None:
        return None
    try:
        number = int(value)
    except (ValueError, TypeError) as error:
        raise refuse(f"{name} {value!r} is not a whole number") from error
    if not -(2**63) <= number < 2**63 or isinstance(value, float | bool):
        raise refuse(f"{name} {value!r} is not a 64-bit whole number")
    return number


def refuser(notes: FileNotes, line: int) -> Callable[[str], Exception]:
    return lambda problem: BadFile(notes.name, f"{notes.unit} {line}", problem, "")
