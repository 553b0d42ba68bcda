"""A topic's messages as they were dumped: kcat, the console consumer, a consumer's own dump. One shape for all of them.

The law: a message's key, value and headers are what the producer wrote; topic, partition and offset are the broker's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Parse = Callable[[str], Any]
ABSENT = object()

_CONSOLE = re.compile(
    r"(?:(?P<stamp>(?:CreateTime|LogAppendTime):-?\d+|NO_TIMESTAMP)(?:\t|$))?(?:Partition:(?P<partition>\d+)(?:\t|$))?"
    r"(?:Offset:(?P<offset>\d+)(?:\t|$))?(?P<rest>.*)",
    re.ASCII | re.DOTALL,
)
CONSOLE_SIGN = re.compile(rb"(?:CreateTime|LogAppendTime):-?\d+\t|Partition:\d+\t|Offset:\d+\t|NO_TIMESTAMP\t")
CONSOLE_END = re.compile(r"Processed a total of \d+ messages")
_HEADERS = re.compile(r"NO_HEADERS|[^\t:,]+:[^\t]*", re.ASCII)

KCAT_FIELDS = {
    "s": "(?P<value>.*)",
    "k": "(?P<key>.*?)",
    "t": r"(?P<topic>[^\s]*?)",
    "p": r"(?P<partition>\d+)",
    "o": r"(?P<offset>\d+)",
    "T": r"(?P<stamp>-?\d+)",
    "h": "(?P<headers>.*?)",
    "S": r"(?P<size>-?\d+)",
    "K": r"(?P<key_size>-?\d+)",
    "%": "%",
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0"}


@dataclass(slots=True)
class Message:
    """`key` and `value`: parsed JSON, or a text; None where null; ABSENT where the dump does not show it."""

    key: Any = ABSENT
    value: Any = ABSENT
    headers: dict[str, Any] = field(default_factory=dict)
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


def is_wrapper(record: Any) -> bool:
    """Whether an object is a message with the broker's own words around it: kcat -J, or a consumer's dump."""
    return (
        isinstance(record, dict)
        and {"partition", "offset"} <= record.keys()
        and ("payload" in record or "value" in record)
    )


def message_of(record: dict[str, Any], parse: Parse) -> Message:
    """The message of a wrapper. In kcat's, key and payload are texts; in others they may be parsed already."""
    value = record["value"] if "value" in record else record["payload"]
    return Message(
        key=content_of(record.get("key"), parse),
        value=content_of(value, parse),
        headers=_headers(record.get("headers")),
        topic=record.get("topic"),
        partition=record["partition"],
        offset=record["offset"],
    )


def content_of(value: Any, parse: Parse) -> Any:
    """A text that is a JSON object, list or text as what it spells; anything else as it stands."""
    if isinstance(value, str) and value[:1] in ("{", "[", '"'):
        try:
            return parse(value)
        except ValueError:
            return value
    return value


def _headers(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    if not isinstance(given, list):
        return {}
    if given and isinstance(given[0], list):
        return {str(pair[0]): pair[1] for pair in given if len(pair) == 2}
    if given and isinstance(given[0], dict):
        return {str(one.get("key")): one.get("value") for one in given}
    return {str(name): value for name, value in zip(given[::2], given[1::2], strict=False)}


def console_message(line: str, has_key: bool, has_headers: bool, parse: Parse) -> Message | None:
    """The message of a line of kafka-console-consumer's: what was printed, with tabs between; None: not one."""
    match = _CONSOLE.fullmatch(line)
    assert match
    rest, headers = match["rest"], {}
    if has_headers:
        shown, tab, rest = rest.partition("\t")
        if not tab or not _HEADERS.fullmatch(shown):
            return None
        if shown != "NO_HEADERS":
            headers = _headers_text(shown, ":")
    key: Any = ABSENT
    if has_key:
        key, tab, rest = rest.partition("\t")
        if not tab:
            return None
        key = None if key == "null" else content_of(key, parse)
    value: Any = None if rest == "null" else content_of(rest, parse)
    partition, offset = match["partition"], match["offset"]
    return Message(
        key,
        value,
        headers,
        None,
        None if partition is None else int(partition),
        None if offset is None else int(offset),
    )


def console_rest(line: str) -> str:
    """What follows the timestamp, partition and offset of a line of the console consumer's."""
    match = _CONSOLE.fullmatch(line)
    assert match
    return match["rest"]


def is_headers(cell: str) -> bool:
    return cell == "NO_HEADERS" or (cell[:1] not in ("{", "[", '"') and bool(_HEADERS.fullmatch(cell)))


def _headers_text(shown: str, mark: str) -> dict[str, Any]:
    """`a:1,b:2`; a comma within a value belongs to it where no name follows."""
    found: dict[str, Any] = {}
    last = ""
    for part in shown.split(","):
        name, has, value = part.partition(mark)
        if has and re.fullmatch(r"[\w.\-]+", name):
            last = name
            found[last] = None if value == "null" else value
        elif last:
            found[last] = f"{found[last]},{part}"
    return found


def kcat_pattern(spelled: str) -> re.Pattern[str]:
    """What a format string that was given to kcat -f makes of a message, as a pattern over one line.

    >>> kcat_pattern(r"%p/%o %k %s\\n").fullmatch("0/12 7 {}")["offset"]
    '12'
    """
    text = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), spelled)
    parts, at = [], 0
    used: set[str] = set()
    for match in re.finditer("%(.)", text):
        parts.append(re.escape(text[at : match.start()]))
        letter = match[1]
        if letter not in KCAT_FIELDS or (letter != "%" and letter in used):
            raise ValueError(f"%{letter}")
        used.add(letter)
        parts.append(KCAT_FIELDS[letter])
        at = match.end()
    tail = text[at:]
    if not tail.endswith("\n") or "\n" in "".join(parts):
        raise ValueError("a message has to end with its line")
    parts.append(re.escape(tail[:-1]))
    return re.compile("".join(parts), re.DOTALL)


def kcat_message(line: str, pattern: re.Pattern[str], parse: Parse) -> Message | None:
    match = pattern.fullmatch(line)
    if not match:
        return None
    found = match.groupdict()
    value, key = found.get("value", ABSENT), found.get("key", ABSENT)
    size, key_size = found.get("size"), found.get("key_size")
    if size is not None and int(size) >= 0 and isinstance(value, str) and len(value.encode()) != int(size):
        return None
    if size == "-1" or (size is None and value == "NULL"):
        value = None
    if key_size == "-1" or (key_size is None and key == "NULL"):
        key = None
    return Message(
        content_of(key, parse),
        content_of(value, parse),
        _headers_text(found.get("headers") or "", "="),
        found.get("topic"),
        None if found.get("partition") is None else int(found["partition"]),
        None if found.get("offset") is None else int(found["offset"]),
    )
