"""From an audit's lanes to what is drawn and listed of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dashboard.charts.rail import Place, Run, rail_figure
from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format, coordinate_parse
from recovery_api.domain.errors import BadInput
from recovery_api.domain.frontiers import coordinate_from_row
from recovery_api.domain.headroom.evidence import is_expired, lanes_read
from recovery_api.domain.lane_order import lanes_by_trouble
from recovery_api.domain.looks import tone_of
from recovery_api.domain.outcomes import OUTCOMES, Status
from recovery_api.domain.relay_cursors import ASIDE, cursor_says, window_says
from recovery_api.domain.verdicts import LANES_SAID
from recovery_api.models import Audit

DRAWN_LANES = 4
"""Of so many lanes, the most troubled, everything is shown; of the others one row each."""
LISTED_LANES, LISTED_BRIEFLY = 200, 20
"""Rows of the audit's page, and of the pipeline's, which leads there."""
NOTHING_SAFE = "nothing is safe yet"
CURSOR, WINDOW = "relay's cursor", "ambiguous window"
CLEAN, CHECKED, NEWEST = "last clean check", "last check", "newest event"
"""Of people: the highest verified frontier, the judged frontier f, the head."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A row of the rail's table: what stands there, where, and on which ground. `spelled` empty: not known."""

    name: str
    spelled: str
    says: str
    tone: str = "quiet"


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane of an audit, ready to be shown."""

    name: str
    row: Mapping[str, Any]
    stops: list[Stop]
    figure: dict[str, Any]
    figure_id: str
    figure_says: str
    stops_caption: str
    scattered: list[dict[str, Any]]
    scattered_caption: str


@dataclass(frozen=True, slots=True)
class LaneTable:
    """The audit's lanes as rows, the most troubled first. `count`: all of them; `more`: how many are not listed."""

    rows: list[tuple[str, Mapping[str, Any]]]
    count: int

    @property
    def more(self) -> int:
        return self.count - len(self.rows)


def lane_table(lanes: Mapping[str, Any], most: int = LISTED_LANES) -> LaneTable:
    """`lanes`: as they read now."""
    return LaneTable(lanes_by_trouble(lanes)[:most], len(lanes))


def frontier_few(spelled: str) -> str:
    """A frontier as it is spelled, short enough for a sentence.

    >>> frontier_few("0=5,1=5"), frontier_few("0=5,1=5,2=5,3=5,4=5")
    ('0=5,1=5', '0=5, 1=5, 2=5 and 2 more lanes')
    """
    lanes = spelled.split(",")
    more = len(lanes) - LANES_SAID
    return spelled if more <= 0 else f"{', '.join(lanes[:LANES_SAID])} and {more:,} more lanes"


def lanes_of(
    audit: Audit, spelling: Spelling, certified: Mapping[str, Any], starts: Mapping[str, Any], now: datetime
) -> list[Lane]:
    """The audit's most troubled lanes. `certified`: lane -> (highest verified coordinate, entry); `starts`: lane ->
    coordinate row."""
    found = []
    status = audit.status if not is_expired(audit.evidence_until, now) else Status.UNKNOWN.value
    lanes = lanes_read(audit.lanes, audit.evidence_until, now)
    for number, (name, row) in enumerate(lanes_by_trouble(lanes)[:DRAWN_LANES]):
        verified = certified[name].frontier if name in certified else None
        start = coordinate_from_row(starts[name]) if name in starts else None
        stops = stops_of(row, status, spelling, verified, start)
        figure = rail_figure(_places(stops, spelling), _runs(audit, name))
        says = f"How far each side has come, lane {name}: " + "; ".join(
            f"{one.name} {one.spelled}" for one in stops if one.spelled
        )
        of = f", lane {name}" if len(lanes) > 1 else ""
        found.append(
            Lane(
                name,
                row,
                stops,
                figure,
                f"rail-{number}",
                f"{says}.",
                f"Oldest first{of}",
                scattered_of(audit, name),
                f"Scattered findings by stretch{of}",
            )
        )
    return found


def stops_of(
    row: Mapping[str, Any], status: str, spelling: Spelling, verified: Coordinate | None, start: Coordinate | None
) -> list[Stop]:
    """Every place of the lane that is known or worth saying that it is not, from the oldest to the newest."""
    safe = row.get("safe_frontier") or {}
    floor, lowest = row.get("floor_says"), row.get("lowest_says")
    judged_tone = tone_of(OUTCOMES[status].status)[0]
    clean = "every event's id" if row.get("identity") else "every event exactly once"
    return [
        Stop("floor", floor or "", "Below it the source has dropped rows.")
        if floor
        else Stop("oldest row", lowest or "", "The oldest the source held; nothing is known to be dropped below it."),
        Stop(
            CLEAN,
            coordinate_format(verified, spelling) if verified else "",
            f"Up to here an audit found {clean}." if verified else f"No audit found {clean} yet.",
            "calm",
        ),
        Stop(
            CHECKED,
            str(row.get("frontier_says") or ""),
            "The last audit judged everything up to here (f).",
            judged_tone,
        ),
        Stop(
            "accepted up to",
            str(row.get("accepted_to_says") or ""),
            "The newest event that the sink has; older ones may be missing.",
            "busy",
        ),
        *cursor_stops(row, status),
        Stop(
            "relay starts",
            coordinate_format(start, spelling) if start else "",
            "The next relay run starts after this." if start else "No recovery has set a start yet.",
            "calm",
        ),
        Stop(
            "safe frontier",
            str(safe.get("says") or ""),
            f"By {safe.get('ground', 'no ground')}: {safe.get('because', NOTHING_SAFE)}",
            "busy",
        ),
        Stop(
            NEWEST,
            str(row.get("head_says") or ""),
            "The newest committed row.",
        ),
    ]


def cursor_stops(row: Mapping[str, Any], status: str) -> list[Stop]:
    """The relay's own claim, and the window it leaves ambiguous, each beside what the sink's record says of it."""
    cursor = row.get("cursor")
    if cursor is None:
        return [Stop(CURSOR, "", f"Not read: the source does not say where the relay keeps it. {ASIDE}")]
    claim, window = cursor_says(cursor, status), window_says(cursor, status)
    if not cursor.get("has_window"):
        return [Stop(CURSOR, cursor["says"] or "", f"{claim} {window}".strip())]
    ends = f"above {cursor['says']}, up to {row.get('head_says')}"
    return [Stop(CURSOR, cursor["says"], claim), Stop(WINDOW, ends, window, "unsure")]


def _places(stops: list[Stop], spelling: Spelling) -> list[Place]:
    """What can be drawn. The ambiguous window has no place of its own: it goes on from the cursor, to the head."""
    held = {stop.name: at for stop in stops if (at := _at(stop.spelled, spelling)) is not None}
    windows = [stop for stop in stops if stop.name == WINDOW and NEWEST in held]
    places = []
    for stop in stops:
        if stop.name not in held:
            continue
        at = held[stop.name]
        place = Place(stop.name, stop.spelled, at.position, at.ordinal, stop.tone)
        if stop.name == CURSOR and windows:
            end = held[NEWEST]
            says = f"{WINDOW}: {windows[0].spelled}"
            place = replace(place, until=(end.position, end.ordinal), until_says=says)
        places.append(place)
    return places


def _at(spelled: str, spelling: Spelling) -> Coordinate | None:
    """None: not known, or spelled as an earlier registration of the source did."""
    try:
        return coordinate_parse(spelled, spelling)
    except BadInput:
        return None


def _runs(audit: Audit, lane: str) -> list[Run]:
    """The findings of this lane, neighbours together; where they are too many, counted by stretches of the lane.

    Of an audit without groups its first page is drawn, one by one.
    """
    if audit.groups:
        return [
            Run(
                group["finding"],
                _bin_says(run) if group.get("bins") else _run_says(run),
                _held(run["first"]),
                _held(run["last"]),
                int(run["count"]) if group.get("bins") else None,
            )
            for group in audit.groups
            if group["lane"] == lane
            for run in group.get("bins") or group["runs"]
        ]
    return [
        Run(row["finding"], row["coordinate"], _held(row), _held(row))
        for row in audit.findings
        if row.get("lane") == lane
    ]


def _run_says(run: Mapping[str, Any]) -> str:
    if run["first_says"] == run["last_says"]:
        return str(run["first_says"])
    return f"{run['first_says']} to {run['last_says']}, {int(run['count']):,}"


def _bin_says(run: Mapping[str, Any]) -> str:
    return f"{run['first_says']} to {run['last_says']}: {int(run['count']):,} in this stretch"


def scattered_of(audit: Audit, lane: str) -> list[dict[str, Any]]:
    """What is drawn as stretches, as rows: the finding, from where to where, and how many."""
    return [
        {"finding": group["finding"], "first": one["first_says"], "last": one["last_says"], "count": one["count"]}
        for group in audit.groups
        if group["lane"] == lane
        for one in group.get("bins") or ()
    ]


def _held(row: Mapping[str, Any]) -> tuple[int, int]:
    return int(row["position"]), int(row["ordinal"])
