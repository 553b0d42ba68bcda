"""What may take away evidence that a recovery needs, and the earliest moment at which it may.

The law: *for ever* is never assumed. What nobody declared, and what could not be read, is a term that is unknown. All
moments are the control database's; a moment that another clock told is brought over with the whole error of what was
measured between the two, and is unknown where nothing was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

FAR = timedelta(days=100 * 366)
"""What lies further away is said to lie so far: no arithmetic leaves the calendar."""


class Forgets(StrEnum):
    """Whose memory a term is about."""

    SOURCE_PURGE = "source_purge"
    """The source deletes rows by age."""
    SOURCE_DISK = "source_disk"
    """The source deletes nothing: its disk is what ends."""
    SLOT = "slot"
    """A logical slot keeps WAL up to a limit."""
    SLOT_IDLE = "slot_idle"
    """The server invalidates a slot that nobody reads for a while."""
    SINK_MEMORY = "sink_memory"
    """The sink knows an event it has accepted for so long; later it would accept it again."""
    SINK_MEMORY_ENTRIES = "sink_memory_entries"
    """The sink knows so many of the last events it accepted."""
    RECORD = "record"
    """The acceptance record deletes entries by age."""
    SINK_DISK = "sink_disk"
    """The record deletes nothing: its disk is what ends."""
    ARCHIVE = "archive"
    """Our own archive of the source, of which a recovery fires what the source dropped."""
    APPROVAL = "approval"
    """An approval that waits for its recovery: it lapses, and is given again for as long as the rest lasts."""


class Reach(StrEnum):
    """What is known of when a term ends."""

    KNOWN = "known"
    """`expires_at` is the earliest moment at which evidence may be gone."""
    NO_LIMIT = "no_limit"
    """Nothing that a recovery needs is touched by it."""
    GONE = "gone"
    """It is gone; since when is not needed."""
    UNKNOWN = "unknown"
    """Nobody declared it, or it could not be read."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a split recovery. `takes`: C, with its overhead and its waits for an approval."""

    expires_at: datetime
    takes: timedelta


@dataclass(frozen=True, slots=True)
class Term:
    """One memory. `expires_at`: of *known* alone. `sent_seconds`: how much time of that memory each event sent takes.
    `parts`: of a recovery that is split, where each part has an end of its own in this memory; none: it ends for all at once.

    `says`: what it rests on; of *unknown*, what is missing and what to do.
    """

    forgets: Forgets
    reach: Reach
    says: str
    expires_at: datetime | None = None
    sent_seconds: float = 0.0
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Clock:
    """How far the clock that told a moment is ahead of the clock of the end that forgets, and by how much that may be wrong.

    >>> Clock(timedelta(minutes=4), timedelta(minutes=1)).earliest(datetime(2026, 3, 1, 11, 30)).isoformat()
    '2026-03-01T11:25:00'
    """

    ahead: timedelta = timedelta(0)
    error: timedelta = timedelta(0)

    def earliest(self, told: datetime) -> datetime:
        """The earliest time that the forgetting end's clock can have shown when the other clock showed `told`."""
        return told - self.ahead - abs(self.error)


SAME_CLOCK = Clock()
"""The moment was told by the clock of the end that forgets, or by the control database's where both are one."""


def by_age(forgets: Forgets, keeps: timedelta, since: datetime | None, clock: Clock | None, says: str) -> Term:
    """What is kept for `keeps` after `since`: an event's commit, or its mark, which is its first possible acceptance.

    `since` None: when that was is not known. `clock` None: nothing was measured between the two clocks.
    """
    if since is None:
        return Term(forgets, Reach.UNKNOWN, f"{says} When it began to count is not known.")
    if clock is None:
        return Term(forgets, Reach.UNKNOWN, f"{says} How far the two clocks are apart was not measured.")
    return Term(forgets, Reach.KNOWN, says, clock.earliest(since) + min(keeps, FAR))


def by_entries(capacity: int, used: int, peak_per_second: float, now: datetime, says: str) -> Term:
    """What is kept as the last `capacity` entries, of which `used` came in since the oldest that is needed.

    `peak_per_second`: the most that anybody's entries came in at. What a re-drive sends takes room of it, too.
    Raises: ValueError for a rate of nothing: entries without a rate are no time.
    """
    if not peak_per_second > 0 or not math.isfinite(peak_per_second):
        raise ValueError("entries become time through the highest rate at which they come in: give one above zero")
    left = span(max(capacity - used, 0) / peak_per_second)
    return Term(Forgets.SINK_MEMORY_ENTRIES, Reach.KNOWN, says, now + left, 1 / peak_per_second)


def by_room(forgets: Forgets, left_bytes: int, peak_per_hour: float, now: datetime, says: str) -> Term:
    """What is kept until `left_bytes` are full, which fill at `peak_per_hour` bytes at most: a slot's limit, a disk.

    Raises: ValueError for a growth of nothing: room without a growth is no time.
    """
    if not peak_per_hour > 0 or not math.isfinite(peak_per_hour):
        raise ValueError("bytes become time through the highest growth: give one above zero")
    return Term(forgets, Reach.KNOWN, says, now + span(max(left_bytes, 0) / peak_per_hour * 3600))


def slot_lost(says: str) -> Term:
    """A slot that the server dropped or invalidated: the WAL behind it is gone."""
    return Term(Forgets.SLOT, Reach.GONE, says)


def no_limit(forgets: Forgets, says: str) -> Term:
    return Term(forgets, Reach.NO_LIMIT, says)


def unknown(forgets: Forgets, says: str) -> Term:
    return Term(forgets, Reach.UNKNOWN, says)


def purge_by_mark(
    keeps: timedelta, unmarked_count: int, oldest_mark: datetime | None, clock: Clock | None, says: str
) -> Term:
    """A purge of rows that are marked sent: it never touches an unmarked one.

    `oldest_mark`: of the rows that are marked and were not accepted; None: there is none.
    """
    if oldest_mark is None:
        return no_limit(
            Forgets.SOURCE_PURGE, f"{says} The {unmarked_count:,} owed rows are not marked: it leaves them."
        )
    return by_age(Forgets.SOURCE_PURGE, keeps, oldest_mark, clock, says)


def anchor(oldest_owed_at: datetime | None, certified_to: datetime | None) -> datetime | None:
    """From when on evidence is needed: the oldest owed event or, if earlier, the first moment not yet certified.

    None: neither is known.
    """
    known = [one for one in (oldest_owed_at, certified_to) if one is not None]
    return min(known) if known else None


def span(seconds: float) -> timedelta:
    """So many seconds, at most FAR either way."""
    far = FAR.total_seconds()
    return timedelta(seconds=max(-far, min(seconds, far)))
