"""When a pipeline is audited by itself, and at which frontier such an audit judges.

Two laws. What is due next is counted from what was due before, which is stored, and never from when a process started:
a restart moves nothing. And a scheduled verdict stands at the newest frontier that was pinned one window ago: whatever
lies at or below it was committed then, so it had the whole window to be accepted. What is newer is *suspected* at most,
which is a count and no status. All times are the control database's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import coordinate_as_row, coordinate_from_row

ACTOR = "schedule"
"""Who asked, where a schedule did."""

PINS_IN_A_WINDOW = 8
"""About so many pins of one window are kept: however often somebody audits, the row stays small."""


@dataclass(frozen=True, slots=True)
class Cadence:
    """What a pipeline's options say of its audits. `jitter`: by what share of the period one may come sooner.

    `window`: how long an event may be on its way. `sla` None: nobody promised by when an event is accepted.
    """

    is_on: bool
    period: timedelta
    jitter: float
    window: timedelta
    full_period: timedelta
    sla: timedelta | None = None
    owner: str = ""


def cadence_of(options: Mapping[str, Any]) -> Cadence:
    """Of a pipeline's options, parsed."""
    sla = options["acceptance_sla_seconds"]
    return Cadence(
        is_on=options["is_scheduled"],
        period=timedelta(seconds=options["audit_every_seconds"]),
        jitter=options["audit_jitter_percent"] / 100,
        window=timedelta(seconds=options["in_flight_seconds"]),
        full_period=timedelta(seconds=options["full_audit_every_seconds"]),
        sla=None if sla is None else timedelta(seconds=sla),
        owner=options["owner"] or "",
    )


def due_after(due: datetime, seed: str, cadence: Cadence) -> datetime:
    """What follows a due time: a period later, or sooner by up to the jitter, the same whoever computes it.

    >>> from datetime import UTC
    >>> hourly = Cadence(True, timedelta(hours=1), 0.0, timedelta(minutes=1), timedelta(days=1))
    >>> due_after(datetime(2026, 3, 1, 3, tzinfo=UTC), "7", hourly).isoformat()
    '2026-03-01T04:00:00+00:00'
    """
    return due + cadence.period * (1 - cadence.jitter * _share(seed, due))


def due_next(due: datetime, now: datetime, seed: str, cadence: Cadence) -> datetime:
    """The first due time after `now`, counted from `due`. Those that passed in between are not made up for.

    >>> from datetime import UTC
    >>> daily = Cadence(True, timedelta(days=1), 0.0, timedelta(minutes=1), timedelta(days=1))
    >>> due_next(datetime(2026, 3, 1, 3, tzinfo=UTC), datetime(2026, 3, 9, 17, tzinfo=UTC), "7", daily).isoformat()
    '2026-03-10T03:00:00+00:00'
    """
    if now >= due:
        due += cadence.period * ((now - due) // cadence.period)
    while due <= now:
        due = due_after(due, seed, cadence)
    return due


def overdue_since(
    next_due_at: datetime | None,
    unanswered_at: datetime | None,
    read_at: datetime | None,
    now: datetime,
    seed: str,
    cadence: Cadence,
) -> datetime | None:
    """Since when an audit is due that nobody made, if for more than a period. None: there is none.

    `unanswered_at`: the oldest due time that was asked for and not answered. `read_at`: when the record was last read,
    by whomever: whoever reads after a due time answers it.
    """
    due = due_unanswered(next_due_at, unanswered_at, read_at, seed, cadence)
    return due if due is not None and now - due > cadence.period else None


def due_unanswered(
    next_due_at: datetime | None,
    unanswered_at: datetime | None,
    read_at: datetime | None,
    seed: str,
    cadence: Cadence,
) -> datetime | None:
    """The due time that no reading has answered yet; a period after it, it is overdue. None: nothing is due by itself."""
    if not cadence.is_on or next_due_at is None:
        return None
    due = next_due_at if unanswered_at is None else min(unanswered_at, next_due_at)
    if read_at is not None and read_at >= due:
        due = due_next(due, read_at, seed, cadence)
    return due


@dataclass(frozen=True, slots=True)
class PinnedLane:
    """A coordinate of a lane, and the incarnation of its source that it belongs to: of another it says nothing."""

    coordinate: Coordinate
    incarnation: str


@dataclass(frozen=True, slots=True)
class Pin:
    """A frontier, and when it was pinned: at or below it everything was committed by then."""

    at: datetime
    lanes: Mapping[str, PinnedLane]

    def as_row(self) -> dict[str, Any]:
        return {"at": self.at.isoformat(), "lanes": {lane: _lane_as_row(one) for lane, one in self.lanes.items()}}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Pin:
        return cls(datetime.fromisoformat(row["at"]), {lane: _lane_from_row(one) for lane, one in row["lanes"].items()})


def pins_aged(pins: Sequence[Pin], now: datetime, window: timedelta) -> dict[str, PinnedLane] | None:
    """Of each lane the newest frontier that was pinned a window ago or earlier. None: no pin is so old yet."""
    old = [pin for pin in pins if now - pin.at >= window]
    found: dict[str, PinnedLane] = {}
    for pin in sorted(old, key=lambda one: one.at):
        for lane, pinned in pin.lanes.items():
            before = found.get(lane)
            if before is None or before.incarnation != pinned.incarnation or before.coordinate <= pinned.coordinate:
                found[lane] = pinned
    return found if old else None


def pins_keep(pins: Sequence[Pin], new: Pin, window: timedelta) -> list[Pin]:
    """The pins with `new` among them: the newest that is a window old, and what came since, not too close together.

    The newest always stays, so that a later audit reaches as far as this one; it goes when the next comes, if the one
    before it is near enough.
    A lane that `new` says nothing of stays where it was: what was committed then is committed now.
    """
    kept = sorted(pins, key=lambda one: one.at)
    new = Pin(new.at, {**(kept[-1].lanes if kept else {}), **new.lanes})
    old = [pin for pin in kept if new.at - pin.at >= window]
    kept = [*old[-1:], *(pin for pin in kept if new.at - pin.at < window)]
    if len(kept) > 1 and kept[-1].at - kept[-2].at < window / PINS_IN_A_WINDOW:
        kept.pop()
    return [*kept, new]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The lowest event of a lane that was not accepted when last audited, and since when it is known to wait."""

    event: PinnedLane
    since: datetime

    def as_row(self) -> dict[str, Any]:
        return {**_lane_as_row(self.event), "since": self.since.isoformat()}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Waiting:
        return cls(_lane_from_row(row), datetime.fromisoformat(row["since"]))


def waiting_settle(
    before: Mapping[str, Waiting], found: Mapping[str, PinnedLane], pins: Sequence[Pin], read_at: datetime
) -> dict[str, Waiting]:
    """What waits now, by lane. It waits at least since it was first seen, or since a pin at or above it was made.

    So the wait that is shown is never longer than the real one; it may be shorter by what passed before a first look.
    """
    settled = {}
    for lane, event in found.items():
        known = before.get(lane)
        if known is not None and known.event == event:
            settled[lane] = known
            continue
        pinned = [(pin.at, pin.lanes[lane]) for pin in pins if lane in pin.lanes]
        seen = [at for at, one in pinned if one.incarnation == event.incarnation and event.coordinate <= one.coordinate]
        settled[lane] = Waiting(event, min([*seen, read_at]))
    return settled


UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def span_says(span: timedelta) -> str:
    """A duration in the largest unit that it is a whole number of.

    >>> span_says(timedelta(seconds=300)), span_says(timedelta(seconds=90)), span_says(timedelta(days=1))
    ('5 min', '90 s', '1 d')
    """
    seconds = int(span.total_seconds())
    size, unit = next((one for one in UNITS if seconds and seconds % one[0] == 0), (1, "s"))
    return f"{seconds // size} {unit}"


def span_at_least(span: timedelta) -> str:
    """A duration, rounded down to what a person wants to know of it.

    >>> span_at_least(timedelta(seconds=119)), span_at_least(timedelta(seconds=179)), span_at_least(timedelta(hours=49))
    ('119 s', '2 min', '2 d')
    """
    seconds = int(span.total_seconds())
    size = next((size for size, _ in UNITS if seconds >= 2 * size), 1)
    return span_says(timedelta(seconds=seconds // size * size))


def _lane_as_row(lane: PinnedLane) -> dict[str, str]:
    return {**coordinate_as_row(lane.coordinate), "incarnation": lane.incarnation}


def _lane_from_row(row: Mapping[str, Any]) -> PinnedLane:
    return PinnedLane(coordinate_from_row({name: row[name] for name in ("position", "ordinal")}), row["incarnation"])


def _share(seed: str, due: datetime) -> float:
    """A number from 0 to 1 that is the same for the same pipeline and due time, and looks random."""
    digest = hashlib.sha256(f"{seed} {due.isoformat()}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
