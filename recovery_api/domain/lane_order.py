"""The order in which an audit's lanes are shown: those that need somebody first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery_api.domain.outcomes import WORST_FIRST, Status


def lanes_by_trouble(lanes: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Lanes with their rows as an audit keeps them: the worst status first, of several alike the one that lost most; last
    those at which nothing was judged.

    >>> calm, owed = {"status": "exactly_once"}, {"status": "owed", "counts": {"lost": 2}}
    >>> [lane for lane, _ in lanes_by_trouble({"2": calm, "10": calm, "7": owed, "8": {"status": "unknown"}})]
    ['7', '2', '10', '8']
    """
    return sorted(lanes.items(), key=lambda one: _place(*one))


def _place(lane: str, row: Mapping[str, Any]) -> tuple[int, int, bool, int, str]:
    counts = row.get("counts") or {}
    status = Status(row.get("status") or Status.UNKNOWN)
    seen = ("obligations_retained", "obligations_journal", "accepted_rows")
    is_empty = status is Status.UNKNOWN and not any(int(counts.get(name) or 0) for name in seen)
    rank = len(WORST_FIRST) if is_empty else WORST_FIRST.index(status)
    is_number = lane.isascii() and lane.isdigit()
    return rank, -int(counts.get("lost") or 0), not is_number, int(lane) if is_number else 0, lane
