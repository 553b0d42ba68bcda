"""The status of a pipeline, from the newest knowledge of it: one function that every face asks.

The law: readings of the record are ordered by when the record's snapshot was opened, never by who finished last. A later
reading takes back what an earlier one found only where it reaches as far: *exactly once at 9200* says nothing of what is
owed at 12200. What was not read lately is unknown, and so is what its schedule should have read by now and did not, and
what rests on evidence that an end may have forgotten since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from recovery_api.domain.coordinates import INT64_MIN, Coordinate
from recovery_api.domain.frontiers import frontier_from_row
from recovery_api.domain.grounds import Standing
from recovery_api.domain.headroom.evidence import expired_says, is_expired
from recovery_api.domain.outcomes import OUTCOMES, WORST_FIRST, Outcome, Status

NOTHING_JUDGED = Coordinate(INT64_MIN, INT64_MIN)
"""The frontier of a lane at which nothing was judged."""


@dataclass(frozen=True, slots=True)
class RecordReading:
    """What one reading of the record found, whoever asked for it: an audit, a plan, a recovery's verification.

    `read_at`: when the record's snapshot was opened, by the control database's clock. `frontier`: as a row.
    `evidence_until`: when what it rests on may be gone; None: no such moment is known.
    """

    read_at: datetime
    status: Status
    frontier: Mapping[str, Any]
    says: str = ""
    evidence_until: datetime | None = None

    def status_at(self, now: datetime) -> Status:
        """What it still tells: nothing, once its evidence has expired."""
        return Status.UNKNOWN if is_expired(self.evidence_until, now) else self.status


@dataclass(frozen=True, slots=True)
class RecoveryRun:
    """The newest recovery of a pipeline. `finished_at` None: unfinished. `problem`: why its work stopped, if it did."""

    name: str
    step: str
    finished_at: datetime | None
    outcome: Outcome | None = None
    says: str = ""
    problem: str = ""
    fired_at: datetime | None = None
    landed_count: int = 0
    is_void: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The word, why, and the reading that it rests on (None: none). `is_stale`: that reading is too old to count, or
    should have been followed by another one. `is_expired`: an end may have forgotten what it rests on."""

    status: Status
    says: str
    reading: RecordReading | None
    is_stale: bool = False
    is_expired: bool = False


def given_says(standing: Standing, phrase: str) -> str:
    """What *given …* goes on with, where the ground gives no phrase of its own.

    >>> given_says(Standing.ASSUMED, "")
    'that nothing older is still to commit'
    """
    if phrase:
        return phrase
    return "the owner's word" if standing is Standing.ATTESTED else "that nothing older is still to commit"


def reading_supersedes(newer: RecordReading, older: RecordReading) -> bool:
    """Whether `newer` leaves nothing of `older` to be told: it is later, it is known, and it reaches as far in each lane."""
    if newer.read_at <= older.read_at:
        return False
    if older.status is Status.UNKNOWN:
        return True
    return newer.status is not Status.UNKNOWN and _reaches(newer.frontier, older.frontier)


def readings_standing(readings: Sequence[RecordReading]) -> list[RecordReading]:
    """Those that no other supersedes, in the order given. Free of that order: each pair is compared."""
    return [one for one in readings if not any(reading_supersedes(other, one) for other in readings)]


def status_decide(
    readings: Sequence[RecordReading],
    run: RecoveryRun | None,
    *,
    now: datetime,
    stale_after: timedelta,
    restored: str | None = None,
    advice: str = "",
    overdue_since: datetime | None = None,
) -> Decision:
    """The status of a pipeline. `restored`: what is said of its sink, where that was restored and is not settled.
    `overdue_since`: when an audit of its schedule was due that nobody made.

    In this order: a restored sink; the worst of what stands of the readings; the newest recovery, which is told instead
    while it runs or where its end is unknown, unless a hazard is known, for no recovery takes one away.
    """
    if restored is not None:
        return Decision(Status.UNKNOWN, restored, None)
    found = _of_readings(readings, now, stale_after, advice, overdue_since)
    if run is None:
        return found
    if run.finished_at is None:
        word, says = Status.RUNNING, f"Recovery {run.name} is {run.step}."
        if run.problem:
            word, says = (
                Status.UNKNOWN,
                f"Recovery {run.name} stopped at {run.step} and is to be settled: {run.problem}",
            )
        return _beside_hazard(found, word, says)
    is_newest = not run.is_void and all(one.read_at <= run.finished_at for one in readings)
    meaning = OUTCOMES[run.outcome].status if run.outcome else None
    ended = f"Recovery {run.name} ended {OUTCOMES[run.outcome].words if run.outcome else 'unknown'}: {run.says}"
    if is_newest and meaning is Status.UNKNOWN:
        return _beside_hazard(found, Status.UNKNOWN, ended)
    is_fresh = now - run.finished_at <= stale_after
    if is_newest and is_fresh and meaning in (Status.HAZARD, Status.OWED) and _is_worse(meaning, found.status):
        return Decision(meaning, ended, found.reading)
    return _with_landed(found, run)


def _of_readings(
    readings: Sequence[RecordReading],
    now: datetime,
    stale_after: timedelta,
    advice: str,
    overdue_since: datetime | None,
) -> Decision:
    """The worst of what stands; of several alike the newest. Expired, stale or overdue is unknown, whatever a shallower
    reading says."""
    standing = readings_standing(readings)
    overdue = (
        f"Overdue since {overdue_since:%Y-%m-%d %H:%M} UTC: the audit due then was not made" if overdue_since else ""
    )
    if not standing:
        late = f"{overdue}. " if overdue else ""
        return Decision(Status.UNKNOWN, f"{late}Nothing is known. {advice}".strip(), None)
    newest_first = sorted(standing, key=lambda one: one.read_at, reverse=True)
    worst = min(newest_first, key=lambda one: WORST_FIRST.index(one.status_at(now)))
    if worst.evidence_until is not None and is_expired(worst.evidence_until, now):
        says = expired_says(worst.evidence_until, worst.says)
        return Decision(Status.UNKNOWN, says, worst, now - worst.read_at > stale_after, is_expired=True)
    if overdue:
        return Decision(Status.UNKNOWN, f"{overdue}, so unknown; when last audited: {worst.says}", worst, is_stale=True)
    if now - worst.read_at > stale_after:
        return Decision(Status.UNKNOWN, f"Stale, so unknown; when last audited: {worst.says}", worst, is_stale=True)
    says = worst.says
    if worst is not newest_first[0]:
        says += " A later check did not reach as far, so this stands."
    return Decision(worst.status, says, worst)


def _beside_hazard(found: Decision, word: Status, says: str) -> Decision:
    if found.status is Status.HAZARD:
        return Decision(Status.HAZARD, f"{says} {found.says}", found.reading)
    return Decision(word, says, found.reading, found.is_stale, found.is_expired)


def _with_landed(found: Decision, run: RecoveryRun) -> Decision:
    """What a recovery landed after the reading is in no count of it: that is said."""
    if found.reading is None or not run.landed_count or run.fired_at is None or run.fired_at <= found.reading.read_at:
        return found
    says = f"{found.says} A recovery delivered {run.landed_count:,} since then: audit again to know the rest."
    return Decision(found.status, says, found.reading, found.is_stale, found.is_expired)


def _is_worse(one: Status, other: Status) -> bool:
    return WORST_FIRST.index(one) < WORST_FIRST.index(other)


def _reaches(newer: Mapping[str, Any], older: Mapping[str, Any]) -> bool:
    """Whether the newer frontier is at or above the older one in every lane in which the older one judged anything."""
    reached = frontier_from_row(newer)
    judged = {lane: at for lane, at in frontier_from_row(older).items() if at != NOTHING_JUDGED}
    return all(lane in reached and reached[lane] >= at for lane, at in judged.items())
