"""The canonical text, several times faster, for whatever a fast JSON reader gives exactly.

The law: nothing is guessed. Where a float may have been rounded or a member repeated, `Uncertain` is raised, and the
caller reads the text again the exact way (workers.evidence.canonical).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any

import orjson

from workers.evidence.canonical import canonical

SHAPES_KEPT = 4096
QUICK_BYTES = 1 << 20
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = frozenset({str, int, bool, type(None)})
_encode: Callable[[Any, int], tuple[str, ...]] = c_make_encoder(
    None, None, encode_basestring, None, ": ", ", ", False, False, True
)
_orders: dict[tuple[str, ...], list[str]] = {}


class Uncertain(Exception):
    """The fast way cannot vouch for this text."""


def record_quick(line: bytes) -> Any:
    """What a line of JSON spells; numbers that are not 64-bit whole numbers come as float. Raises: Uncertain."""
    if len(line) > QUICK_BYTES:  # its reader takes many times the size of what it reads
        raise Uncertain
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Uncertain from error


def canonical_quick(content: Any) -> tuple[str, int]:
    """The canonical text of a content, and how many members its objects have together. Raises: Uncertain.

    >>> canonical_quick({"bb": 1, "a": [True, None, "é"]})
    ('{"a": [true, null, "é"], "bb": 1}', 2)
    """
    kind = type(content)
    if kind is str:
        return encode_basestring(content), 0
    if kind in _PLAIN:
        return "".join(_encode(content, 0)), 0
    members = [0]
    return "".join(_encode(_in_order(content, members), 0)), members[0]


def is_each_member_once(line: bytes, members: int) -> bool:
    """Whether this many members is all that the line spells.

    Every member has a quote and a colon after it; so may a text that begins with a colon, which counts one too many and is
    False as well. Blanks between the two would hide a member, and make it False.
    """
    found = line.count(b'":')
    if found == members == line.count(b":"):
        return True
    if b" :" in line or b"\t:" in line or b"\r:" in line or b"\n:" in line:
        return False
    if found == members:
        return True
    if b"\\" not in line:
        return False
    bare = line.replace(b"\\\\", b"").replace(b'\\"', b"")  # quotes within texts are no ends of names
    return bare.count(b'":') == members


def order_of(names: tuple[str, ...]) -> list[str]:
    """An object's members in canonical order: by length in bytes, then by bytes."""
    order = _orders.get(names)
    if order is None:
        order = sorted(names)
        order.sort(key=len if "".join(order).isascii() else lambda name: len(name.encode()))
        if len(_orders) < SHAPES_KEPT:
            _orders[names] = order
    return order


def _in_order(content: Any, members: list[int]) -> Any:
    kind = type(content)
    if kind is dict:
        names = tuple(content)
        members[0] += len(names)
        order = order_of(names)
        return {name: item if type(item := content[name]) in _PLAIN else _in_order(item, members) for name in order}
    if kind is list:
        return [item if type(item) in _PLAIN else _in_order(item, members) for item in content]
    if kind in _PLAIN:
        return content
    raise Uncertain


def canonical_checked(content: Any) -> str:
    """The canonical text of a content that may hold exact numbers. Raises: Uncertain where it holds a float."""
    try:
        text = canonical_quick(content)[0]
    except Uncertain:
        if _has_float(content):
            raise
        return canonical(content)
    except (RecursionError, UnicodeEncodeError):
        return canonical(content)
    return text if text.isascii() or not _LONE_SURROGATE.search(text) else canonical(content)


def parse_quick(text: str | bytes) -> Any:
    """What a JSON text spells, every member once. Raises: Uncertain."""
    line = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    content = record_quick(line)
    if not is_each_member_once(line, _members_of(content)):
        raise Uncertain
    return content


def _members_of(content: Any) -> int:
    kind = type(content)
    if kind is dict:
        return len(content) + sum(_members_of(item) for item in content.values() if type(item) not in _PLAIN)
    if kind is list:
        return sum(_members_of(item) for item in content if type(item) not in _PLAIN)
    return 0


def _has_float(content: Any) -> bool:
    kind = type(content)
    if kind is dict:
        return any(_has_float(item) for item in content.values())
    if kind is list:
        return any(_has_float(item) for item in content)
    return kind is float
