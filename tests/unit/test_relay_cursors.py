"""What a relay's cursor claims, said beside the record and never instead of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.relay_cursors import cursor_says, window_find, window_says

PLACES = st.integers(-3, 3).map(Coordinate)


def cursor(judged: str, behind: int = 0, beyond: int = 0, has_window: bool = True) -> dict[str, Any]:
    return {
        "says": "282",
        "lost_behind": str(behind),
        "lost_beyond": str(beyond),
        "judged": judged,
        "has_window": has_window,
    }


def test_what_the_cursor_passed_over_is_said() -> None:
    assert "the record lacks 27: no relay will look there again." in cursor_says(cursor("window", 27), "owed")
    assert "holds everything committed up to f, where the audit judged." in cursor_says(cursor("part"), "owed")


def test_window_is_decided_by_the_record_up_to_f_only() -> None:
    assert window_says(cursor("window", beyond=16), "owed").endswith("up to f: it lacks 16 and holds the rest.")
    assert "Above f it is ambiguous" in window_says(cursor("some"), "exactly_once")
    for judged in ("part", "all"):
        assert "All of it lies above f" in window_says(cursor(judged), "exactly_once")
    assert window_says(cursor("window", has_window=False), "owed") == "Nothing was committed beyond the cursor."


@pytest.mark.parametrize("judged", ["part", "all", "some", "window"])
def test_nothing_is_said_of_delivery_where_the_record_was_not_judged(judged: str) -> None:
    said = cursor_says(cursor(judged, 3, 3), "unknown") + window_says(cursor(judged, 3, 3), "unknown")
    assert "holds" not in said and "lacks" not in said and "ambiguous" in said


def test_cursor_that_is_not_known_opens_no_window() -> None:
    unknown = {"says": None, "at": None, "problem": ""}
    assert cursor_says(unknown, "owed").startswith("The relay has recorded no cursor yet.")
    assert window_says(unknown, "owed") == ""


@given(PLACES, PLACES, PLACES | st.none())
def test_window_is_what_lies_above_the_cursor(at: Coordinate, f: Coordinate, head: Coordinate | None) -> None:
    judged, has_window = window_find(at, f, head)
    assert has_window == (head is not None and at < head)
    assert (judged == "part") == (f < at)
    if has_window and head is not None:
        assert (judged == "window") == (f >= head)
        assert (judged == "all") == (f == at)
