"""The frontier rail: exact where a browser's numbers are not, and everything it shows spelled by the source."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dashboard.charts.rail import EXACT, Place, Run, rail_figure

INT64 = st.integers(-(2**63), 2**63 - 1)


def place(name: str, position: int, ordinal: int = 0) -> Place:
    return Place(name, f"{position}:{ordinal}", position, ordinal, "busy")


def drawn(figure: dict, name: str) -> float:
    return next(trace["x"][-1] for trace in figure["data"] if trace["y"][-1] == name)


def test_neighbours_far_above_2_53_are_apart() -> None:
    figure = rail_figure([place("f", 2**62), place("head", 2**62 + 1), place("floor", 2**62 - 5)], [])
    assert [drawn(figure, name) for name in ("floor", "f", "head")] == [0, 5, 6]
    assert str(2**62) in json.dumps(figure)


def test_events_of_one_transaction_are_apart_and_in_order() -> None:
    figure = rail_figure([place("a", 7, 1), place("b", 7, 2), place("c", 8, 1)], [])
    assert 0 == drawn(figure, "a") < drawn(figure, "b") < drawn(figure, "c") == 1


def test_findings_have_rows_of_their_own_above_the_places() -> None:
    runs = [Run("lost", "3 to 5, 3", (3, 0), (5, 0)), Run("duplicate", "4", (4, 0), (4, 0))]
    figure = rail_figure([place("floor", 1), place("head", 9)], runs)
    assert figure["layout"]["yaxis"]["categoryarray"] == ["floor", "head", "lost", "duplicate"]
    lost = next(trace for trace in figure["data"] if trace["y"][0] == "lost")
    assert lost["x"] == [2, 4, None]


def test_spelling_cannot_bring_in_markup() -> None:
    figure = rail_figure([Place("head", "<b>1", 1, 0, "busy")], [Run("lost", "<a href=x>", (2, 0), (2, 0))])
    lost = next(trace for trace in figure["data"] if trace["y"][0] == "lost")
    assert lost["text"][0] == "&lt;a href=x&gt;"
    assert all("<b>" not in text for trace in figure["data"] for text in trace["text"])


def test_ambiguous_window_goes_on_from_the_cursor_to_its_end() -> None:
    cursor = Place("cursor", "282", 282, 0, "quiet", until=(327, 0), until_says="above 282, up to 327")
    figure = rail_figure([place("floor", 1), cursor, place("head", 327)], [])
    assert figure["layout"]["yaxis"]["categoryarray"] == ["floor", "cursor", "head"]
    window = next(trace for trace in figure["data"] if trace["mode"] == "lines")
    assert (window["x"], window["y"]) == ([281, 326], ["cursor", "cursor"])
    assert window["text"] == ["above 282, up to 327"] * 2


def test_nothing_known_is_still_a_figure() -> None:
    assert rail_figure([], [])["data"] == []


@given(st.lists(st.tuples(INT64, INT64), min_size=1, max_size=8, unique=True))
def test_order_is_kept_and_every_number_is_exact_for_a_browser(coordinates: list[tuple[int, int]]) -> None:
    figure = rail_figure([place(str(number), *one) for number, one in enumerate(coordinates)], [])
    order = sorted(range(len(coordinates)), key=lambda number: coordinates[number])
    xs = [drawn(figure, str(number)) for number in order]
    assert xs == sorted(xs)
    assert all(0 <= x <= EXACT for x in xs)


def test_t16_scattered_findings_are_all_drawn_as_marks_that_grow_with_their_number() -> None:
    runs = [
        Run("lost", f"{low} to {low + 99}", (low, 0), (low + 99, 0), count=low // 100) for low in range(100, 1000, 100)
    ]
    figure = rail_figure([place("floor", 1), place("head", 1000)], runs)
    lost = next(trace for trace in figure["data"] if trace["y"][0] == "lost")
    assert lost["x"][::2] == [low + 49.5 - 1 for low in range(100, 1000, 100)]
    sizes = lost["marker"]["size"][::2]
    assert sizes == sorted(sizes) and len(set(sizes)) == len(sizes)
