"""May what lies at or below a coordinate be purged at the source? Yes, no until something happens, or unknown.

The law: a row may go only where every pipeline that owes it has read both ends up to there, found nothing open there, and
did so longer ago than its sink can be taken back by a restore. Without that evidence the answer is *unknown*, never yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.findings import ABSENCES, Cause, FindingWord
from recovery_api.domain.headroom.evidence import is_expired
from recovery_api.domain.outcomes import EXIT_DONE, EXIT_OWED, EXIT_UNKNOWN


class Answer(StrEnum):
    """What is said of one pipeline, and of all of them together. A row: the word, the exit code of a cron job."""

    exit_code: int

    def __new__(cls, word: str, exit_code: int = EXIT_UNKNOWN) -> Answer:
        row = str.__new__(cls, word)
        row._value_ = word
        row.exit_code = exit_code
        return row

    NO = "no", EXIT_OWED
    """Something forbids it that is named."""
    UNKNOWN = "unknown", EXIT_UNKNOWN
    """The evidence does not reach. Nothing may go."""
    YES = "yes", EXIT_DONE


def needs_row(finding: str, cause: str) -> bool:
    """Whether the source's row is still needed for what an audit found: to send it, or to decide about it.

    A duplicate, and what was never committed, needs none.

    >>> needs_row("lost", ""), needs_row("premature", "altered"), needs_row("duplicate", "")
    (True, True, False)
    """
    if finding == FindingWord.LOST:
        return True
    if finding == FindingWord.PREMATURE:
        return cause == Cause.ALTERED
    return finding == FindingWord.UNKNOWN and cause in ABSENCES


@dataclass(frozen=True, slots=True)
class Open:
    """The lowest thing in a lane that needs its row. `at` None: it may be any. `remedy`: what would close it. `until`: from
    when on it is closed by itself; None: no clock closes it."""

    at: Coordinate | None
    says: str
    remedy: str
    until: datetime | None = None

    def forbids(self, below: Coordinate) -> bool:
        return self.at is None or self.at <= below


@dataclass(frozen=True, slots=True)
class Look:
    """What one audit that is not void says of a lane. `lowest`: the lowest open item that it found; None: none.

    `given`: what it rests on besides what was read, as *given …* goes on. `evidence_until`: when that may be gone.
    """

    read_at: datetime
    frontier: Coordinate
    frontier_says: str
    is_standing: bool
    is_unknown: bool
    lowest: Open | None = None
    given: tuple[str, ...] = ()
    evidence_until: datetime | None = None

    def is_clear(self, below: Coordinate) -> bool:
        """Whether it reached as far, and found nothing open there."""
        is_open = self.lowest is not None and self.lowest.forbids(below)
        return self.frontier >= below and not self.is_unknown and not is_open


@dataclass(frozen=True, slots=True)
class Owing:
    """One active pipeline on the source. `restored`: what is said of its sink where that was restored and is not settled.

    `remembered`: the lowest item of the ledger that is open and needs its row. `work`: what plans that have not ended and
    recoveries still send, lowest first. `overdue_since`: when an audit of its schedule was due that nobody made.
    `restore_window`: how far back a restore may take the sink; None: not declared.
    """

    pipeline: str
    sink: str
    stale_after: timedelta
    looks: Sequence[Look]
    remembered: Open | None = None
    work: Sequence[Open] = ()
    overdue_since: datetime | None = None
    restored: str = ""
    restore_window: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """The answer for one pipeline. `until`: from when on it is yes if nothing else changes; None: no clock brings it."""

    pipeline: str
    answer: Answer
    says: str
    remedy: str = ""
    until: datetime | None = None


def purge_said(owing: Owing, below: Coordinate, below_says: str, now: datetime) -> Said:
    """Whether the pipeline lets go what lies at or below `below` of one lane. The first ground that forbids it is told."""

    def said(answer: Answer, says: str, remedy: str = "", until: datetime | None = None) -> Said:
        return Said(owing.pipeline, answer, says, remedy, until)

    again = f"Run manage.py audit {owing.pipeline}."
    if owing.restored:
        return said(
            Answer.UNKNOWN, f"Its sink was restored: {owing.restored}", f"Settle sink {owing.sink}, then audit."
        )
    if owing.overdue_since is not None:
        at = f"{owing.overdue_since:%Y-%m-%d %H:%M} UTC"
        return said(Answer.UNKNOWN, f"It is overdue: the audit due at {at} was not made.", again)
    standing = sorted((one for one in owing.looks if one.is_standing), key=lambda one: one.read_at)
    reaching = [one for one in standing if one.frontier >= below]
    if not reaching:
        furthest = max(standing, key=lambda one: one.frontier, default=None)
        got = f" The furthest reached {furthest.frontier_says}." if furthest else " None stands."
        return said(Answer.UNKNOWN, f"No audit that stands reached {below_says}.{got}", again)
    deciding = reaching[-1]
    later = [one for one in standing if one.read_at > deciding.read_at]
    if any(one.is_unknown for one in (deciding, *later)):
        return said(Answer.UNKNOWN, "Its newest audit could not tell.", again)
    if deciding.evidence_until is not None and is_expired(deciding.evidence_until, now):
        at = f"{deciding.evidence_until:%Y-%m-%d %H:%M} UTC"
        return said(Answer.UNKNOWN, f"The evidence of the audit that reached {below_says} expired at {at}.", again)
    if now - deciding.read_at > owing.stale_after:
        at = f"{deciding.read_at:%Y-%m-%d %H:%M} UTC"
        return said(Answer.UNKNOWN, f"The audit that reached {below_says} is stale: it read at {at}.", again)
    for item in (*(one.lowest for one in (deciding, *later)), owing.remembered, *owing.work):
        if item is not None and item.forbids(below):
            return said(Answer.NO, item.says, item.remedy, item.until)
    if owing.restore_window is not None:
        opened = [one.read_at for one in owing.looks if one.lowest is not None and one.lowest.forbids(below)]
        clear = [one.read_at for one in owing.looks if one.is_clear(below) and all(one.read_at > at for at in opened)]
        if (until := min(clear) + owing.restore_window) > now:
            window = f"{owing.restore_window.total_seconds():,.0f} s"
            says = f"A restore may take sink {owing.sink} back by {window}, to before what was accepted lately."
            return said(Answer.NO, says, f"It may go from {until:%Y-%m-%d %H:%M:%S} UTC on.", until)
    given = f", given {' and '.join(deciding.given)}" if deciding.given else ""
    return said(Answer.YES, f"Nothing at or below {below_says} is open{given}.")


@dataclass(frozen=True, slots=True)
class Uncleared:
    """How many rows a purge up to where it was asked would take above what may go, as audits counted them. `at_most` None: none
    counted at or above there."""

    at_least: int
    at_most: int | None

    def says(self, below_says: str, may_says: str) -> str:
        """`may_says` "": nothing may go.

        >>> Uncleared(998_000, 998_000).says("39998000", "39000000").partition(": ")[0]
        'Purged up to 39998000 all the same, 998,000 rows above 39000000 would go uncleared'
        >>> Uncleared(0, None).says("5", "").partition(": ")[0]
        'Purged up to 5 all the same, rows would go uncleared, and how many no audit counted'
        """
        many = f"{self.at_least:,} {'row' if self.at_least == 1 else 'rows'}"
        if self.at_most is None:
            many = f"at least {many}" if self.at_least else "rows"
        elif self.at_most > self.at_least:
            many = f"{self.at_least:,} to {self.at_most:,} rows"
        above = f" above {may_says}" if may_says else ""
        unknown = ", and how many no audit counted" if self == Uncleared(0, None) else ""
        return (
            f"Purged up to {below_says} all the same, {many}{above} would go uncleared{unknown}: what is lost among them could not be"
            " sent any more, and what no audit judged could not be judged."
        )


def uncleared_count(
    below: Coordinate, counted: Iterable[tuple[Coordinate, int]], may: tuple[Coordinate, int] | None
) -> Uncleared:
    """From counts of the history at or below coordinates. `may`: the highest that may go, with its count; None: none may.

    >>> at = [(Coordinate(39), 100), (Coordinate(41), 130), (Coordinate(45), 170)]
    >>> uncleared_count(Coordinate(41), at, at[0]), uncleared_count(Coordinate(43), at, at[0])
    (Uncleared(at_least=30, at_most=30), Uncleared(at_least=30, at_most=70))
    >>> uncleared_count(Coordinate(50), at, None), uncleared_count(Coordinate(38), at, None)
    (Uncleared(at_least=170, at_most=None), Uncleared(at_least=0, at_most=100))
    """
    found, base = list(counted), may[1] if may else 0
    least = max((count for at, count in found if at <= below), default=base)
    most = min((count for at, count in found if at >= below), default=None)
    at_least = max(least - base, 0)
    return Uncleared(at_least, None if most is None else max(most - base, at_least))


def answers_together(said: Iterable[Said]) -> Answer:
    """The worst counts; of no pipeline at all nothing is known.

    >>> answers_together([]).value, answers_together([Said("a", Answer.YES, ""), Said("b", Answer.UNKNOWN, "")]).value
    ('unknown', 'unknown')
    """
    found = {one.answer for one in said}
    return next((answer for answer in Answer if answer in found), Answer.UNKNOWN)
