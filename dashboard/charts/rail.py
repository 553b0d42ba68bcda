"""The frontier rail: how far each side of a lane has come, and where something is missing or doubled.

Pure: places in, a Plotly figure as plain data out. Positions have 64 bits and a browser's numbers have 53: what is
drawn are offsets from the lowest place, computed in whole numbers here; what is read are the source's own spellings.
A colour is written `var(--name)` and filled in from the page's style sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.charts.look import LOOK
from recovery_api.domain.findings import FindingWord

EXACT = 2**53
DRAWN = (FindingWord.LOST, FindingWord.DUPLICATE, FindingWord.PREMATURE, FindingWord.UNKNOWN)
"""From the row next to the places upwards."""
HEIGHT = 340
SCATTERED = (5, 17)
"""How large the mark of a stretch of scattered findings is: of the emptiest, and of the fullest."""
LABELS = 5
"""How many coordinates are written below the axis at most."""


@dataclass(frozen=True, slots=True)
class Place:
    """A coordinate with its name. `tone`: good | given | warn | bad | unsure | busy | calm | quiet.

    `until`: the coordinate up to which it leaves open what is so, drawn as a dotted bar; `until_says` names that bar.
    """

    name: str
    spelled: str
    position: int
    ordinal: int
    tone: str
    until: tuple[int, int] | None = None
    until_says: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """Findings of one sort at neighbouring coordinates, from the first to the last; one alone is both.

    `count`: of a stretch in which they lie scattered, how many. Its mark is as large as that is; None: all of it.
    """

    finding: str
    says: str
    first: tuple[int, int]
    last: tuple[int, int]
    count: int | None = None


SHAPES = {
    "good": "circle",
    "warn": "square",
    "bad": "diamond",
    "busy": "circle-open",
    "calm": "hourglass",
    "given": "square-open",
}


def rail_figure(places: Sequence[Place], findings: Sequence[Run]) -> dict[str, Any]:
    """A figure with a row for each place, lowest first at the bottom, and a row for each sort of finding above.

    >>> figure = rail_figure([Place("head", "9", 9, 0, "quiet"), Place("floor", "1", 1, 0, "quiet")], [])
    >>> figure["layout"]["yaxis"]["categoryarray"], figure["data"][0]["x"]
    (['floor', 'head'], [0, 8])
    """
    held = {(place.position, place.ordinal) for place in places} | {one.until for one in places if one.until}
    offset = _offsets(held.union(*((run.first, run.last) for run in findings)))
    ordered = sorted(places, key=lambda place: (place.position, place.ordinal))
    traces = [_place_trace(place, offset[place.position, place.ordinal]) for place in ordered]
    traces += [_window_trace(place, place.until, offset) for place in ordered if place.until]
    rows = [place.name for place in ordered]
    for word in DRAWN:
        here = [one for one in findings if one.finding == word]
        if here:
            rows.append(word.label)
            traces.append(_findings_trace(here, offset, word.label, word.sign, word.tone))
    return {"data": list(reversed(traces)), "layout": _layout(rows, offset, ordered)}


def _offsets(coordinates: set[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """Coordinate -> where it is drawn. Coordinates that share a position are spread over the room of one."""
    held = sorted(coordinates)
    if not held:
        return {}
    lowest = held[0][0]
    scale = max(1, (held[-1][0] - lowest) // EXACT + 1)
    by_position: dict[int, list[int]] = {}
    for position, ordinal in held:
        by_position.setdefault(position, []).append(ordinal)
    drawn: dict[tuple[int, int], float] = {}
    for position, ordinals in by_position.items():
        whole = (position - lowest) // scale
        for rank, ordinal in enumerate(ordinals):
            drawn[position, ordinal] = whole if rank == 0 else round(whole + rank / len(ordinals), 6)
    return drawn


def _place_trace(place: Place, x: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [0, x],
        "y": [place.name, place.name],
        "text": ["", _plain(place.spelled)],
        "hoverinfo": "skip" if x == 0 else "text",
        "hovertemplate": f"{_plain(place.name)}: %{{text}}<extra></extra>",
        "line": {"color": f"var(--{place.tone})", "width": 6 if place.tone in ("good", "given", "warn", "bad") else 3},
        "marker": {
            "size": [0, 13],
            "symbol": SHAPES.get(place.tone, "line-ns-open"),
            "color": f"var(--{place.tone})",
            "opacity": [0, 1],
            "line": {"width": 2, "color": f"var(--{place.tone})"},
        },
        "showlegend": False,
    }


def _window_trace(place: Place, until: tuple[int, int], offset: dict[tuple[int, int], float]) -> dict[str, Any]:
    """From the place, exclusive, to where it leaves off: wide, faint and dotted, for nothing is known along it."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [offset[place.position, place.ordinal], offset[until]],
        "y": [place.name, place.name],
        "text": [_plain(place.until_says)] * 2,
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": "var(--unsure)", "width": 10, "dash": "2px,3px"},
        "showlegend": False,
    }


def _findings_trace(
    here: Sequence[Run], offset: dict[tuple[int, int], float], row: str, shape: str, tone: str
) -> dict[str, Any]:
    """Each run a mark at either end and a line between; a gap (None) parts it from the next.

    A stretch of scattered findings is one mark in its middle, the larger the more there are, and no line: what lies
    between them is not missing.
    """
    x: list[float | None] = []
    text: list[str] = []
    sizes: list[float] = []
    most = max((run.count for run in here if run.count), default=1)
    for run in here:
        if run.count is None:
            x += [offset[run.first], offset[run.last], None]
            text += [_plain(run.says), _plain(run.says), ""]
            sizes += [9, 9, 9]
        else:
            x += [(offset[run.first] + offset[run.last]) / 2, None]
            text += [_plain(run.says), ""]
            sizes += [round(SCATTERED[0] + (SCATTERED[1] - SCATTERED[0]) * (run.count / most) ** 0.5, 1)] * 2
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": [None if one is None else row for one in x],
        "text": text,
        "hovertemplate": f"{row}: %{{text}}<extra></extra>",
        "line": {"color": f"var(--{tone})", "width": 5},
        "marker": {"symbol": shape, "size": sizes, "color": f"var(--{tone})"},
        "showlegend": False,
    }


def _layout(rows: list[str], offset: dict[tuple[int, int], float], ordered: Sequence[Place]) -> dict[str, Any]:
    widest = max(offset.values(), default=1) or 1
    labelled = _labels(ordered, offset, widest)
    return {
        "height": HEIGHT,
        "margin": {"l": 128, "r": 24, "t": 8, "b": 36},
        **LOOK,
        "xaxis": {
            "range": [-widest * 0.02, widest * 1.06],
            "tickvals": [x for x, _ in labelled],
            "ticktext": [spelled for _, spelled in labelled],
            "tickangle": 0,
            "gridcolor": "var(--line)",
            "zeroline": False,
            "fixedrange": False,
        },
        "yaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": rows,
            "range": [-0.6, len(rows) - 0.4],
            "fixedrange": True,
            "gridcolor": "var(--line)",
            "zeroline": False,
        },
    }


def _labels(ordered: Sequence[Place], offset: dict[tuple[int, int], float], widest: float) -> list[tuple[float, str]]:
    """A few coordinates to write below the axis, far enough apart to be read; the highest always."""
    chosen: list[tuple[float, str]] = []
    for place in reversed(ordered):
        x = offset[place.position, place.ordinal]
        if all(abs(x - other) > widest / LABELS for other, _ in chosen):
            chosen.append((x, _plain(place.spelled)))
    return list(reversed(chosen))


def _plain(text: str) -> str:
    """Plotly reads a few tags in its texts; none is meant here."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
