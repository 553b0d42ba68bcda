"""What earlier audits and recoveries showed of a pipeline's pace: arrivals, the rate of a re-drive, from when on it is certified.

The law: a figure is the one on the safe side of what was seen, and None where nothing was seen. Nothing here is typed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.headroom.seen import EndSeen, growth_per_hour

LEAST_INTERVAL = timedelta(seconds=10)
"""Two audits that are nearer to each other show no rate."""
LARGE_ENOUGH = 1_000
"""A re-drive of fewer events shows no rate: what it takes is overhead."""


@dataclass(frozen=True, slots=True)
class AuditSeen:
    """One audit, as far as headroom asks. `lost`: at its frontier, acknowledged ones included; `owed`: what a recovery may send,
    with what is suspected above the frontier.

    `ends`: what source, record and delivery showed of themselves then. `tells`: it could tell what is owed. `archived`: how many lost events are gone at the source and in the archive. `heads`: of each lane the newest event then; None: it held none.
    """

    started_at: datetime
    read_at: datetime
    is_scheduled: bool
    tells: bool
    obligations: int
    accepted: int
    lost: int
    owed: int
    frontier: Mapping[str, Coordinate]
    heads: Mapping[str, Coordinate | None]
    archived: int = 0
    ends: Mapping[str, EndSeen] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunSeen:
    """One finished recovery that fired once. `landed`: how many events it sent."""

    created_at: datetime
    claimed_at: datetime
    fired_at: datetime
    finished_at: datetime
    landed: int


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Events a second that came in: the most between any two audits, and between the last two. None: not seen."""

    peak_per_second: float | None
    recent_per_second: float | None
    is_delivering: bool
    """Between the last two audits something was accepted, and what is owed did not grow."""


def arrivals_of(audits: Sequence[AuditSeen]) -> Arrivals:
    """`audits` newest first. Only audits of one sort are compared: a scheduled one stands a window further back.

    Where rows go, what was accepted and what is owed count instead of what the source still holds: the larger counts.
    """
    readable = [one for one in audits if one.tells]
    rates = []
    for is_scheduled in (True, False):
        same = [one for one in readable if one.is_scheduled is is_scheduled]
        rates += [(new.read_at, rate) for new, old in _apart(same) if (rate := _rate(new, old)) is not None]
    recent = max(rates, default=None)
    is_delivering = False
    if len(readable) > 1:
        new, old = readable[0], readable[1]
        is_delivering = new.accepted > old.accepted and new.owed <= old.owed
    return Arrivals(max((rate for _, rate in rates), default=None), recent[1] if recent else None, is_delivering)


def _apart(audits: Sequence[AuditSeen]) -> Iterator[tuple[AuditSeen, AuditSeen]]:
    """Each audit with the newest one before it that is far enough away: many close ones hide no rate."""
    older = iter(audits)
    old = next(older, None)
    for new in audits:
        while old is not None and new.read_at - old.read_at < LEAST_INTERVAL:
            old = next(older, None)
        if old is None:
            return
        yield new, old


def _rate(new: AuditSeen, old: AuditSeen) -> float | None:
    seconds = (new.read_at - old.read_at).total_seconds()
    came = max(new.obligations - old.obligations, new.accepted - old.accepted + new.owed - old.owed)
    return None if came < 0 else came / seconds


def redrive_rate(runs: Sequence[RunSeen]) -> float | None:
    """Events a second of the slowest re-drive, small ones left out. Its time runs from the claim to the fire."""
    rates = [
        one.landed / seconds
        for one in runs
        if one.landed >= LARGE_ENOUGH and (seconds := (one.fired_at - one.claimed_at).total_seconds()) > 0
    ]
    return min(rates, default=None)


def overhead_of(runs: Sequence[RunSeen]) -> timedelta | None:
    """The most that a recovery took beside sending: until its claim, and from its fire to its end."""
    spans = [one.claimed_at - one.created_at + (one.finished_at - one.fired_at) for one in runs]
    return max((one for one in spans if one >= timedelta(0)), default=None)


def certified_to(audits: Sequence[AuditSeen], frontier: Mapping[str, Coordinate]) -> datetime | None:
    """The latest moment known before which nothing above `frontier` was committed. None: none is known.

    An audit that saw no event above it had not begun when the first of them was committed. A frontier alone says no such
    thing: what is above a safe frontier may be older than the moment at which that was pinned.
    """
    return max((one.started_at for one in audits if _ends_within(one, frontier)), default=None)


def _ends_within(audit: AuditSeen, frontier: Mapping[str, Coordinate]) -> bool:
    if not audit.heads:
        return False
    for lane, head in audit.heads.items():
        if head is not None and (lane not in frontier or frontier[lane] < head):
            return False
    return True


def end_latest(audits: Sequence[AuditSeen], name: str) -> EndSeen | None:
    """The newest look at that end; `audits` newest first. None: nobody looked."""
    return next((one.ends[name] for one in audits if name in one.ends), None)


def end_growth(audits: Sequence[AuditSeen], name: str, of: str) -> float | None:
    """The most bytes an hour by which `of` (table_bytes, wal_position) of that end was seen to grow. None: not seen."""
    looks = [one.ends[name] for one in audits if name in one.ends]
    return growth_per_hour([(look.read_at, getattr(look, of)) for look in looks])


def slot_was_there(audits: Sequence[AuditSeen], name: str) -> bool:
    """Whether any of these audits saw a slot of that name."""
    slots = [one.ends["source"].slot for one in audits if "source" in one.ends]
    return any(slot is not None and slot.name == name and slot.is_there for slot in slots)
