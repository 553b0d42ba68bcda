"""Logical decoding messages as events: an outbox without a table, written into the log itself.

The law: a message is the event at its own log position, once, however often its connector publishes it. One that no
transaction wrote lies in the log whether or not anything was committed, so nothing ties it to a commit.

Source: Debezium's documentation (PostgreSQL connector, "Message events"); PostgreSQL's (pg_logical_emit_message).
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workers.evidence.files.debezium import BadRecord, NotAnEvent, coordinate_of, message_view
from workers.evidence.files.messages import Message
from workers.evidence.files.options import ReadOptions

Parse = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Emitted:
    """A message as an event. `view`: its parts, the content decoded. `position`: its own in the log.

    `told`: a number that equal prefixes and contents share. `is_untied`: no transaction wrote it.
    """

    view: dict[str, Any]
    content: Any
    key: Any
    is_key_taken: bool
    coordinate: Any
    position: Any
    told: int
    is_untied: bool


def emitted_of(message: Message, value: dict[str, Any], options: ReadOptions, parse: Parse) -> Emitted:
    """The event of a message with a prefix that was asked for. Raises: NotAnEvent, BadRecord."""
    given = value["message"]
    if not isinstance(given, dict) or not isinstance(given.get("prefix"), str):
        raise BadRecord("its message has no prefix")
    if given["prefix"] not in options.prefixes:
        raise NotAnEvent("other prefix")
    source = value.get("source") or {}
    is_untied = source.get("txId") is None
    if is_untied and not (options.is_record or options.is_untied_committed):
        raise BadRecord(
            "it has no txId: no transaction wrote it, so nothing ties it to a commit; where such messages are committed "
            "events all the same, say --non-transactional committed"
        )
    content = _content(given.get("content"), options, parse)
    view = {**value, **message_view(message), "op": "insert", "message": {**given, "content": content}}
    is_key_taken = view["key"] in (None, {"prefix": given["prefix"]})  # a connector's own key is the prefix
    if is_key_taken:
        view["key"] = content.get("id") if isinstance(content, dict) else None
    coordinate = coordinate_of(value)
    if coordinate is None and not options.is_record:
        raise BadRecord("its source has no lsn, so nothing shows whether it was published before")
    return Emitted(
        view=view,
        content=content,
        key=view["key"],
        is_key_taken=is_key_taken,
        coordinate=coordinate,
        position=source.get("lsn", coordinate),
        told=hash((given["prefix"], given.get("content"))),
        is_untied=is_untied,
    )


def prefix_of(value: dict[str, Any]) -> str:
    """A message's prefix as a text to show."""
    message = value["message"]
    return str(message.get("prefix")) if isinstance(message, dict) else str(message)


def _content(given: Any, options: ReadOptions, parse: Parse) -> Any:
    """What base64 spells: JSON, or what `--type value=` says. Raises: BadRecord."""
    kind = options.types.get("value")
    if given is None or kind == "bytes":
        return given
    try:
        text = base64.b64decode(given, validate=True).decode()
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadRecord("its content is no base64 of a text: bytes are --type value=bytes") from error
    if kind is not None:
        return text
    try:
        return parse(text)
    except ValueError as error:
        raise BadRecord(f"its content {text[:40]!r} is not JSON: plain text is --type value=text") from error


@dataclass
class Published:
    """The messages that one export's connector published, by lane and log position: some 250 bytes of memory each.

    `again`: by lane and coordinate of the event, how many times more it was published.
    """

    again: Counter[tuple[str, Any]] = field(default_factory=Counter)
    _seen: dict[tuple[str, Any], tuple[int, Any]] = field(default_factory=dict)

    def once(self, emitted: Emitted, lane: str, coordinate: Any) -> None:
        """Takes note of a message; one that was there is no second event. Raises: NotAnEvent, BadRecord."""
        at = (lane, emitted.position)
        told, first = self._seen.setdefault(at, (emitted.told, None))
        if first is None:
            self._seen[at] = (told, coordinate)
        elif told != emitted.told:
            raise BadRecord(f"its log position {emitted.position} was that of a message with another content before")
        else:
            self.again[lane, first] += 1
            raise NotAnEvent("replay")
