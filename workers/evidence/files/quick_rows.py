"""Rows in the product's own columns, as fast as Python goes: what the exact way would see otherwise is left to it.

`Uncertain` and None mean the same: read it the exact way.
"""

from __future__ import annotations

from typing import Any

from recovery_api.domain.frontiers import SINGLE_LANE
from workers.evidence.files.collecting import digests
from workers.evidence.files.native import COLUMNS, NEEDED, OPS
from workers.evidence.quick import Uncertain, canonical_quick, is_each_member_once, record_quick

Bare = tuple[int, str, str | None, str]
"""Coordinate, op, key, and the content's canonical text."""

_known: set[tuple[str, ...]] = set()


def line_bare(body: bytes) -> Bare:
    """A JSON line of the four columns that every event needs and no other. Raises: Uncertain, KeyError."""
    record = record_quick(body)
    if type(record) is not dict or len(record) != 4:
        raise Uncertain
    op, key, coordinate, value = record["op"], record["key"], record["coordinate"], record["value"]
    if op not in OPS or type(coordinate) is not int or value is None:
        raise Uncertain
    if key is not None and (type(key) is not str or not key.isascii()):
        raise Uncertain
    text, members = canonical_quick(value)
    if not is_each_member_once(body, 4 + members):
        raise Uncertain
    return coordinate, op, key, text


def cells_bare(record: dict[str, Any]) -> Bare | None:
    """A row of texts, of the same four columns."""
    try:
        op, key, coordinate, value = record["op"], record["key"], record["coordinate"], record["value"]
    except KeyError:
        return None
    if len(record) != 4 or op not in OPS or type(value) is not str:
        return None
    if type(coordinate) is str and len(coordinate) < 19 and coordinate.isascii() and coordinate.isdigit():
        coordinate = int(coordinate)
    if type(coordinate) is not int or (key is not None and (type(key) is not str or not key.isascii())):
        return None
    try:
        body = value.encode()
        text, members = canonical_quick(record_quick(body))
    except (Uncertain, UnicodeEncodeError, RecursionError):
        return None
    return (coordinate, op, key, text) if is_each_member_once(body, members) else None


def line_row(body: bytes) -> dict[str, Any]:
    """A JSON line of more columns, all of them the product's, as Collector.add takes it. Raises: Uncertain."""
    record = record_quick(body)
    if type(record) is not dict:
        raise Uncertain
    names = tuple(record)
    if names not in _known:
        if not (set(names) <= COLUMNS and "value" in record and set(NEEDED) <= set(names)):
            raise Uncertain
        _known.add(names)
    op, key, coordinate = record["op"], record["key"], record["coordinate"]
    if op not in OPS or type(coordinate) is not int or (type(key) is not str and key is not None):
        raise Uncertain
    if record["value"] is None or record.get("digest") is not None or (key is not None and not key.isascii()):
        raise Uncertain
    text, members = canonical_quick(record["value"])
    if not is_each_member_once(body, len(names) + members):
        raise Uncertain
    return _row(record, op, key, coordinate, text)


def _row(record: dict[str, Any], op: str, key: str | None, coordinate: int, text: str) -> dict[str, Any]:
    payload, content = digests(op, key, text)
    row = {
        "coordinate": coordinate,
        "lane": SINGLE_LANE,
        "op": op,
        "key": key,
        "payload_digest": payload,
        "content_digest": content,
        "is_read": False,
    }
    for name in ("head", "lane", "event_id", "generation", "entry"):
        value = record.get(name)
        if value is None:
            continue
        if name in ("generation", "entry", "head") and (type(value) is not int or abs(value) >= 2**63):
            raise Uncertain
        if name in ("lane", "event_id") and (type(value) is not str or not value.isascii()):
            raise Uncertain
        row[name] = str(value) if name == "head" else value
    return row
