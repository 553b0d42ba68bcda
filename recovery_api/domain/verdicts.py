"""The verdict of one lane at one frontier, from its counts: grades, status, exit code, and what may be said.

The law: an empty verdict is not a proof. What could not be read whole is *unknown*, never clean, and so is a frontier
at which nothing was judged; the retained grade is never shown as the journal grade; only a proven ground is *exactly
once at f* without naming what was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from recovery_api.domain.findings import Cause
from recovery_api.domain.outcomes import OUTCOMES, WORST_FIRST, Status


@dataclass(frozen=True, slots=True)
class LaneCounts:
    """What the kernel counted in one lane, all blocks together.

    *retained*: over the history at or above the floor; *journal*: over everything committed; `lost`: in either. `lost_hidden`: retained
    obligations whose coordinate the sink holds with another payload. `acknowledged`: lost events taken out of the
    obligation on purpose, in either grade. `duplicate_copies`: entries beyond the first of each repeated payload.
    `justification_unknown`: entries below the floor that nothing here can justify. `rows_by_coordinate`: rows judged by
    coordinate alone.
    """

    history_rows: int = 0
    journal_rows: int = 0
    accepted_rows: int = 0
    obligations_retained: int = 0
    obligations_journal: int = 0
    lost: int = 0
    lost_retained: int = 0
    lost_journal: int = 0
    lost_hidden: int = 0
    floor_uncovered: int = 0
    acknowledged: int = 0
    acknowledged_retained: int = 0
    premature_never_committed: int = 0
    premature_altered: int = 0
    premature_ahead: int = 0
    premature_head_not_believed: int = 0
    justification_unknown: int = 0
    duplicate_payloads: int = 0
    duplicate_copies: int = 0
    rows_by_coordinate: int = 0
    coordinates_repeated: int = 0
    coordinates_ascending: bool = True

    @property
    def premature(self) -> int:
        return (
            self.premature_never_committed
            + self.premature_altered
            + self.premature_ahead
            + self.premature_head_not_believed
        )

    @property
    def lost_of(self) -> tuple[int, int]:
        """How many events are lost, of how many: by the grade that misses more."""
        return max((self.lost_journal, self.obligations_journal), (self.lost_retained, self.obligations_retained))

    @property
    def is_judged(self) -> bool:
        """Whether any event in scope lies at or below f, or anything wrong was found: otherwise nothing was judged."""
        return bool(self.obligations_retained or self.obligations_journal or not self.is_hazard_free)

    @property
    def is_hazard_free(self) -> bool:
        return self.premature == 0 and self.duplicate_payloads == 0

    @property
    def is_keyed_sound(self) -> bool:
        """Matching by coordinate alone gives the same delta: P4 holds and every entry meets a committed coordinate."""
        return self.coordinates_ascending and self.premature == 0 and self.justification_unknown == 0


class Below(StrEnum):
    """What stands for the committed history below the floor."""

    NOTHING_DROPPED = "nothing dropped"
    """The history itself: the source dropped nothing, or what was read still holds it."""
    JOURNAL = "journal"
    """A journal was read."""
    CERTIFIED = "certified"
    """An earlier audit found everything below the floor accepted and justified (Corollary 7.1)."""
    NOTHING = "nothing"
    """Nothing: the journal grade is unknown."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the counts rest on. `unread`: why the history or the record is not whole, a sentence each.

    `journal_reaches` False: the journal ends below f. `doubts`: why no success may be said of it, whatever the counts.
    `given`: what was taken on somebody's word, or assumed, that a phrase completes: *given …*. `weaknesses`: what the
    verdict assumes. `grounds`: what it rests on (the safe frontier's ground, the snapshots).
    """

    below: Below = Below.NOTHING_DROPPED
    journal_reaches: bool = True
    unread: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()
    grounds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grade:
    """Obligations of the retained history, or of the journal. None: not judged."""

    lost: int | None
    is_complete: bool | None
    is_exactly_once: bool | None

    @classmethod
    def of(cls, lost: int, is_hazard_free: bool | None) -> Grade:
        exactly_once = False if lost or is_hazard_free is False else is_hazard_free
        return cls(lost, lost == 0, exactly_once)


GRADE_UNKNOWN = Grade(None, None, None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One lane at one frontier. `is_hazard_free`, `is_floor_covered` None: unknown. `says` may be shown as it stands.

    `details`: grades and matching, in the paper's words. `given`: what an exactly once at f would rest on.
    """

    lane: str
    frontier: str
    counts: LaneCounts
    status: Status
    is_hazard_free: bool | None
    retained: Grade
    journal: Grade
    is_floor_covered: bool | None
    matching: str
    instances: str
    is_keyed_sound: bool
    says: tuple[str, ...]
    details: tuple[str, ...]
    unknown_because: tuple[str, ...]
    given: tuple[str, ...]
    weaknesses: tuple[str, ...]
    grounds: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """As the table of outcomes has it: 0 exactly once at f, 1 owed, hazard or acknowledged, 3 unknown, 4 given."""
        return OUTCOMES[self.status].exit_code

    @property
    def is_empty(self) -> bool:
        """Nothing was judged here, and nothing else speaks against it."""
        return self.status is Status.UNKNOWN and not self.counts.is_judged and len(self.unknown_because) == 1

    def as_row(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "status": self.status.value,
            "exit_code": self.exit_code,
            "premature": self.counts.premature,
        }


def verdict_make(lane: str, frontier: str, counts: LaneCounts, evidence: Evidence) -> Verdict:
    """The verdict that the counts support on this evidence. `frontier` is as the source spells it.

    >>> verdict_make("0", "12", LaneCounts(obligations_retained=12, obligations_journal=12), Evidence()).says[0]
    'Exactly once at 12: all 12 events reached the sink, none of them twice.'
    """
    is_below_known = evidence.below is not Below.NOTHING and evidence.journal_reaches
    is_read = not evidence.unread
    is_hazard_free: bool | None = counts.is_hazard_free
    if is_hazard_free and (not is_read or counts.justification_unknown):
        is_hazard_free = None
    is_retained_known = is_read and (counts.lost_retained > 0 or not _may_hide(counts))
    is_journal_known = is_read and is_below_known and (counts.lost_journal > 0 or not _may_hide(counts))
    retained = Grade.of(counts.lost_retained, is_hazard_free) if is_retained_known else GRADE_UNKNOWN
    journal = Grade.of(counts.lost_journal, is_hazard_free) if is_journal_known else GRADE_UNKNOWN
    doubts = _doubts(frontier, counts, evidence)
    status = _status(counts, evidence, doubts)
    matching = "by coordinate" if counts.rows_by_coordinate else "by payload"
    instances = "per event" if counts.coordinates_ascending else "by payload"
    return Verdict(
        lane=lane,
        frontier=frontier,
        counts=counts,
        status=status,
        is_hazard_free=is_hazard_free,
        retained=retained,
        journal=journal,
        is_floor_covered=counts.floor_uncovered == 0 if is_read and is_below_known else None,
        matching=matching,
        instances=instances,
        is_keyed_sound=counts.is_keyed_sound,
        says=_says(frontier, counts, status, evidence.given),
        details=_details(frontier, counts, retained, journal, f"Matched {matching}, counted {instances}."),
        unknown_because=doubts if status is Status.UNKNOWN else _unknown_because(frontier, counts, evidence),
        given=evidence.given,
        weaknesses=evidence.weaknesses + _weaknesses(counts),
        grounds=evidence.grounds,
    )


@dataclass(frozen=True, slots=True)
class Total:
    """What all lanes come to together: one status, one number in every sentence. `given`: as of the lanes."""

    status: Status
    says: tuple[str, ...]
    unknown_because: tuple[str, ...]
    given: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        return OUTCOMES[self.status].exit_code


def verdict_total(verdicts: Mapping[str, Verdict]) -> Total:
    """The pipeline's verdict: the worst lane's status, the sentences over the sum of every lane's counts.

    A lane at which nothing was judged decides only where no lane was judged.
    """
    deciding = [one for one in verdicts.values() if not one.is_empty] or list(verdicts.values())
    status = min((one.status for one in deciding), key=WORST_FIRST.index)
    given = tuple(dict.fromkeys(phrase for one in deciding for phrase in one.given))
    reasons = tuple(dict.fromkeys(reason for one in deciding for reason in one.unknown_because))
    frontier = _frontiers(verdicts)
    says = _says(frontier, counts_sum(one.counts for one in verdicts.values()), status, given)
    return Total(status, says, reasons if status is Status.UNKNOWN else (), given)


def counts_sum(counts: Iterable[LaneCounts]) -> LaneCounts:
    """All lanes together. Coordinates ascend where they do in each."""
    every = list(counts)
    numbers = [one.name for one in fields(LaneCounts) if one.name != "coordinates_ascending"]
    return LaneCounts(
        **{name: sum(getattr(one, name) for one in every) for name in numbers},
        coordinates_ascending=all(one.coordinates_ascending for one in every),
    )


LANES_SAID = 3


def _frontiers(verdicts: Mapping[str, Verdict]) -> str:
    """Where the lanes were judged, as a sentence can hold it: lanes of which the source has nothing are left out."""
    if len(verdicts) == 1:
        return next(iter(verdicts.values())).frontier
    owing = [one for one in verdicts.values() if one.counts.obligations_retained or one.counts.obligations_journal]
    if len(owing) == 1:
        return owing[0].frontier
    said = ", ".join(f"{one.lane}={one.frontier}" for one in owing[:LANES_SAID])
    more = f" and {len(owing) - LANES_SAID} more lanes" if len(owing) > LANES_SAID else ""
    return f"{said}{more}" if said else "f"


def _may_hide(counts: LaneCounts) -> bool:
    """Matching by coordinate hides owed events where several share one; it never invents any."""
    return counts.rows_by_coordinate > 0 and not counts.coordinates_ascending


def _unknown_because(frontier: str, counts: LaneCounts, evidence: Evidence) -> tuple[str, ...]:
    reasons = list(evidence.unread)
    if not evidence.journal_reaches:
        reasons.append(f"The journal does not reach {frontier}: it judges nothing there.")
    elif evidence.below is Below.NOTHING:
        reasons.append("Nothing shows what lay below the floor: the journal grade is unknown. Give the journal.")
    if _may_hide(counts):
        reasons.append("Coordinates do not ascend: matching by coordinate may hide owed events. Judge by payload.")
    if counts.justification_unknown:
        where = "beyond what could be read:" if evidence.unread else "below the floor: without a journal"
        entries = _number(counts.justification_unknown, "accepted entry", "accepted entries")
        reasons.append(f"{entries} {where} nothing shows whether they were committed.")
    return tuple(reasons)


def _doubts(frontier: str, counts: LaneCounts, evidence: Evidence) -> tuple[str, ...]:
    """Everything for which no success may be said: what is unknown, and that nothing was judged at all."""
    nothing = () if counts.is_judged else (f"Nothing was judged at {frontier}: no event in scope lies at or below it.",)
    return (*nothing, *_unknown_because(frontier, counts, evidence), *evidence.doubts)


def _status(counts: LaneCounts, evidence: Evidence, doubts: tuple[str, ...]) -> Status:
    """Unread evidence and a short journal decide nothing; else what is certainly wrong outranks what is unknown."""
    if evidence.unread or not evidence.journal_reaches:
        return Status.UNKNOWN
    if not counts.is_hazard_free:
        return Status.HAZARD
    is_below_known = evidence.below is not Below.NOTHING
    lost, acknowledged = counts.lost_retained, counts.acknowledged_retained
    if is_below_known:
        lost, acknowledged = counts.lost, counts.acknowledged
    if lost > acknowledged:
        return Status.OWED
    if lost and doubts == evidence.doubts:  # a doubt takes a success away, and this is none
        return Status.ACKNOWLEDGED
    if doubts:
        return Status.UNKNOWN
    return Status.EXACTLY_ONCE_GIVEN if evidence.given else Status.EXACTLY_ONCE


def _says(frontier: str, counts: LaneCounts, status: Status, given: tuple[str, ...]) -> tuple[str, ...]:
    """The number and the consequence, for somebody who has not seen this for a month."""
    by = "" if counts.coordinates_ascending else ", by payload"
    lost, owed = counts.lost_of
    missing = f"{lost:,} of {_number(owed, 'event', 'events')} up to {frontier} never reached the sink"
    wrong = " and ".join(_wrong(counts))
    lines: list[str] = []
    match status:
        case Status.EXACTLY_ONCE | Status.EXACTLY_ONCE_GIVEN:
            on = f", given {'; and '.join(given)}" if status is Status.EXACTLY_ONCE_GIVEN else ""
            whole = "the only event" if owed == 1 else f"all {owed:,} events"
            lines.append(f"Exactly once at {frontier}{by}{on}: {whole} reached the sink, none of them twice.")
        case Status.ACKNOWLEDGED:
            each = "It was acknowledged" if lost == 1 else "Each of them was acknowledged"
            lines.append(f"{missing}. {each}; nothing else is owed.")
        case Status.OWED:
            lines.append(f"{missing}. Nothing was doubled.")
        case Status.HAZARD:
            lines.append(f"Hazard at {frontier}: {wrong}.")
            lines.append(f"{missing}." if lost else "Nothing is missing.")
        case _:
            lines.append(f"Unknown at {frontier}.")
            if wrong or lost:
                lines.append(
                    f"What could be read: {'; '.join(part for part in (wrong, missing if lost else '') if part)}."
                )
    if counts.lost_hidden:
        them = "it" if counts.lost_hidden == 1 else "them"
        lines.append(
            f"{counts.lost_hidden:,} of the missing {'is' if counts.lost_hidden == 1 else 'are'} altered at the sink, "
            f"which holds other content there: no fire can deliver {them}."
        )
    if counts.acknowledged and status is not Status.ACKNOWLEDGED:
        lines.append(f"{counts.acknowledged:,} of the missing were acknowledged: they stay lost and are never sent.")
    return tuple(lines)


def _wrong(counts: LaneCounts) -> list[str]:
    """What should not have been accepted, a phrase each: duplicates first."""
    found = []
    if counts.duplicate_payloads:
        events = _number(counts.duplicate_payloads, "event was", "events were")
        found.append(
            f"{events} accepted more than once ({_number(counts.duplicate_copies, 'copy', 'copies')} too many)"
        )
    if counts.premature:
        entries = _number(counts.premature, "accepted entry is", "accepted entries are")
        found.append(f"{entries} not as committed ({', '.join(_causes(counts))})")
    return found


def _details(frontier: str, counts: LaneCounts, retained: Grade, journal: Grade, matched: str) -> tuple[str, ...]:
    """Both grades, in the paper's words."""
    lines = []
    for name, grade, obligations in (
        ("retained", retained, counts.obligations_retained),
        ("journal", journal, counts.obligations_journal),
    ):
        if grade.lost is None:
            lines.append(f"The {name} grade is unknown.")
        elif grade.lost:
            lines.append(f"Lost in the {name} grade: {grade.lost} of {obligations} obligations.")
        else:
            lines.append(f"Complete at {frontier} in the {name} grade: {obligations} obligations.")
    return (*lines, matched)


def _causes(counts: LaneCounts) -> list[str]:
    causes = {
        Cause.NEVER_COMMITTED: counts.premature_never_committed,
        Cause.ALTERED: counts.premature_altered,
        Cause.AHEAD: counts.premature_ahead,
        Cause.HEAD_NOT_BELIEVED: counts.premature_head_not_believed,
    }
    return [f"{count:,} {cause}" for cause, count in causes.items() if count]


def _weaknesses(counts: LaneCounts) -> tuple[str, ...]:
    lines = []
    if not counts.coordinates_ascending:
        lines.append("Coordinates do not strictly ascend: the verdict is by payload, not per event; no keyed matching.")
    if counts.rows_by_coordinate:
        lines.append("Contents were not compared: an altered entry counts as accepted.")
        if not counts.is_keyed_sound:
            lines.append("Matching by coordinate does not hold here: judge by payload.")
    return tuple(lines)


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
