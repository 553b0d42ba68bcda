"""The verdict of one lane at one frontier, from its counts: grades, status, exit code, and what may be said.

The law: an empty verdict is not a proof. What could not be read whole is *unknown*, never clean, and so is a frontier
at which nothing was judged; the retained grade is never shown as the journal grade; only a proven ground is *exactly
once at f* without naming what was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from recovery_api.domain.absences import (
    absences_says,
    absences_unknown,
    headroom_says,
    identity_weaknesses,
    judged_says,
)
from recovery_api.domain.counts import LaneCounts as LaneCounts
from recovery_api.domain.counts import counts_sum, number_says
from recovery_api.domain.findings import Cause
from recovery_api.domain.identity import Identity
from recovery_api.domain.ledger.told import UNJUDGED, gone_says, kept_says, share_says
from recovery_api.domain.outcomes import OUTCOMES, WORST_FIRST, Status


class Below(StrEnum):
    """What stands for the committed history below the floor."""

    NOTHING_DROPPED = "nothing dropped"
    """The history itself: the source dropped nothing, or what was read still holds it."""
    JOURNAL = "journal"
    """A journal was read."""
    CERTIFIED = "certified"
    """Earlier audits saw everything below the floor: it was accepted, or is remembered as lost (Corollary 7.1)."""
    NOTHING = "nothing"
    """Nothing: the journal grade is unknown."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the counts rest on. `unread`: why the history or the record is not whole, a sentence each.

    `journal_reaches` False: the journal ends below f. `doubts`: why no success may be said of it, whatever the counts.
    `given`: what was taken on somebody's word, or assumed, that a phrase completes: *given …*. `weaknesses`: what the
    verdict assumes. `grounds`: what it rests on (the safe frontier's ground, the snapshots). `identity`: the record knows
    only message ids, and how they were compared. `rows_go`: rows go from the source once they were delivered, so that only
    what it still holds can be judged.
    """

    below: Below = Below.NOTHING_DROPPED
    journal_reaches: bool = True
    unread: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()
    grounds: tuple[str, ...] = ()
    identity: Identity | None = None
    rows_go: bool = False


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
    identity: Identity | None = None

    @property
    def exit_code(self) -> int:
        """As the table of outcomes has it: 0 exactly once at f, 1 owed, hazard or acknowledged, 3 unknown, 4 less than
        exactly once, named."""
        return OUTCOMES[self.status].exit_code

    @property
    def is_empty(self) -> bool:
        """Nothing was judged here, and nothing else speaks against it."""
        return self.status is Status.UNKNOWN and not self.counts.is_judged and len(self.unknown_because) == 1

    def as_row(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "identity": self.identity.as_row() if self.identity else None,
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
    if is_hazard_free and (not is_read or counts.justification_unknown or evidence.identity):
        is_hazard_free = None
    is_retained_known = is_read and (counts.lost_retained > 0 or not _may_hide(counts))
    is_journal_known = is_read and is_below_known and (counts.lost_journal > 0 or not _may_hide(counts))
    retained = Grade.of(counts.lost_retained, is_hazard_free) if is_retained_known else GRADE_UNKNOWN
    journal = Grade.of(counts.lost_journal, is_hazard_free) if is_journal_known else GRADE_UNKNOWN
    doubts = _doubts(frontier, counts, evidence)
    status = _status(counts, evidence, doubts)
    matching = "by coordinate" if counts.rows_by_coordinate else "by payload"
    matching = evidence.identity.matching if evidence.identity else matching
    instances = "per event" if counts.coordinates_ascending or evidence.identity else "by payload"
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
        says=_says(frontier, counts, status, evidence.given, evidence.identity),
        details=_details(frontier, counts, retained, journal, f"Matched {matching}, counted {instances}."),
        unknown_because=doubts if status is Status.UNKNOWN else _unknown_because(frontier, counts, evidence),
        given=evidence.given,
        weaknesses=evidence.weaknesses
        + (identity_weaknesses(counts, evidence.identity) if evidence.identity else _weaknesses(counts)),
        grounds=evidence.grounds + ((evidence.identity.lifetime.says(),) if evidence.identity else ()),
        identity=evidence.identity,
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
    identity = next((one.identity for one in verdicts.values() if one.identity), None)
    says = _says(frontier, counts_sum(one.counts for one in verdicts.values()), status, given, identity)
    return Total(status, says, reasons if status is Status.UNKNOWN else (), given)


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
    if counts.unjudged_remembered:
        events = number_says(counts.unjudged_remembered, "event", "events")
        reasons.append(f"{events} {UNJUDGED}")
    if evidence.rows_go:
        return (*reasons, *absences_unknown(counts, evidence.identity))
    if not evidence.journal_reaches:
        reasons.append(f"The journal does not reach {frontier}: it judges nothing there.")
    elif evidence.below is Below.NOTHING:
        reasons.append("Nothing shows what lay below the floor: the journal grade is unknown. Give the journal.")
    if _may_hide(counts):
        reasons.append("Coordinates do not ascend: matching by coordinate may hide owed events. Judge by payload.")
    if counts.justification_unknown:
        where = "beyond what could be read:" if evidence.unread else "below the floor: without a journal"
        entries = number_says(counts.justification_unknown, "accepted entry", "accepted entries")
        reasons.append(f"{entries} {where} nothing shows whether they were committed.")
    return (*reasons, *absences_unknown(counts, evidence.identity))


def _doubts(frontier: str, counts: LaneCounts, evidence: Evidence) -> tuple[str, ...]:
    """Everything for which no success may be said: what is unknown, and that nothing was judged at all."""
    nothing = (
        ()
        if counts.is_judged or evidence.rows_go
        else (f"Nothing was judged at {frontier}: no event in scope lies at or below it.",)
    )
    return (*nothing, *_unknown_because(frontier, counts, evidence), *evidence.doubts)


def _status(counts: LaneCounts, evidence: Evidence, doubts: tuple[str, ...]) -> Status:
    """Unread evidence and a short journal decide nothing; else what is certainly wrong outranks what is unknown."""
    if evidence.unread or not evidence.journal_reaches:
        return Status.UNKNOWN
    if not counts.is_hazard_free:
        return Status.HAZARD
    is_below_known = evidence.below is not Below.NOTHING
    lost = counts.lost_retained + counts.lost_remembered
    acknowledged = counts.acknowledged_retained + counts.acknowledged_remembered
    if is_below_known:
        lost, acknowledged = counts.lost, counts.acknowledged
    if lost > acknowledged:
        return Status.OWED
    if (lost or counts.absent_acknowledged) and doubts == evidence.doubts:  # a doubt takes a success away: this is none
        return Status.ACKNOWLEDGED
    if doubts:
        return Status.UNKNOWN
    if evidence.identity:
        return Status.COMPLETE_BY_IDENTITY
    if evidence.rows_go:
        return Status.NOTHING_OWED_OF_KEPT
    return Status.EXACTLY_ONCE_GIVEN if evidence.given else Status.EXACTLY_ONCE


def _says(
    frontier: str, counts: LaneCounts, status: Status, given: tuple[str, ...], identity: Identity | None = None
) -> tuple[str, ...]:
    """The number and the consequence, for somebody who has not seen this for a month."""
    by = "" if counts.coordinates_ascending else ", by payload"
    lost, owed = counts.lost_of
    missing = f"{lost:,} of {number_says(owed, 'event', 'events')} up to {frontier} never reached the sink"
    wrong = " and ".join(_wrong(counts))
    lines: list[str] = []
    match status:
        case Status.EXACTLY_ONCE | Status.EXACTLY_ONCE_GIVEN:
            on = f", given {'; and '.join(given)}" if status is Status.EXACTLY_ONCE_GIVEN else ""
            whole = "the only event" if owed == 1 else f"all {owed:,} events"
            lines.append(f"Exactly once at {frontier}{by}{on}: {whole} reached the sink, none of them twice.")
        case Status.COMPLETE_BY_IDENTITY:
            on = f", given {'; and '.join(given)}" if given else ""
            whole = "the id of the only event is" if owed == 1 else f"the ids of all {owed:,} events are"
            lines.append(f"Complete by identity at {frontier}{on}: {whole} in the record, none of them twice.")
        case Status.NOTHING_OWED_OF_KEPT:
            lines.append(kept_says(frontier, counts, given))
        case Status.ACKNOWLEDGED if not lost:
            lines.append(
                f"{absences_says(counts)}. {'It was' if counts.absent_unknown == 1 else 'Each was'} acknowledged."
            )
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
    lines += gone_says(counts)
    if status is Status.NOTHING_OWED_OF_KEPT:
        lines.append(share_says(counts))
    if counts.lost_hidden:
        them = "it" if counts.lost_hidden == 1 else "them"
        lines.append(
            f"{counts.lost_hidden:,} of the missing {'is' if counts.lost_hidden == 1 else 'are'} altered at the sink, "
            f"which holds other content there: no fire can deliver {them}."
        )
    if counts.acknowledged and status is not Status.ACKNOWLEDGED:
        is_one = counts.acknowledged == 1
        told = "was acknowledged: it stays lost and is" if is_one else "were acknowledged: they stay lost and are"
        lines.append(f"{counts.acknowledged:,} of the missing {told} never sent.")
    if identity:
        if counts.absent_unknown and lost:
            lines.append(f"{absences_says(counts)}.")
        if identity.shown_until:
            lines.append(headroom_says(identity))
        lines.append(judged_says(identity))
    return tuple(lines)


def _wrong(counts: LaneCounts) -> list[str]:
    """What should not have been accepted, a phrase each: duplicates first."""
    found = []
    if counts.duplicate_payloads:
        events = number_says(counts.duplicate_payloads, "event was", "events were")
        found.append(
            f"{events} accepted more than once ({number_says(counts.duplicate_copies, 'copy', 'copies')} too many)"
        )
    if counts.premature:
        entries = number_says(counts.premature, "accepted entry is", "accepted entries are")
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
