"""What an audit read of the ends themselves, beside their rows: their clocks, a logical slot, how large things are.

The law: it is a reading of one moment, and counts from that moment. What was not read is unknown; what an end said of itself
(a slot that is lost) counts whatever was declared. Readings are kept with the audit, as rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from recovery_api.domain.headroom.terms import Clock, Forgets, Reach, Term, by_room, slot_lost, unknown

LEAST_INTERVAL = timedelta(seconds=10)
"""Two readings that are nearer to each other show no growth."""


@dataclass(frozen=True, slots=True)
class ClockSeen:
    """How far an end's clock was ahead of the control database's, and by how much that may be wrong."""

    ahead: timedelta
    error: timedelta


@dataclass(frozen=True, slots=True)
class SlotSeen:
    """A logical slot as its server showed it. `problem`: why it is not one that keeps this source's WAL; "" where it is.

    `is_there` False: no slot has the name. `room_bytes` None: nothing limits what it keeps. `idle` None: it is in use, or
    the server does not say. `idle_limit` None: a slot that is not used stays.
    """

    name: str
    is_there: bool = True
    problem: str = ""
    wal_status: str = ""
    lost_because: str = ""
    room_bytes: int | None = None
    idle: timedelta | None = None
    idle_limit: timedelta | None = None


@dataclass(frozen=True, slots=True)
class EndSeen:
    """One end at one audit. None: not read. `problem`: why not, a sentence."""

    read_at: datetime
    clock: ClockSeen | None = None
    slot: SlotSeen | None = None
    table_bytes: int | None = None
    wal_position: int | None = None
    problem: str = ""


def end_seen_as_row(seen: EndSeen) -> dict[str, Any]:
    """Whole seconds lose an error's meaning, so spans are seconds with fractions; wide numbers are texts."""
    slot = seen.slot
    return {
        "read_at": seen.read_at.isoformat(),
        "problem": seen.problem,
        "clock": seen.clock
        and {"ahead_seconds": seen.clock.ahead.total_seconds(), "error_seconds": seen.clock.error.total_seconds()},
        "slot": slot
        and {
            "name": slot.name,
            "is_there": slot.is_there,
            "problem": slot.problem,
            "wal_status": slot.wal_status,
            "lost_because": slot.lost_because,
            "room_bytes": _text(slot.room_bytes),
            "idle_seconds": _seconds(slot.idle),
            "idle_limit_seconds": _seconds(slot.idle_limit),
        },
        "table_bytes": _text(seen.table_bytes),
        "wal_position": _text(seen.wal_position),
    }


def end_seen_from_row(row: Mapping[str, Any] | None) -> EndSeen | None:
    """None: that audit read nothing of this end."""
    if not row:
        return None
    clock, slot = row.get("clock"), row.get("slot")
    return EndSeen(
        read_at=datetime.fromisoformat(row["read_at"]),
        clock=ClockSeen(_span(clock["ahead_seconds"]), _span(clock["error_seconds"])) if clock else None,
        slot=SlotSeen(
            name=slot["name"],
            is_there=slot["is_there"],
            problem=slot["problem"],
            wal_status=slot["wal_status"],
            lost_because=slot["lost_because"],
            room_bytes=_number(slot["room_bytes"]),
            idle=None if slot["idle_seconds"] is None else _span(slot["idle_seconds"]),
            idle_limit=None if slot["idle_limit_seconds"] is None else _span(slot["idle_limit_seconds"]),
        )
        if slot
        else None,
        table_bytes=_number(row.get("table_bytes")),
        wal_position=_number(row.get("wal_position")),
        problem=row.get("problem", ""),
    )


def growth_per_hour(readings: Sequence[tuple[datetime, int | None]]) -> float | None:
    """The most bytes an hour between two readings, newest first. None: no two show any.

    What became smaller in between (a table that was truncated, another server) shows nothing.
    """
    known = [(at, size) for at, size in readings if size is not None]
    rates: list[float] = []
    behind = 0
    for newer, new in known:
        while behind < len(known) and newer - known[behind][0] < LEAST_INTERVAL:
            behind += 1
        if behind == len(known):
            break
        older, old = known[behind]
        if new >= old:
            rates.append((new - old) / ((newer - older).total_seconds() / 3600))
    return max(rates, default=None)


@dataclass(frozen=True, slots=True)
class Clocks:
    """How far a moment that was brought over to the control database's clock may be wrong for each end that forgets. None:
    neither measured nor declared. `ahead`: how far the source's clock is ahead, to be taken off what it told.
    """

    source: Clock | None
    record: Clock | None
    into: Clock | None
    ahead: timedelta = timedelta(0)

    def brought_over(self, told: datetime | None) -> datetime | None:
        """What the source's clock told, by the control database's."""
        return None if told is None else told - self.ahead


def clocks_of(
    source: EndSeen | None, record: EndSeen | None, into: EndSeen | None, declared_clock: Clock | None
) -> Clocks:
    """Measured where it was; else as declared. Of two measured clocks both errors count, whole.

    >>> minute, noon = timedelta(minutes=1), datetime(2026, 3, 1, 12)
    >>> ahead, exact = EndSeen(noon, ClockSeen(4 * minute, minute)), EndSeen(noon, ClockSeen(0 * minute, 0 * minute))
    >>> found = clocks_of(ahead, exact, None, None)
    >>> found.ahead, found.record, found.into
    (datetime.timedelta(seconds=240), Clock(ahead=datetime.timedelta(0), error=datetime.timedelta(seconds=60)), None)
    """
    own = source.clock if source is not None else None
    if own is None:
        return Clocks(declared_clock, declared_clock, declared_clock)

    def of(end: EndSeen | None) -> Clock | None:
        if end is None or end.clock is None:
            return declared_clock
        return Clock(error=own.error + end.clock.error)

    return Clocks(Clock(error=own.error), of(record), of(into), own.ahead)


def slot_terms(
    name: str,
    seen: EndSeen | None,
    was_there: bool,
    wal_per_hour: float | None,
    disk_bytes: int | None,
    now: datetime,
) -> list[Term]:
    """Of the slot that was named at the source. `was_there`: an earlier audit saw it. `wal_per_hour`: the most that WAL grew
    by, seen or declared. `disk_bytes`: how much of the disk is always free, as declared."""
    slot = seen.slot if seen is not None else None
    if seen is None or slot is None or slot.name != name:
        because = f" {seen.problem}" if seen and seen.problem else ""
        return [unknown(Forgets.SLOT, f"The slot {name} was not read at the last audit.{because}")]
    if not slot.is_there:
        if was_there:
            return [slot_lost(f"The slot {name} is gone: somebody dropped it, and the WAL that it kept.")]
        return [unknown(Forgets.SLOT, f"There is no slot {name} at the source. Name the one that the relay reads by.")]
    if slot.problem:
        return [unknown(Forgets.SLOT, slot.problem)]
    if slot.lost_because or slot.wal_status == "lost":
        because = f" ({slot.lost_because})" if slot.lost_because else ""
        return [slot_lost(f"The slot {name} is lost{because}: the WAL that it kept is gone.")]
    return [_room(name, slot, seen.read_at, wal_per_hour, disk_bytes, now), *_idle(name, slot, seen.read_at)]


def _room(
    name: str, slot: SlotSeen, read_at: datetime, wal_per_hour: float | None, disk_bytes: int | None, now: datetime
) -> Term:
    if slot.wal_status == "unreserved":
        says = (
            f"The slot {name} is unreserved: the next checkpoint may take its WAL away, and it may come at any moment."
        )
        return Term(Forgets.SLOT, Reach.KNOWN, says, read_at)
    says = f"The slot {name} keeps WAL without limit, so the disk is what ends."
    if slot.room_bytes is not None:
        says = f"The slot {name} may keep {max(slot.room_bytes, 0):,} bytes of WAL more, as read at the last audit."
    if wal_per_hour is None:
        return unknown(Forgets.SLOT, f"{says} How fast WAL grows is not known: two audits show it.")
    if wal_per_hour <= 0:
        return unknown(
            Forgets.SLOT,
            f"{says} No WAL was seen to grow: at that rate it lasts without limit, which nothing promises.",
        )
    grows = f" At most {round(wal_per_hour):,} bytes an hour come in."
    if slot.room_bytes is not None:
        return by_room(Forgets.SLOT, slot.room_bytes, wal_per_hour, read_at, f"{says}{grows}")
    if disk_bytes is None:
        return unknown(Forgets.SLOT, f"{says} Declare disk_free_bytes and its growth at the source.")
    return by_room(
        Forgets.SLOT, disk_bytes, wal_per_hour, now, f"{says} {disk_bytes:,} bytes are free, as declared.{grows}"
    )


def _idle(name: str, slot: SlotSeen, read_at: datetime) -> list[Term]:
    """A slot that nobody reads is invalidated after a while, where its server says so."""
    if slot.idle_limit is None:
        return []
    says = f"The server invalidates a slot that nobody reads for {slot.idle_limit}; {name}"
    idle = slot.idle or timedelta(0)
    says += f" was idle for {idle} when last audited." if slot.idle is not None else " is read now."
    return [Term(Forgets.SLOT_IDLE, Reach.KNOWN, says, read_at + slot.idle_limit - idle)]


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _number(text: Any) -> int | None:
    return None if text is None else int(text)


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def _span(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)
