"""From a record to an event's fields: by the product's own columns, by a mapping, or by what a change log writes.

A shape gives `Fields` or raises NotAnEvent (a kind that holds none) or BadRecord (its line is rejected). A path names a
column or member as it is spelled; `a->b` or `a.b` goes into it; `=text` is a constant.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery_api.domain.errors import BadInput
from workers.evidence.canonical import ABSENT, Number
from workers.evidence.files import messages
from workers.evidence.files.debezium import (
    OPS,
    OUTBOX_COLUMNS,
    BadRecord,
    NotAnEvent,
    change_view,
    coordinate_of,
    is_message,
    key_text,
    table_of,
    unknown_members,
    unwrapped,
)
from workers.evidence.files.emitted import Emitted, emitted_of, prefix_of
from workers.evidence.files.messages import Message, content_of
from workers.evidence.files.options import ReadOptions
from workers.evidence.files.values import BadValue, typed

Parse = Callable[[str], Any]

OP_WORDS = {"insert": "insert", "update": "update", "delete": "delete", "create": "insert", "read": "insert", **OPS}
OP_WORDS |= {"i": "insert", "updated": "update", "deleted": "delete", "inserted": "insert", "created": "insert"}
_GTID = re.compile(r"\s*([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\s*:\s*([0-9]+)\s*", re.ASCII)
_MISSING = object()


@dataclass(slots=True)
class Fields:
    """An event as its record gives it. `is_read`: a snapshot read it. `unknown`: members the log did not hold.
    `is_key_taken`: the key is the content's id, for want of a message key. `emitted`: it is a logical decoding message.
    """

    coordinate: Any
    op: str
    key: str | None
    content: Any = ABSENT
    digest: Any = None
    lane: Any = None
    event_id: Any = None
    head: Any = None
    generation: Any = None
    entry: Any = None
    is_read: bool = False
    unknown: tuple[str, ...] = ()
    is_key_taken: bool = False
    emitted: Emitted | None = None


NOWHERE: Mapping[str, None] = dict.fromkeys(("lane", "event_id", "head", "generation", "entry", "digest"))
"""What a log's record has no member for: only a mapping says where it is."""


def path_get(view: Any, path: str) -> Any:
    """The value at a path; _MISSING where it is not there."""
    if path.startswith("="):
        return path[1:]
    if isinstance(view, Mapping) and path in view:
        return view[path]
    at = view
    for name in path.split("->") if "->" in path else path.split("."):
        name = name.strip()
        if isinstance(at, Mapping) and name in at:
            at = at[name]
        elif isinstance(at, list) and name.isdigit() and int(name) < len(at):
            at = at[int(name)]
        else:
            return _MISSING
    return at


def _composite(view: Any, path: str) -> Any:
    """A coordinate of several parts, `file:pos` or `lsn_commit:lsn`, is their texts with colons."""
    if ":" not in path or path.startswith("=") or (isinstance(view, Mapping) and path in view):
        return path_get(view, path)
    parts = [path_get(view, part) for part in path.split(":")]
    return _MISSING if _MISSING in parts else None if None in parts else ":".join(map(str, parts))


@dataclass
class Shape:
    """How the records of one file become events. `tables`: those met, with the line of each one's first event.
    `prefixes`: of messages that nobody asked for.
    """

    name: str
    options: ReadOptions
    maps: dict[str, str] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)
    takes_key_from_content: int = 0
    untied: int = 0
    prefixes: Counter[str] = field(default_factory=Counter)

    def fields(self, record: Any, line: int, parse: Parse) -> Fields:
        """The event of a record. Raises: NotAnEvent, BadRecord."""
        try:
            match self.name:
                case "columns":
                    return self._mapped(record, parse)
                case "debezium" | "debezium-outbox":
                    return self._changed(_message(record, parse), line, parse)
                case "router":
                    return self._routed(_message(record, parse), parse)
                case _:
                    return self._plain(_message(record, parse), parse)
        except BadValue as error:
            raise BadRecord(str(error)) from error

    def _mapped(self, view: Mapping[str, Any], parse: Parse, **defaults: Any) -> Fields:
        found = {
            name: _composite(view, path) if name in ("coordinate", "head") else path_get(view, path)
            for name, path in self.maps.items()
        }
        for name, value in found.items():
            if value is _MISSING and name in ("coordinate", "op", "value", "value_text", "digest", "event_id"):
                raise BadRecord(f"{name} is mapped to {self.maps[name]}, which is not there")
        found = {name: value for name, value in found.items() if value is not _MISSING}
        for name in ("coordinate", "op", "key", "lane", "event_id", "head", "generation", "entry", "digest"):
            if name not in self.maps and name in view and name not in defaults:
                found.setdefault(name, view[name])
        merged = {**defaults, **found}
        if self.options.by_event_id:  # an entry may be no more than an id
            merged["op"] = merged.get("op") or "insert"
        op = OP_WORDS.get(str(merged.get("op")).lower())
        if op is None:
            known = "insert, update, delete, or their first letters"
            raise BadRecord(
                f"op {merged.get('op')!r} is not one ({known}); where all are inserts, say --map op==insert"
            )
        fields = Fields(coordinate=merged.get("coordinate"), op=op, key=_key(merged.get("key")))
        for name in ("lane", "event_id", "head", "generation", "entry", "digest"):
            setattr(fields, name, merged.get(name))
        fields.content = self._content(view, merged, parse)
        fields.is_key_taken = self.name == "debezium" and not view["has_key"] and "key" not in self.maps
        fields.is_read, fields.unknown = bool(merged.get("is_read")), merged.get("unknown", ())
        gtid_lane(fields)
        return fields

    def _content(self, view: Mapping[str, Any], merged: dict[str, Any], parse: Parse) -> Any:
        if "value_text" in merged or ("value_text" in view and "value" not in merged and "value" not in view):
            content = merged.get("value_text", view.get("value_text"))
            return self._typed(content if content is None else _text(content), parse)
        if "content" in merged and "value" not in self.maps:
            return self._typed(merged["content"], parse)
        content = merged.get("value", view.get("value", ABSENT))
        if isinstance(content, bytes):
            content = _text(content)
        if isinstance(content, str) and content.startswith("\\x") and "value" not in self.options.types:
            content = _unhexed(content)
        if isinstance(content, str) and not isinstance(content, Number) and "value" not in self.options.types:
            try:
                content = parse(content)
            except ValueError as error:
                raise BadRecord(f"value {content[:40]!r} is not JSON: plain text is mapped as value_text") from error
        return self._typed(content, parse)

    def _typed(self, content: Any, parse: Parse) -> Any:
        types = self.options.types
        if not types or content is ABSENT:
            return content
        if "value" in types:
            return typed(content, types["value"], parse)
        if not isinstance(content, dict):
            return content
        return {name: typed(item, types[name], parse) if name in types else item for name, item in content.items()}

    def _changed(self, message: Message, line: int, parse: Parse) -> Fields:
        value, _ = unwrapped(message.value)
        if is_message(value):
            if self.options.prefixes:
                return self._emitted(emitted_of(message, value, self.options, parse), parse)
            self.prefixes[prefix_of(value)] += 1
        view = change_view(message, parse)
        table = table_of(view)
        if self.options.prefixes and not self.options.tables:
            raise NotAnEvent("other table")  # messages were asked for, and no table
        if table is not None:
            if not self.options.is_of(table):
                raise NotAnEvent("other table")
            self.tables.setdefault(table, line)
        image = view["before"] if view["op"] == "delete" else view["after"]
        if self.name == "debezium-outbox":
            if view["op"] != "insert":
                raise NotAnEvent("housekeeping")
            return self._outbox(view, image, parse)
        key = view["key"]
        if not view["has_key"]:
            key = image.get("id", image.get("_id")) if isinstance(image, dict) else None
        coordinate = None if "coordinate" in self.maps else coordinate_of(view)
        unknown = unknown_members(view["after"], self.options.placeholder) if view["op"] != "delete" else ()
        content = None if view["op"] == "delete" else view["after"]
        if "value" in self.maps and view["op"] == "delete":
            raise BadRecord("a delete has no after to take a mapped value from: use the preset debezium-outbox")
        return self._mapped(
            view,
            parse,
            coordinate=coordinate,
            key=key,
            content=content,
            op=view["op"],
            unknown=unknown,
            is_read=view["is_read"],
            **NOWHERE,
        )

    def _outbox(self, view: dict[str, Any], image: Any, parse: Parse) -> Fields:
        row = image if isinstance(image, dict) else {}
        content = row.get("payload")
        if isinstance(content, str):
            with contextlib.suppress(ValueError):  # else a payload of plain text
                content = parse(content)
        coordinate = None if "coordinate" in self.maps else coordinate_of(view)
        return self._mapped(
            view,
            parse,
            coordinate=coordinate,
            key=row.get("aggregateid"),
            content=content,
            op="insert",
            **{**NOWHERE, "event_id": row.get("id")},
            is_read=view["is_read"],
            unknown=unknown_members(row, self.options.placeholder),
        )

    def _emitted(self, emitted: Emitted, parse: Parse) -> Fields:
        fields = self._mapped(
            emitted.view,
            parse,
            coordinate=None if "coordinate" in self.maps else emitted.coordinate,
            key=emitted.key,
            content=emitted.content,
            op="insert",
            **NOWHERE,
        )
        fields.emitted = emitted
        fields.is_key_taken = emitted.is_key_taken and "key" not in self.maps
        return fields

    def _routed(self, message: Message, parse: Parse) -> Fields:
        """A message of the outbox event router: its event's id is a header, and so a null value is an event too."""
        value, _ = unwrapped(None if message.value is messages.ABSENT else message.value)
        event_id = message.headers.get("id")
        if event_id is None:
            if value is None:
                raise NotAnEvent("tombstone")
            raise BadRecord("it has no header id")
        value = content_of(value, parse)
        return self._broker_mapped(message, value, parse, event_id=event_id)

    def _plain(self, message: Message, parse: Parse) -> Fields:
        """A message of any topic: an event of its own, at its offset."""
        value, _ = unwrapped(None if message.value is messages.ABSENT else message.value)
        if value is None:
            raise NotAnEvent("tombstone")
        if value == "" and message.value == "":
            raise NotAnEvent("empty value")
        return self._broker_mapped(message, value, parse)

    def _broker_mapped(self, message: Message, value: Any, parse: Parse, event_id: Any = None) -> Fields:
        key, _ = unwrapped(None if message.key is messages.ABSENT else message.key)
        if isinstance(value, str) and value.startswith("{") and "value_text" not in self.maps:
            raise BadRecord("its value begins like JSON and is none; where that is its text, --map value_text=value")
        view = {
            "key": key,
            "value": value,
            "headers": message.headers,
            "topic": message.topic,
            "partition": message.partition,
            "offset": message.offset,
        }
        by_offset = "coordinate" not in self.maps
        return self._mapped(
            view,
            parse,
            op="insert",
            key=key,
            content=value,
            event_id=event_id,
            coordinate=message.offset,
            lane=message.partition if by_offset else None,
            head=None,
            generation=None,
            entry=None,
            digest=None,
        )


def _message(record: Any, parse: Parse) -> Message:
    if isinstance(record, Message):
        return record
    if messages.is_wrapper(record):
        return messages.message_of(record, parse)
    if isinstance(record, dict) and record.keys() <= {"key", "value", "headers", "topic", "partition", "offset"}:
        return Message(
            key=content_of(record["key"], parse) if "key" in record else messages.ABSENT,
            value=content_of(record.get("value"), parse),
            headers=record.get("headers") or {},
        )
    return Message(value=content_of(record, parse))


def _key(key: Any) -> str | None:
    if isinstance(key, bytes):
        return _text(key)
    if isinstance(key, bool | list):
        raise BadRecord(f"key {key!r} is neither text nor null")
    return key_text(key)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise BadRecord("bytes that are no UTF-8: say --type value=bytes") from error
    return value if isinstance(value, str) else str(value)


def _unhexed(text: str) -> str:
    """What PostgreSQL's text form of bytes holds, where that is text."""
    try:
        return bytes.fromhex(text[2:]).decode()
    except ValueError as error:
        raise BadRecord(f"value {text[:40]!r} is bytes that are no text: say --type value=bytes") from error


def gtid_lane(fields: Fields) -> None:
    """A GTID counts in its own server: the server is the lane."""
    if isinstance(fields.coordinate, str) and fields.lane is None and (match := _GTID.fullmatch(fields.coordinate)):
        fields.lane, fields.coordinate = match[1].lower(), match[2]


def shape_make(name: str, options: ReadOptions) -> Shape:
    """Raises: BadInput for a mapping that contradicts itself."""
    if "value" in options.maps and "value_text" in options.maps:
        raise BadInput("--map", "value and value_text are both mapped", "A content is JSON or plain text: map one.")
    return Shape(name, options, {**(options.cell_maps if name == "columns" else {}), **options.maps})


def looks_like_outbox(row: Any) -> bool:
    return isinstance(row, dict) and row.keys() >= OUTBOX_COLUMNS
