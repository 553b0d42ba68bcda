"""What a relay's cursor claims beside what the sink's record shows. It is shown, and decides nothing.

The ambiguous window is what was committed beyond the cursor: delivered and not yet recorded, or never sent. Outbox and
cursor look the same either way; only the sink's record tells the two apart, and only up to the judged frontier.

Source: the paper's checkpoint window, Theorem 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery_api.domain.coordinates import Coordinate

ASIDE = "It proves nothing of the sink, and enters no verdict."


def cursor_says(cursor: Mapping[str, Any], status: str) -> str:
    """The claim and, as far as was judged, whether the record bears it out. `cursor`: of an audit's lane.

    >>> cursor_says({"says": "282", "lost_behind": "27", "judged": "window"}, "owed")[:70]
    'The relay recorded everything up to here as sent. Of that, the record '
    """
    if cursor.get("says") is None:
        return f"{cursor.get('problem') or 'The relay has recorded no cursor yet.'} {ASIDE}"
    claims = "The relay recorded everything up to here as sent."
    if status == "unknown":
        return f"{claims} The record could not be judged: whether it was, nobody can say. {ASIDE}"
    upto = " up to f, where the audit judged" if cursor["judged"] == "part" else ""
    lost = int(cursor["lost_behind"])
    found = f"lacks {lost:,}: no relay will look there again" if lost else "holds everything committed"
    return f"{claims} Of that, the record {found}{upto}. {ASIDE}"


def window_says(cursor: Mapping[str, Any], status: str) -> str:
    """What lies in the ambiguous window, and how much of it the record decides. Empty: there is no cursor."""
    if cursor.get("says") is None:
        return ""
    if not cursor["has_window"]:
        return "Nothing was committed beyond the cursor."
    ambiguous = "Committed beyond the cursor: sent and not recorded as sent, or never sent. The source cannot tell."
    if status == "unknown":
        return f"{ambiguous} The record could not be judged: all of it is ambiguous."
    if cursor["judged"] in ("part", "all"):
        return f"{ambiguous} All of it lies above f, where the audit judged: ambiguous until it is judged."
    lost = int(cursor["lost_beyond"])
    found = f"it lacks {lost:,} and holds the rest" if lost else "it holds all of it"
    rest = "" if cursor["judged"] == "window" else " Above f it is ambiguous until it is judged."
    return f"{ambiguous} The sink's record decides it up to f: {found}.{rest}"


def window_find(cursor: Coordinate, frontier: Coordinate, head: Coordinate | None) -> tuple[str, bool]:
    """How far the frontier judges, and whether anything was committed beyond the cursor.

    `part` of what the cursor claims; `all` of it and nothing beyond; `some` of what lies beyond, too; the whole `window`.

    >>> window_find(Coordinate(3), Coordinate(3), Coordinate(9)), window_find(Coordinate(3), Coordinate(9), Coordinate(9))
    (('all', True), ('window', True))
    """
    has_window = head is not None and head > cursor
    if frontier < cursor:
        return "part", has_window
    if frontier == cursor and has_window:
        return "all", has_window
    return ("window" if head is None or frontier >= head else "some"), has_window
