"""How an altered entry differs from its event, in words: members by name, never their values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from workers.evidence.canonical import ABSENT, canonical
from workers.evidence.files.values import BadValue, instant_text

NAMED = 4
_ZONE = timedelta(minutes=15)
_FARTHEST = timedelta(hours=14)


def difference_says(event: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """What differs of two events as they are shown (op, key, value).

    >>> difference_says({"op": "insert", "value": {"a": 1, "b": 2}}, {"op": "insert", "value": {"a": 1, "b": 3}})
    'b differs'
    >>> difference_says({"value": {"at": "2026-02-01T01:00:00Z"}}, {"value": {"at": "2026-02-01T09:00:00Z"}})
    'at differs by exactly +8 h (a zone)'
    """
    said = [f"{name} differs" for name in ("op", "key") if event.get(name) != entry.get(name)]
    mine, theirs = (_content(one) for one in (event, entry))
    if isinstance(mine, dict) and isinstance(theirs, dict):
        names = [*mine, *(name for name in theirs if name not in mine)]
        unequal = [name for name in names if not _are_equal(mine.get(name, ABSENT), theirs.get(name, ABSENT))]
        said += [_member(name, mine.get(name, ABSENT), theirs.get(name, ABSENT)) for name in unequal[:NAMED]]
        if len(unequal) > NAMED:
            said.append(f"and {len(unequal) - NAMED} more")
    elif not _are_equal(mine, theirs):
        said.append(_member("the content", mine, theirs))
    return ", ".join(said)


def _content(event: Mapping[str, Any]) -> Any:
    for name in ("value", "value_text", "digest"):
        if event.get(name) is not None:
            return event[name]
    return None


def _are_equal(mine: Any, theirs: Any) -> bool:
    return canonical(mine) == canonical(theirs)


def _member(name: str, mine: Any, theirs: Any) -> str:
    if mine is ABSENT or theirs is ABSENT:
        return f"{name} is {'only in the record' if mine is ABSENT else 'not in the record'}"
    try:
        first, second = (datetime.fromisoformat(instant_text(str(one))) for one in (mine, theirs))
    except BadValue:
        return f"{name} differs"
    apart = second - first
    if abs(apart) <= _FARTHEST and not apart % _ZONE:
        hours = apart / timedelta(hours=1)
        return f"{name} differs by exactly {hours:+g} h (a zone)"
    return f"{name} differs"
