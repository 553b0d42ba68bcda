"""Rows in the product's own columns, a stretch of them at once: what the exact way would see otherwise is left to it.

`Uncertain` of a stretch means that each of its rows is read on its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import orjson

from recovery_api.domain.frontiers import SINGLE_LANE
from workers.evidence.files.collecting import digests_column
from workers.evidence.files.native import COLUMNS, NEEDED, OPS
from workers.evidence.quick import QUICK_BYTES, Uncertain, is_each_member_once
from workers.evidence.quick_columns import canonical_column

Columns = dict[str, Sequence[Any]]
"""As Collector.stretch takes them."""

BARE = frozenset({*NEEDED, "value"})
_SERVED = COLUMNS - {"digest", "value_text"}
_OPS = frozenset(OPS)
_WHOLE = 1 << 63
_NONE = type(None)


def lines_columns(bodies: Sequence[bytes]) -> Columns:
    """Of JSON lines that all have the same columns, each of them the product's. Raises: Uncertain."""
    records = _parsed(bodies)
    if set(map(type, records)) != {dict}:
        raise Uncertain
    shapes = set(map(tuple, records))
    names = shapes.pop()
    if shapes or not BARE <= set(names) <= _SERVED:
        raise Uncertain
    columns: Columns = dict(zip(names, zip(*map(itemgetter(*names), records), strict=True), strict=True))
    contents = columns.pop("value")
    if _NONE in set(map(type, contents)):
        raise Uncertain  # a column value_text may speak for it
    spelled = b"\n".join(bodies)
    texts, members = canonical_column(contents, spelled)
    if not is_each_member_once(spelled, members + len(names) * len(records)):
        raise Uncertain
    return _checked(columns, texts)


def cells_columns(columns: Mapping[str, Sequence[Any]]) -> Columns:
    """Of rows of cells, of BARE; null is None. Raises: Uncertain."""
    coordinates, contents = columns["coordinate"], columns["value"]
    if set(map(type, contents)) != {str}:
        raise Uncertain
    if set(map(type, coordinates)) == {str}:
        digits, widths = "".join(coordinates), set(map(len, coordinates))
        if not (digits.isascii() and digits.isdigit()) or 0 in widths or max(widths) > 18:
            raise Uncertain
        coordinates = list(map(int, coordinates))
    try:
        spelled = "\n".join(contents).encode()
    except UnicodeEncodeError as error:
        raise Uncertain from error
    texts, members = canonical_column(_parsed(contents), spelled)
    if not is_each_member_once(spelled, members):
        raise Uncertain
    return _checked({**columns, "coordinate": coordinates}, texts)


def _parsed(texts: Sequence[bytes] | Sequence[str]) -> list[Any]:
    if max(map(len, texts)) > QUICK_BYTES:
        raise Uncertain
    try:
        return list(map(orjson.loads, texts))
    except orjson.JSONDecodeError as error:
        raise Uncertain from error


def _checked(columns: Columns, texts: list[str]) -> Columns:
    """The columns as they are collected, each of the kind that it has to be, with the digests."""
    ops, keys = columns["op"], columns["key"]
    try:
        is_known = _OPS.issuperset(ops)
    except TypeError as error:  # a list or an object, which no set can hold
        raise Uncertain from error
    if not is_known or set(map(type, columns["coordinate"])) != {int} or not set(map(type, keys)) <= {str, _NONE}:
        raise Uncertain
    found = {name: _extra(name, column) for name, column in columns.items() if name not in BARE}
    payloads, contents = digests_column(ops, keys, texts)
    found |= {"coordinate": columns["coordinate"], "op": ops, "key": keys}
    return found | {"payload_digest": payloads, "content_digest": contents}


def _extra(name: str, column: Sequence[Any]) -> Sequence[Any]:
    """A column beside the four that every event needs. Raises: Uncertain."""
    kinds = set(map(type, column)) - {_NONE}
    if name in ("lane", "event_id"):
        if not kinds <= {str}:
            raise Uncertain
        return [SINGLE_LANE if one is None else one for one in column] if name == "lane" else column
    if not kinds <= {int} or any(one is not None and not -_WHOLE < one < _WHOLE for one in column):
        raise Uncertain
    return [None if one is None else str(one) for one in column] if name == "head" else column
