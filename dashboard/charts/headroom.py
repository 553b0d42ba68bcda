"""Headroom as two pictures: one timeline of what ends when, and the waterfall of the design check.

Pure: moments and spans in, Plotly figures as plain data out. A table beside each says the same. A colour is written
`var(--name)` and filled in from the page's style sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard.charts.look import LOOK

ROW = 34
SHAPES = {"good": "circle", "warn": "square", "bad": "diamond", "unsure": "circle-open", "quiet": "line-ns-open"}


@dataclass(frozen=True, slots=True)
class Mark:
    """One moment. `tone`: good | warn | bad | unsure | quiet."""

    name: str
    at: datetime
    says: str
    tone: str = "quiet"


@dataclass(frozen=True, slots=True)
class Bar:
    """One step of the waterfall, in seconds. `begins`: how much the steps before it took."""

    name: str
    begins: float
    seconds: float
    says: str
    tone: str = "quiet"


def timeline_figure(marks: Sequence[Mark]) -> dict[str, Any]:
    """A row for each moment, in order of time from the top, and a line at each.

    >>> from datetime import UTC
    >>> figure = timeline_figure([Mark("now", datetime(2026, 3, 1, 12, tzinfo=UTC), "12:00 UTC")])
    >>> figure["data"][0]["x"], figure["data"][0]["y"]
    (['2026-03-01T12:00:00'], ['now'])
    """
    ordered = sorted(marks, key=lambda one: one.at)
    traces = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [one.at.replace(tzinfo=None).isoformat(timespec="seconds")],
            "y": [one.name],
            "text": [one.says],
            "hovertemplate": f"{one.name}: %{{text}}<extra></extra>",
            "marker": {
                "size": 13,
                "symbol": SHAPES[one.tone],
                "color": f"var(--{one.tone})",
                "line": {"width": 2, "color": f"var(--{one.tone})"},
            },
            "showlegend": False,
        }
        for one in ordered
    ]
    rows = [one.name for one in reversed(ordered)]
    return {"data": traces, "layout": {**_layout(rows), "xaxis": {**_axis(), "type": "date"}}}


def waterfall_figure(bars: Sequence[Bar]) -> dict[str, Any]:
    """The memory above, below it each step where the one before it ended; hours from left to right.

    >>> figure = waterfall_figure([Bar("shortest", 0, 3600, "1 h"), Bar("margin", 0, 600, "10 min")])
    >>> figure["data"][0]["x"], figure["data"][1]["base"]
    ([1.0], [0.0])
    """
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "x": [round(one.seconds / 3600, 6)],
            "y": [one.name],
            "base": [round(one.begins / 3600, 6)],
            "text": [one.says],
            "hovertemplate": f"{one.name}: %{{text}}<extra></extra>",
            "marker": {"color": f"var(--{one.tone})"},
            "showlegend": False,
        }
        for one in bars
    ]
    rows = [one.name for one in reversed(bars)]
    return {"data": traces, "layout": {**_layout(rows), "xaxis": {**_axis(), "title": {"text": "hours"}}}}


def _axis() -> dict[str, Any]:
    return {"gridcolor": "var(--line)", "zeroline": False, "fixedrange": False, "nticks": 5, "tickangle": 0}


def _layout(rows: Sequence[str]) -> dict[str, Any]:
    return {
        "height": 80 + ROW * len(rows),
        "margin": {"l": 190, "r": 24, "t": 8, "b": 44},
        **LOOK,
        "yaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": list(rows),
            "range": [-0.6, len(rows) - 0.4],
            "fixedrange": True,
            "gridcolor": "var(--line)",
            "zeroline": False,
        },
    }
