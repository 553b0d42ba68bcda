"""The verdict of one lane at one frontier, from its counts: grades, status, exit code, and what may be said.

The law: an empty verdict is not a proof. What could not be read whole is *unknown*, never clean; the retained grade is
never shown as the journal grade; every sentence carries how rows were matched and what the evidence rests on.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


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
    def is_hazard_free(self) -> bool:
        return self.premature == 0 and self.duplicate_payloads == 0

    @property
    def is_keyed_sound(self) -> bool:
        """Matching by coordinate alone gives the same delta: P4 holds and every entry meets a committed coordinate."""
        return self.coordinates_ascending and self.premature == 0 and self.justification_unknown == 0


class Status(StrEnum):
    """What a person is told first."""

    EXACTLY_ONCE = "exactly once at f"
    """Hazard-free and complete at f, in both grades."""
    OWED = "owed"
    """Hazard-free, and obligations at or below f were not accepted. A recovery moves it on."""
    HAZARD = "hazard"
    """Something wrong was accepted; something may be owed besides. A person decides."""
    ACKNOWLEDGED = "acknowledged"
    """Hazard-free, and every lost event was taken out of the obligation on purpose. Still lost in the strict verdict."""
    UNKNOWN = "unknown"
    """The evidence does not reach. Never clean."""


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


EXIT_CODES = {
    Status.EXACTLY_ONCE: 0,
    Status.OWED: 1,
    Status.HAZARD: 1,
    Status.ACKNOWLEDGED: 1,
    Status.UNKNOWN: 3,
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the counts rest on. `unread`: why the history or the record is not whole, a sentence each.

    `journal_reaches` False: the journal ends below f. `weaknesses`: what the verdict assumes. `grounds`: what it rests
    on (the safe frontier's ground, the snapshots).
    """

    below: Below = Below.NOTHING_DROPPED
    journal_reaches: bool = True
    unread: tuple[str, ...] = ()
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
    """One lane at one frontier. `is_hazard_free`, `is_floor_covered` None: unknown. `says` may be shown as it stands."""

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
    unknown_because: tuple[str, ...]
    weaknesses: tuple[str, ...]
    grounds: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 exactly once at f, 1 owed, hazard or acknowledged, 3 unknown."""
        return EXIT_CODES[self.status]

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
    'Exactly once at 12, per event.'
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
    unknown_because = _unknown_because(frontier, counts, evidence)
    status = _status(counts, evidence, unknown_because)
    matching = "by coordinate" if counts.rows_by_coordinate else "by payload"
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
        instances="per event" if counts.coordinates_ascending else "by payload",
        is_keyed_sound=counts.is_keyed_sound,
        says=_says(frontier, counts, status, retained, journal, matching),
        unknown_because=unknown_because,
        weaknesses=evidence.weaknesses + _weaknesses(counts),
        grounds=evidence.grounds,
    )


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


def _status(counts: LaneCounts, evidence: Evidence, unknown_because: tuple[str, ...]) -> Status:
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
    if unknown_because:
        return Status.UNKNOWN
    return Status.ACKNOWLEDGED if lost else Status.EXACTLY_ONCE


def _says(
    frontier: str, counts: LaneCounts, status: Status, retained: Grade, journal: Grade, matching: str
) -> tuple[str, ...]:
    instances = "per event" if counts.coordinates_ascending else "by payload"
    lines: list[str] = []
    match status:
        case Status.EXACTLY_ONCE:
            lines.append(f"Exactly once at {frontier}, {instances}.")
        case Status.ACKNOWLEDGED:
            lost = _number(counts.acknowledged, "lost event", "lost events")
            lines.append(f"Not complete at {frontier}: {lost}, every one acknowledged. Nothing else is owed.")
        case Status.UNKNOWN:
            lines.append(f"Unknown at {frontier}.")
        case Status.OWED:
            lines.append(f"Owed at {frontier}: hazard-free, not complete.")
        case Status.HAZARD:
            lines.append(f"Hazard at {frontier}: something wrong was accepted.")
    if counts.premature:
        lines.append(f"Premature: {counts.premature} ({', '.join(_causes(counts))}).")
    if counts.duplicate_payloads:
        payloads = _number(counts.duplicate_payloads, "payload", "payloads")
        lines.append(f"Duplicates: {payloads} accepted more than once, {counts.duplicate_copies} copies too many.")
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
    if counts.lost_hidden:
        lines.append(
            f"Altered at the sink: {counts.lost_hidden} of the lost lie at coordinates that the sink holds with other"
            " content. No fire can deliver them."
        )
    if counts.acknowledged and status is not Status.ACKNOWLEDGED:
        lines.append(f"Acknowledged: {counts.acknowledged} of the lost. They stay lost and are not re-driven.")
    return (*lines, f"Matched {matching}.")


def _causes(counts: LaneCounts) -> list[str]:
    causes = {
        "never committed": counts.premature_never_committed,
        "altered": counts.premature_altered,
        "ahead of its commit": counts.premature_ahead,
        "head not believed": counts.premature_head_not_believed,
    }
    return [f"{count} {cause}" for cause, count in causes.items() if count]


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
    return f"{count} {one if count == 1 else many}"
