"""The eleven acceptance cases of headroom, as values. Now is 12:00; margin 10 min, operator delay 30, overhead 5, 100/s."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from recovery_api.domain.headroom.live import Headroom, Pace, headroom
from recovery_api.domain.headroom.terms import (
    SAME_CLOCK,
    Clock,
    Forgets,
    Part,
    Term,
    by_age,
    by_entries,
    by_room,
    purge_by_mark,
    slot_lost,
    unknown,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIB = 2**30


def hours(number: float) -> timedelta:
    return timedelta(hours=number)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def pace(owed: int, growth: float = 0.0, rate: float | None = 100.0) -> Pace:
    return Pace(owed, growth, rate, minutes(5), minutes(10), minutes(30))


def memory(keeps: timedelta, since: datetime, clock: Clock | None = SAME_CLOCK) -> Term:
    return by_age(Forgets.SINK_MEMORY, keeps, since, clock, f"The sink remembers for {keeps}.")


@dataclass(frozen=True)
class Case:
    """What is known, and what must come out. `start`, `decide` None: none is said."""

    number: str
    terms: tuple[Term, ...]
    pace: Pace
    standing: str
    left: timedelta | None
    start: datetime | None
    decide: datetime | None
    is_bound: bool = False
    parts: tuple[Part, ...] = ()

    def judged(self) -> Headroom:
        return headroom(self.terms, self.pace, NOW, self.parts)


def at(hour: int, minute: int, day: int = 1) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


_DAY = memory(hours(24), NOW - hours(14))
_MARKED = purge_by_mark(hours(6), 5_995, at(8, 0), SAME_CLOCK, "Rows go 6 h after their mark.")
_ENTRIES = by_entries(1_000_000, 400_000, 50, NOW, "The sink knows its last 1,000,000 events.")
_SLOT = by_room(Forgets.SLOT, 2 * GIB, 6 * GIB, NOW, "The slot may keep 20 GiB.")
_DISK = by_room(Forgets.SOURCE_DISK, 12 * GIB, 6 * GIB, NOW, "The slot keeps WAL until the disk is full.")
_UNREADABLE = unknown(Forgets.SLOT, "The slot could not be read.")
_LOST = slot_lost("The slot was invalidated.")
_APART = memory(minutes(60), at(11, 30), Clock(minutes(4), minutes(1)))
_PARTS = (Part(at(13, 0), minutes(15)), Part(at(13, 5), minutes(15)))

CASES = (
    Case("1", (_DAY,), pace(90_000, 25), "ok", hours(10), at(19, 36), at(19, 6)),
    Case("2", (_DAY,), pace(90_000), "ok", hours(10), at(21, 30), at(21, 0)),
    Case(
        "3",
        (memory(hours(24), at(11, 40)),),
        pace(30_000, 25),
        "ok",
        timedelta(hours=23, minutes=40),
        at(6, 40, 2),
        at(6, 10, 2),
    ),
    Case("4", (memory(minutes(5), at(11, 58)),), pace(0), "gone", minutes(3), None, None),
    Case("5", (_ENTRIES,), pace(60_000), "ok", minutes(200), at(14, 35), at(14, 5)),
    Case("6", (_MARKED,), pace(6_000), "ok", hours(2), at(13, 44), at(13, 14)),
    Case("7", (_SLOT,), pace(12_000), "low", minutes(20), at(12, 3), at(11, 33)),
    Case("8", (_DISK,), pace(12_000), "ok", hours(2), at(13, 43), at(13, 13)),
    Case("9", (_DAY, _UNREADABLE), pace(90_000, 25), "unknown", hours(10), at(19, 36), at(19, 6), is_bound=True),
    Case("9, slot lost", (_DAY, _LOST), pace(90_000, 25), "gone", None, None, None),
    Case("10", (_APART,), pace(24_000), "low", minutes(25), at(12, 6), at(11, 36)),
    Case("11", (), pace(0), "low", hours(1), at(12, 25), at(11, 55), parts=_PARTS),
)
