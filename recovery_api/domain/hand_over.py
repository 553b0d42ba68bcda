"""Where the next relay run starts (THEORY section 4, step 7).

The law: everything at or below the start is accepted. The sink stores it in the fire itself, and hands it to a relay
together with its generation; a relay's own cursor only remembers.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar


class _Ordered(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


Where = TypeVar("Where", bound=_Ordered)


def start_position(frontier: Where, before_left_out: Where | None) -> Where:
    """Where the relay may start once the batch has landed: at the frontier, or `before_left_out`, the place just before
    the lowest event that stays owed; None: nothing was left out.

    >>> start_position(9, None), start_position(9, 4)
    (9, 4)
    """
    return frontier if before_left_out is None else min(frontier, before_left_out)


def is_handed_over(stored: Where | None, frontier: Where) -> bool:
    """Whether the start that the sink holds (None: none) is no lower than the recovery's frontier."""
    return stored is not None and not stored < frontier


def relay_starts_at(cursor: Where, handed_over: Where | None, started_from: Where | None) -> Where:
    """Where a relay run starts: at the sink's hand-over where that is news to it, be it behind its cursor or ahead of it.

    `started_from` is the hand-over it last started from: one it has seen does not move it again.

    >>> relay_starts_at(7, handed_over=3, started_from=None), relay_starts_at(7, handed_over=3, started_from=3)
    (3, 7)
    """
    return cursor if handed_over is None or handed_over == started_from else handed_over
