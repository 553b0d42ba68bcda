"""Whole numbers on their way into JSON: as text, so that no reader rounds one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SMALL = frozenset({"exit_code", "attempts", "part", "parts", "status", "drill_every_hours"})
"""Whole numbers that REST gives as numbers: they are small by definition."""
AS_GIVEN = frozenset({"options", "certificate"})
"""Members that REST gives as they are: what somebody configured, and what a digest was taken of."""
EXACT_TO = 2**53


def wide_as_text(value: Any) -> Any:
    """A row as REST gives it: every whole number as text but those of `SMALL` and, below 2^53, inside `AS_GIVEN`.

    >>> wide_as_text({"lost": 3, "exit_code": 1, "options": {"batch_limit": 9}, "done": True, "rate": 1.5})
    {'lost': '3', 'exit_code': 1, 'options': {'batch_limit': 9}, 'done': True, 'rate': 1.5}
    """
    if isinstance(value, Mapping):
        return {name: _member(name, one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [wide_as_text(one) for one in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _member(name: str, value: Any) -> Any:
    if name in SMALL and isinstance(value, int):
        return value
    return _past_exact_as_text(value) if name in AS_GIVEN else wide_as_text(value)


def _past_exact_as_text(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _past_exact_as_text(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_past_exact_as_text(one) for one in value]
    is_wide = isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT_TO
    return str(value) if is_wide else value
