"""What audits observed over time, as pictures: the chart of a page, its status strip, and an overview's spark line.

Pure: buckets and stretches in; a Plotly figure, or the numbers of a small drawing, out. What was not observed is a gap in
every one of them; nothing is drawn across it. A table beside each says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from dashboard.charts.look import LOOK
from recovery_api.domain.history import Bucket, Hour, Observed, Stretch
from recovery_api.domain.looks import look_of

PANEL = 130
NOT_OBSERVED = "not observed"
STRIP_WIDTH, STRIP_HEIGHT = 1000.0, 24.0
THINNEST = 3.0
"""However short a stretch was, it can be seen."""
SPARK_WIDTH, SPARK_HEIGHT, SPARK_FOOT = 96.0, 26.0, 8.0
LEVELS = {"gap": 0.0, "good": 0.4, "given": 0.5, "calm": 0.55, "unsure": 0.65, "busy": 0.65, "warn": 0.85, "bad": 1.0}
"""How high a block stands: the worse the higher, so that no colour has to be told from another. A gap has no height."""

Figure = Callable[[Observed], float | None]
Drawn = tuple["Line", list[str], list[float | None]]
"""A line with its moments and values."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel. `tone`: a property of the page's style sheet; `dash`: told apart without colour, too."""

    name: str
    tone: str
    dash: str
    figure: Figure


UNITS = ((172_800, 86_400, "days"), (7_200, 3_600, "hours"), (120, 60, "minutes"), (0, 1, "seconds"))
"""From how many seconds on a panel's times are told in which unit."""

SPANS = ("waiting", "left")
"""Panels whose figures are seconds."""

PANELS: tuple[tuple[str, tuple[Line, ...]], ...] = (
    (
        "events",
        (
            Line("not accepted", "busy", "dot", lambda one: one.lag_events),
            Line("owed", "warn", "solid", lambda one: one.owed),
            Line("hazards", "bad", "dash", lambda one: one.hazards),
        ),
    ),
    (
        "waiting",
        (
            Line("oldest not accepted, at least", "busy", "dot", lambda one: one.lag_seconds),
            Line("oldest owed, since its commit", "warn", "solid", lambda one: one.oldest_owed_seconds),
        ),
    ),
    ("a second", (Line("accepted", "good", "solid", lambda one: one.accepted_per_second),)),
    ("left", (Line("headroom", "calm", "solid", lambda one: one.headroom_seconds),)),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a strip, or hours of a spark line: where it lies, its tone (`gap`: not observed) and its words.

    `y`, `height`: of the drawing's own height, from its top.
    """

    x: float
    width: float
    tone: str
    says: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Spark:
    """`runs`: lines, each the points of an SVG polyline, over hours without a gap. `foot`: the status below them, of
    hours alike in one block."""

    runs: list[str]
    foot: list[Block]
    says: str


def history_figure(found: Sequence[Bucket]) -> dict[str, Any] | None:
    """One panel below the other over the same time; a panel of which nothing is known is left out. None: all are.

    >>> from datetime import UTC, timedelta
    >>> from recovery_api.domain.outcomes import Status
    >>> noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    >>> ends = [noon + timedelta(hours=n) for n in range(4)]
    >>> seen = [Observed(ends[0], ends[1], Status.OWED, lag_events=3), None, Observed(ends[2], ends[3], Status.OWED, lag_events=1)]
    >>> figure = history_figure([Bucket(ends[n], ends[n + 1], one) for n, one in enumerate(seen)])
    >>> figure["data"][0]["y"]
    [3, 3, None, 1, 1]
    """
    kept = [
        _in_unit(title, drawn)
        for title, lines in PANELS
        if (drawn := [(line, *_steps(found, line.figure)) for line in lines if _is_worth(found, line)])
    ]
    if not kept:
        return None
    data, axes = [], {}
    share = 1 / len(kept)
    for place, (title, lines) in enumerate(kept):
        number = "" if place == 0 else str(place + 1)
        top = 1 - share * place
        axes[f"yaxis{number}"] = {
            "domain": [round(top - share * 0.84, 4), round(top, 4)],
            "title": {"text": title, "standoff": 8, "font": {"size": 12}},
            "automargin": True,
            "rangemode": "tozero",
            "gridcolor": "var(--line)",
            "zeroline": False,
            "fixedrange": True,
        }
        data += [_trace(line, x, y, f"y{number}") for line, x, y in lines]
    ends = [_time(found[0].since), _time(found[-1].until)]
    layout = {
        "height": PANEL * len(kept) + 90,
        "margin": {"l": 64, "r": 16, "t": 8, "b": 36},
        **LOOK,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {
            "type": "date",
            "range": ends,
            "anchor": f"y{'' if len(kept) == 1 else len(kept)}",
            "gridcolor": "var(--line)",
            "zeroline": False,
            "fixedrange": False,
            "nticks": 5,
            "tickangle": 0,
        },
        **axes,
    }
    return {"data": data, "layout": layout}


def strip_blocks(stretches: Sequence[Stretch], says: Callable[[Stretch], str]) -> list[Block]:
    """The strip, from 0 to STRIP_WIDTH. `says`: the words of a stretch."""
    if not stretches:
        return []
    begin, whole = stretches[0].since, (stretches[-1].until - stretches[0].since).total_seconds()
    drawn = []
    for one in stretches:
        x = STRIP_WIDTH * (one.since - begin).total_seconds() / whole
        width = STRIP_WIDTH * (one.until - one.since).total_seconds() / whole
        drawn.append(_block(round(x, 1), round(max(width, THINNEST), 1), _tone(one), says(one), 0.0, STRIP_HEIGHT))
    return drawn


def spark_of(found: Sequence[Hour], says: str) -> Spark:
    """What was not accepted in each hour, as lines, above each one's worst status; 0 lies at the foot's edge."""
    step = SPARK_WIDTH / len(found)
    room = SPARK_HEIGHT - SPARK_FOOT - 2
    most = max((one.lag_events or 0 for one in found), default=0) or 1
    runs: list[list[str]] = [[]]
    foot, begun = [], 0.0
    for tone, alike in groupby(look_of(one.status).tone if one.status else "gap" for one in found):
        width = step * len(list(alike))
        foot.append(_block(round(begun, 2), round(width, 2), tone, "", SPARK_HEIGHT - SPARK_FOOT, SPARK_FOOT))
        begun += width
    for place, one in enumerate(found):
        if one.lag_events is None:
            runs.append([])
            continue
        y = round(1 + room * (1 - one.lag_events / most), 2)
        runs[-1] += [f"{step * place:.2f},{y}", f"{step * (place + 1):.2f},{y}"]
    return Spark([" ".join(run) for run in runs if run], foot, says)


def _block(x: float, width: float, tone: str, says: str, top: float, room: float) -> Block:
    height = room * LEVELS.get(tone, 0.65)
    return Block(x, width, tone, says, round(top + room - height, 2), round(height, 2))


def _tone(one: Stretch) -> str:
    return look_of(one.status).tone if one.status else "gap"


def _in_unit(title: str, drawn: Sequence[Drawn]) -> tuple[str, list[Drawn]]:
    """A panel with its times in the unit that its highest asks for, which its title names."""
    if title not in SPANS:
        return title, list(drawn)
    most = max(abs(value) for _, _, y in drawn for value in y if value is not None)
    size, unit = next((size, unit) for least, size, unit in UNITS if most >= least)
    return f"{unit} {title}", [
        (line, x, [None if value is None else round(value / size, 4) for value in y]) for line, x, y in drawn
    ]


def _is_worth(found: Sequence[Bucket], line: Line) -> bool:
    """Whether a line has anything to show: a figure that is known, and of hazards one above nothing."""
    values = [value for one in found if one.worst and (value := line.figure(one.worst)) is not None]
    return any(values) if line.name == "hazards" else bool(values)


def _steps(found: Sequence[Bucket], figure: Figure) -> tuple[list[str], list[float | None]]:
    """A step for each bucket; None, a break, where it was not observed or the figure was not known."""
    x: list[str] = []
    y: list[float | None] = []
    for one in found:
        value = figure(one.worst) if one.worst else None
        if value is None:
            if y and y[-1] is not None:
                x.append(_time(one.since))
                y.append(None)
            continue
        x += [_time(one.since), _time(one.until)]
        y += [value, value]
    return x, y


def _trace(line: Line, x: list[str], y: list[float | None], axis: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": line.name,
        "x": x,
        "y": y,
        "yaxis": axis,
        "connectgaps": False,
        "line": {"color": f"var(--{line.tone})", "width": 2, "dash": line.dash},
        "hovertemplate": f"{line.name}: %{{y}}<br>%{{x}}<extra></extra>",
    }


def _time(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")
