"""What a change log's record is: an event of a row, or one of the kinds that hold none.

Source: Debezium's documentation ("Connectors", "Outbox Event Router", "New Record State Extraction") and records as its
connectors wrote them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from workers.evidence.canonical import Number
from workers.evidence.files.messages import ABSENT, Message
from workers.evidence.files.values import schema_decode
from workers.evidence.quick import canonical_checked

Parse = Callable[[str], Any]

OPS = {"c": "insert", "r": "insert", "u": "update", "d": "delete"}
OUTBOX_COLUMNS = {"id", "aggregatetype", "aggregateid", "type", "payload"}


class NotAnEvent(Exception):
    """A record of a kind that holds no event (notes.IGNORED)."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class BadRecord(ValueError):
    """A record that is none of what was looked for: its line is rejected."""


def unwrapped(value: Any) -> tuple[Any, Mapping[str, Any] | None]:
    """A Connect envelope's payload and schema; anything else as it stands."""
    if isinstance(value, dict) and value.keys() == {"schema", "payload"}:
        schema = value["schema"]
        return value["payload"], schema if isinstance(schema, dict) and schema else None
    return value, None


def is_change(value: Any) -> bool:
    value, _ = unwrapped(value)
    return isinstance(value, dict) and "op" in value and bool({"after", "before", "source"} & value.keys())


def is_flattened(value: Any) -> bool:
    value, _ = unwrapped(value)
    return isinstance(value, dict) and any(
        name in ("__op", "__deleted") or name.startswith("__source_") for name in value
    )


def other_kind(value: Any) -> str | None:
    """The kind of a record that a connector writes beside its events; None: none of them."""
    value, _ = unwrapped(value)
    if not isinstance(value, dict):
        return None
    if "ddl" in value or ("databaseName" in value and "tableChanges" in value):
        return "schema change"
    if value.get("status") in ("BEGIN", "END") and "event_count" in value:
        return "transaction"
    if value.keys() == {"ts_ms"} or value.keys() == {"ts_ms", "ts_us", "ts_ns"}:
        return "heartbeat"
    if is_change(value) and value["op"] == "t":
        return "truncate"
    if is_message(value):
        return "message"
    return None


def is_message(value: Any) -> bool:
    """Whether it is a logical decoding message: what a client wrote into the log, and into no table."""
    return isinstance(value, dict) and value.get("op") == "m" and "message" in value


def change_view(message: Message, parse: Parse) -> dict[str, Any]:
    """The parts of a change: op, before, after, source, transaction, typed where a schema is there. Raises: NotAnEvent,
    BadRecord."""
    value = message.value
    if isinstance(value, str) and value == "":
        raise NotAnEvent("empty value")
    value, schema = unwrapped(value)
    if value is None:
        raise NotAnEvent("tombstone")
    if kind := other_kind(value):
        raise NotAnEvent(kind)
    if is_change(value):
        return _change(message, value, schema, parse)
    if is_flattened(value):
        return _flattened(message, value, schema, parse)
    raise BadRecord("it is no change event")


def _change(message: Message, value: dict[str, Any], schema: Mapping[str, Any] | None, parse: Parse) -> dict[str, Any]:
    op = value["op"]
    if op not in OPS:
        raise BadRecord(f"op {op!r} is not one of {', '.join(OPS)}")
    images = {name: _image(value.get(name), _member(schema, name), parse) for name in ("before", "after")}
    if op != "d" and images["after"] is None:
        raise BadRecord(f"op {op!r} without an after")
    return {**value, **images, "op": OPS[op], "is_read": op == "r", **message_view(message)}


def _flattened(
    message: Message, value: dict[str, Any], schema: Mapping[str, Any] | None, parse: Parse
) -> dict[str, Any]:
    columns = _image(value, schema, parse)
    row = {name: item for name, item in columns.items() if not name.startswith("__")}
    marks = {name[2:]: item for name, item in value.items() if name.startswith("__")}
    is_deleted = str(marks.get("deleted")).lower() == "true"
    op = marks.get("op") or ("d" if is_deleted else None)
    if op not in OPS:
        raise BadRecord("it has no __op: let the transform add it (add.fields=op), or say --map op==insert")
    source = {name.removeprefix("source_"): item for name, item in marks.items() if name.startswith("source_")}
    for name in ("lsn", "table", "file", "pos", "row", "gtid", "txId", "db", "schema"):
        if name in marks:
            source.setdefault(name, marks[name])
    return {
        "op": OPS[op],
        "before": row if op == "d" else None,
        "after": None if op == "d" else row,
        "source": source,
        "is_read": op == "r",
        **message_view(message),
    }


def message_view(message: Message) -> dict[str, Any]:
    key, _ = unwrapped(None if message.key is ABSENT else message.key)
    return {
        "key": key,
        "has_key": message.key is not ABSENT,
        "headers": message.headers,
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
    }


def _member(schema: Mapping[str, Any] | None, name: str) -> Mapping[str, Any] | None:
    for field in (schema or {}).get("fields") or ():
        if field.get("field") == name:
            found: Mapping[str, Any] = field
            return found
    return None


def _image(row: Any, schema: Mapping[str, Any] | None, parse: Parse) -> Any:
    if isinstance(row, str):  # document stores write it as text
        try:
            row = parse(row)
        except ValueError as error:
            raise BadRecord("its row is a text that is no JSON") from error
    return row if schema is None else schema_decode(row, schema, parse)


def table_of(view: Mapping[str, Any]) -> str | None:
    """The table that an event is of, as its source names it."""
    source = view.get("source") or {}
    names = [source.get(part) for part in ("db", "schema", "table")]
    if not names[2]:
        collection = source.get("collection")
        return f"{names[0]}.{collection}" if collection else None
    return f"{names[1] or names[0]}.{names[2]}" if names[1] or names[0] else str(names[2])


def coordinate_of(view: Mapping[str, Any]) -> Any:
    """Where the source's log holds the event, in its commit order; None: the record does not say.

    PostgreSQL: the commit before its transaction and its own position, for positions alone interleave. MySQL and MariaDB:
    binlog file, position, row. Others: their own number.
    """
    source = view.get("source") or {}
    if source.get("lsn") is not None:
        own = int(source["lsn"])
        commit = source.get("lsn_commit", source.get("commit_lsn", view.get("lsn_commit")))
        if commit is None and source.get("sequence") is not None:
            commit = _sequence(source["sequence"])
        return own if commit is None else f"{_lsn(int(commit))}:{_lsn(own)}"
    if source.get("file") is not None and source.get("pos") is not None:
        return f"{source['file']}:{source['pos']}:{source.get('row') or 0}"
    for name in ("ord", "scn"):
        if source.get(name) is not None:
            return source[name]
    return None


def _sequence(text: Any) -> int:
    """The end of the commit before, of `["24654072","24654176"]`; 0 where there was none."""
    first = str(text).strip("[] ").split(",")[0].strip().strip('"')
    return 0 if first in ("null", "") else int(first)


def _lsn(number: int) -> str:
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


def key_text(key: Any) -> str | None:
    """A row's key as one text: its only column's value, or the canonical text of several."""
    if isinstance(key, dict) and len(key) == 1:
        key = next(iter(key.values()))
    if key is None:
        return None
    if isinstance(key, str) and not isinstance(key, Number):
        return key
    return canonical_checked(key)


def unknown_members(row: Any, placeholder: str) -> tuple[str, ...]:
    """The columns whose value the log did not hold: the placeholder, as text, as bytes, or in a list."""
    if not isinstance(row, dict):
        return ()
    encoded = base64.b64encode(placeholder.encode()).decode()
    as_bytes = "\\x" + placeholder.encode().hex()
    marks = (placeholder, encoded, as_bytes)

    def is_mark(value: Any) -> bool:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        return isinstance(value, str) and not isinstance(value, Number) and value in marks

    return tuple(name for name, value in row.items() if is_mark(value))
