"""Incidents: what somebody gave a name, how it stands, and the figures of it that the rows show.

The law: a figure comes from what was recorded, never from what somebody remembers. What no row shows is *not known*, and is
said so in the post-mortem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from recovery_api.domain.alerts.causes import Severity
from recovery_api.domain.errors import Refused
from recovery_api.domain.headroom.evidence import EXPIRED, is_expired
from recovery_api.domain.looks import look_of
from recovery_api.domain.outcomes import CLEAN, OUTCOMES, Status
from recovery_api.domain.visible import visible
from recovery_api.domain.words import row_make

__all__ = ["IncidentState", "Severity"]


class IncidentState(StrEnum):
    """How an incident stands. A row: the word, what it means."""

    means: str

    def __new__(cls, word: str, means: str = "") -> IncidentState:
        return row_make(cls, word, means=means)

    OPEN = "open", "Somebody is looking, or should be."
    MITIGATED = (
        "mitigated",
        "It grows no worse: the writer is stopped, or sending is frozen. Something is still to be done.",
    )
    RESOLVED = (
        "resolved",
        "Somebody said that it is over; whether an audit found so stands in its figures. Somebody still writes down why.",
    )
    CLOSED = "closed", "Done, with its cause written down. It can be opened again."


MOVES: dict[IncidentState, frozenset[IncidentState]] = {
    IncidentState.OPEN: frozenset({IncidentState.MITIGATED, IncidentState.RESOLVED, IncidentState.CLOSED}),
    IncidentState.MITIGATED: frozenset({IncidentState.OPEN, IncidentState.RESOLVED, IncidentState.CLOSED}),
    IncidentState.RESOLVED: frozenset({IncidentState.OPEN, IncidentState.MITIGATED, IncidentState.CLOSED}),
    IncidentState.CLOSED: frozenset({IncidentState.OPEN}),
}


def move_check(title: str, state: str, to: str) -> None:
    """Raises: Refused where `to` does not follow `state`."""
    if IncidentState(to) not in MOVES[IncidentState(state)]:
        follows = ", ".join(sorted(MOVES[IncidentState(state)]))
        raise Refused(f"calling incident {title!r} {to}", f"it is {state}", f"After that it may be: {follows}.")


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a pipeline's record: how many events were lost and not acknowledged, and hazards. `evidence_until`: when
    what it rests on may be gone."""

    pipeline: str
    at: datetime
    status: Status
    lost: int
    hazards: int
    evidence_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """One thing that a person did."""

    at: datetime
    actor: str
    says: str


@dataclass(frozen=True, slots=True)
class PipelineFigures:
    """Of one pipeline. Moments None: no reading shows one. `first_owed_at`: when a reading first showed something owed or
    wrong, since the last clean one before; it was so earlier. `well_at`: the first clean reading after the last one that was
    not; `well_words`: in its own words, and whether they can still be shown to be true."""

    pipeline: str
    last_clean_at: datetime | None
    first_owed_at: datetime | None
    well_at: datetime | None
    well_words: str
    owed_at_most: int
    hazards_at_most: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Of the whole incident. `delivered` and `already_present`: by its recoveries. `approvers`: of plans of it."""

    pipelines: tuple[PipelineFigures, ...]
    noticed_at: datetime
    first_action: Done | None
    delivered: int
    already_present: int
    altered: int
    approvers: tuple[str, ...]

    @property
    def first_owed_at(self) -> datetime | None:
        return min((one.first_owed_at for one in self.pipelines if one.first_owed_at), default=None)

    @property
    def well_at(self) -> datetime | None:
        """When all of them were well again. None: one of those that were owed is not."""
        touched = [one for one in self.pipelines if one.first_owed_at is not None]
        if not touched or any(one.well_at is None for one in touched):
            return None
        return max(one.well_at for one in touched if one.well_at is not None)

    @property
    def events_touched(self) -> int:
        """Events that were owed, at most at one time, of each pipeline; and hazards."""
        return sum(one.owed_at_most + one.hazards_at_most for one in self.pipelines)


def pipeline_figures(
    pipeline: str, readings: Sequence[Reading], noticed_at: datetime, now: datetime
) -> PipelineFigures:
    """From its readings, in any order: those before the incident say since when, those after until when."""
    ordered = sorted((one for one in readings if one.pipeline == pipeline), key=lambda one: one.at)
    before = [one for one in ordered if one.at <= noticed_at]
    clean_before = [one for one in before if one.status in CLEAN]
    last_clean = clean_before[-1].at if clean_before else None
    since = [one for one in ordered if last_clean is None or one.at > last_clean]
    wrong = [one for one in since if one.status in (Status.OWED, Status.HAZARD)]
    if not wrong:
        return PipelineFigures(pipeline, last_clean, None, None, "", 0, 0)
    well = next((one for one in since if one.at > wrong[-1].at and one.status in CLEAN), None)
    return PipelineFigures(
        pipeline,
        last_clean,
        wrong[0].at,
        well.at if well else None,
        _well_words(well, now) if well else "",
        max(one.lost for one in wrong),
        max(one.hazards for one in wrong),
    )


def _well_words(well: Reading, now: datetime) -> str:
    words = OUTCOMES[well.status].words
    return f"{words} then; now {look_of(EXPIRED).says}" if is_expired(well.evidence_until, now) else words


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a timeline."""

    at: datetime
    pipeline: str
    kind: str
    actor: str
    says: str


@dataclass(frozen=True, slots=True)
class Told:
    """What a post-mortem is made of."""

    title: str
    state: str
    severity: str
    commander: str
    opened_by: str
    opened_at: datetime
    closed_at: datetime | None
    cause: str
    figures: Figures
    timeline: Sequence[Line]


def post_mortem(of: Told) -> str:
    """As Markdown: the figures, then who did what, in order. What people wrote is text and nothing else."""
    figures, text = of.figures, _text
    lines = [f"# {text(of.title)}", "", f"*{of.severity}, {of.state}. Times are UTC.*", ""]
    lines += ["## In figures", "", "| | |", "|---|---|"]
    rows = [
        ("First seen owed or wrong", _moment(figures.first_owed_at)),
        ("Noticed", _after(figures.noticed_at, figures.first_owed_at)),
        ("First action", _first(figures)),
        ("Well again", _after(figures.well_at, figures.first_owed_at)),
        ("Events touched", f"{figures.events_touched:,}"),
        ("Delivered by recoveries", f"{figures.delivered:,}, and {figures.already_present:,} were already present"),
        ("Altered at the sink", f"{figures.altered:,}"),
        ("Approved by", text(", ".join(figures.approvers)) or "nobody: no plan of it was approved"),
        ("Commander", text(of.commander) or "nobody was named"),
        ("Opened", f"{_moment(of.opened_at)} by {text(of.opened_by)}"),
        ("Closed", _moment(of.closed_at) if of.closed_at else "not yet"),
    ]
    lines += [f"| {name} | {value} |" for name, value in rows]
    lines += ["", "## Cause", "", text(of.cause) or "Nobody has written it down yet.", "", "## Pipelines", ""]
    lines += [
        "| pipeline | last clean before | first seen owed or wrong | owed, at most | hazards, at most | well again |",
        "|---|---|---|---|---|---|",
    ]
    for one in figures.pipelines:
        well = (
            f"{_moment(one.well_at)}: {one.well_words}"
            if one.well_at
            else ("not yet" if one.first_owed_at else "it was never owed")
        )
        known = (
            _moment(one.last_clean_at),
            _moment(one.first_owed_at),
            f"{one.owed_at_most:,}",
            f"{one.hazards_at_most:,}",
            well,
        )
        lines.append(f"| {text(one.pipeline)} | {' | '.join(known)} |")
    lines += ["", "## Timeline", "", "| when | pipeline | what | who | |", "|---|---|---|---|---|"]
    lines += [
        f"| {line.at:%Y-%m-%d %H:%M:%S} | {text(line.pipeline)} | {line.kind} | {text(line.actor)} | {text(line.says)} |"
        for line in of.timeline
    ]
    return "\n".join([*lines, ""])


def _first(figures: Figures) -> str:
    if figures.first_action is None:
        return "nobody has done anything yet"
    done = figures.first_action
    return f"{_after(done.at, figures.noticed_at, 'after it was noticed')}, by {_text(done.actor)}: {_text(done.says)}"


def _moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}" if at else "not known"


def _after(at: datetime | None, since: datetime | None, what: str = "later") -> str:
    if at is None or since is None or at < since:
        return _moment(at)
    return f"{_moment(at)}, {_span(at - since)} {what}"


def _span(span: timedelta) -> str:
    """
    >>> _span(timedelta(minutes=95)), _span(timedelta(seconds=42))
    ('1 h 35 min', '42 s')
    """
    seconds = int(span.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _text(words: str) -> str:
    """A person's words as text in a table of Markdown: one line, nothing of it a mark.

    >>> _text("it *died* | <b>\\nagain")
    'it \\\\*died\\\\* \\\\| &lt;b&gt; again'
    """
    line = visible(" ".join(words.split()))
    for mark in "\\`*_[]|#":
        line = line.replace(mark, f"\\{mark}")
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
