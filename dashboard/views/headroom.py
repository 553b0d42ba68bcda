"""From a pipeline's headroom to what is drawn and listed of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dashboard.charts.headroom import Bar, Mark, timeline_figure, waterfall_figure
from recovery_api.domain.headroom.design import DesignCheck
from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.headroom.says import at_says, end_says, headroom_says, headroom_short, pace_says, span_short
from recovery_api.domain.headroom.terms import FAR, Forgets, Reach
from recovery_api.models import Pipeline
from recovery_api.selectors.headroom import PipelineHeadroom, fleet_headroom, pipeline_headroom

LABELS = {
    Forgets.SOURCE_PURGE: "source's next purge",
    Forgets.SOURCE_DISK: "source's disk",
    Forgets.SLOT: "slot's WAL",
    Forgets.SLOT_IDLE: "slot that is idle",
    Forgets.SINK_MEMORY: "sink's memory",
    Forgets.SINK_MEMORY_ENTRIES: "sink's memory (entries)",
    Forgets.RECORD: "record's retention",
    Forgets.SINK_DISK: "sink's disk",
    Forgets.ARCHIVE: "our archive",
    Forgets.APPROVAL: "approval",
}
STEPS = {
    "max_outage": "longest outage",
    "operator_delay": "operator's delay",
    "replay_catchup": "catching up",
    "margin": "margin",
}
NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class HeadroomCell:
    """Of the overview: what it looks like (a row of domain.looks), and the number."""

    look: str
    says: str


@dataclass(frozen=True, slots=True)
class Design:
    """One design check, ready to be shown. `rows`: name and span. `figure` None: nothing of it is known."""

    name: str
    word: str
    rows: list[tuple[str, str]]
    spare: str
    missing: list[str]
    figure: dict[str, Any] | None
    figure_id: str
    figure_says: str = "The shortest memory beside what may use it up. The table below says the same."


def look_of(standing: Standing) -> str:
    return f"headroom_{standing.value}"


def headroom_cells(pipelines: list[Pipeline], now: datetime) -> dict[int, HeadroomCell]:
    return {key: cell_of(one) for key, one in fleet_headroom(pipelines, now).items()}


def cell_of(one: PipelineHeadroom) -> HeadroomCell:
    return HeadroomCell(look_of(one.found.standing), headroom_short(one.found, one.now))


def headroom_context(pipeline: Pipeline, now: datetime) -> dict[str, Any]:
    """What the panel shows: the word, its sentence, the timeline, each memory and both design checks."""
    one = pipeline_headroom(pipeline, now)
    marks = marks_of(one)
    return {
        "cell": cell_of(one),
        "says": headroom_says(
            one.found, one.pace, now, is_hypothetical=one.is_hypothetical, is_read=one.as_of is not None
        ),
        "marks": [(mark.name, mark.at, mark.says) for mark in marks],
        "timeline": timeline_figure(marks) if len(marks) > 1 else None,
        "timeline_says": "What ends when. The table below says the same.",
        "terms": [
            {
                "name": LABELS[each.term.forgets],
                "look": look_of(each.standing),
                "left": span_short(each.left)
                if each.left is not None
                else ("no limit" if each.term.reach is Reach.NO_LIMIT else NOT_KNOWN),
                "says": each.term.says,
            }
            for each in one.found.terms
        ],
        "designs": [
            _design("by the declared rate", "headroom-declared", one.declared_check),
            _design("by the rate that recoveries showed", "headroom-measured", one.measured_check),
        ],
        "as_of": one.as_of,
        "pace_says": " ".join(pace_says(one.pace, one.arrivals)),
        "ends": [(name, end_says(seen), seen.read_at) for name, seen in one.ends.items()],
    }


def marks_of(one: PipelineHeadroom) -> list[Mark]:
    """The moments that are known, in order of time; what is too far away to be drawn beside the others is left out."""
    found, now = one.found, one.now
    bound = "at most " if found.is_bound else ""
    given = [
        ("now", now, "", "quiet"),
        ("every row kept since", one.kept_since, "", "quiet"),
        ("oldest owed event", one.oldest_owed_at, "", "warn"),
        ("certified to", one.certified_to, "", "good"),
        ("decide by", found.decide_by, bound, "warn"),
        ("last start", found.last_start, bound, "bad"),
        *((LABELS[each.term.forgets], each.term.expires_at, "at the earliest ", "bad") for each in found.terms),
    ]
    marks = [Mark(name, at, f"{said}{at_says(at, now)}", tone) for name, at, said, tone in given if at is not None]
    near = [mark for mark in marks if abs(mark.at - now) < FAR / 2]
    return sorted(near, key=lambda mark: mark.at)


def _design(name: str, figure_id: str, check: DesignCheck) -> Design:
    rows = [("shortest memory", _span(check.horizon)), *((STEPS[one.name], _span(one.takes)) for one in check.steps)]
    bars: list[Bar] = []
    if check.horizon is not None:
        bars.append(Bar("shortest memory", 0, check.horizon.total_seconds(), span_short(check.horizon), "good"))
        taken = 0.0
        for one in check.steps:
            if one.takes is not None:
                seconds = one.takes.total_seconds()
                bars.append(Bar(STEPS[one.name], taken, seconds, span_short(one.takes), "warn"))
                taken += seconds
    return Design(
        name,
        check.holds.value,
        rows,
        "" if check.spare is None else span_short(check.spare),
        [STEPS.get(one, "a memory") for one in check.missing],
        waterfall_figure(bars) if len(bars) > 1 else None,
        figure_id,
    )


def _span(span: timedelta | None) -> str:
    return NOT_KNOWN if span is None else span_short(span)
