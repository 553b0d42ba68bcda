"""How long what the product writes of itself is kept: evidence parts, audits, intents, events. Figures and digests stay.

Two laws. What something still rests on is *pinned*, however old it is, and the reason is said. And nothing goes unnoticed:
whose parts are gone says so, and since when. Ages are counted by the control database's clock from when work ended; one
that jumped back makes things look younger, and keeps them for longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from recovery_api.domain.errors import BadInput


class Piece(StrEnum):
    """What has parts of its own."""

    AUDIT = "audit"
    """A reading of its own, or the verification of a recovery: then it is its certificate's."""
    PLAN = "plan"
    """What an approval was given for. Once applied, it is its certificate's."""
    IMAGE = "image"
    """A comparison of the target with the history."""


PIECES = {Piece.AUDIT: "audit", Piece.PLAN: "plan", Piece.IMAGE: "image audit"}


@dataclass(frozen=True, slots=True)
class Parts:
    """The evidence parts of one audit, plan or image audit, and what rests on them.

    `ended_at`: when the work ended that wrote them. `evidence_until`: until when the certificate that needs them says that its
    evidence lasts; None: it does not say, or none needs them, and age alone decides. `is_newest`: of its pipeline, among
    those of its sort. `of_certificate`: a finished recovery rests on them; `is_newest_certificate`: its pipeline's newest.
    `unfinished`: a recovery that is not finished goes by them; `is_waiting`: a plan that can still be approved or applied.
    `of_open_item`: an open item was seen in them. `of_ledger`: the ledger, or the next audit, goes by them. `is_base`: the
    next image audit reads the base that is kept with them.
    """

    piece: Piece
    ended_at: datetime
    evidence_until: datetime | None = None
    is_newest: bool = False
    of_certificate: bool = False
    is_newest_certificate: bool = False
    unfinished: bool = False
    is_waiting: bool = False
    of_open_item: bool = False
    of_ledger: bool = False
    is_base: bool = False


@dataclass(frozen=True, slots=True)
class Keeping:
    """Whether parts stay. `until`: when that is decided anew at the earliest; None: when what pins them lets go."""

    stays: bool
    is_pinned: bool
    says: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ages:
    """`evidence`: of parts. `records`: of the rows of finished work and of settled items. `history`: of its days."""

    evidence: timedelta
    records: timedelta
    history: timedelta


EVENTS_KEPT_AT_LEAST = timedelta(days=30)
"""The timeline refuses to lose a younger event, whoever asks: the database's own trigger says so, too."""
SETTINGS: Mapping[str, tuple[int, int, str]] = {
    # setting -> days unless said, days at least, what is kept
    "FENCEPOST_EVIDENCE_DAYS": (90, 1, "parts of evidence"),
    "FENCEPOST_RECORDS_DAYS": (400, 30, "rows of finished work, of settled items and of the timeline"),
    "FENCEPOST_HISTORY_DAYS": (400, 32, "the history"),
}
DAYS_AT_MOST = 36_600


def ages_parse(given: Mapping[str, int]) -> Ages:
    """Raises: BadInput where an age cannot be used, or rows would go before the parts that they tell of."""
    for name, (_, least, what) in SETTINGS.items():
        days = given[name]
        if not least <= days <= DAYS_AT_MOST:
            raise BadInput(name, f"is {days} days for {what}", f"Set it to {least} to {DAYS_AT_MOST:,}.")
    evidence, records, history = (timedelta(days=given[name]) for name in SETTINGS)
    if records < evidence:
        raise BadInput(
            "FENCEPOST_RECORDS_DAYS",
            f"is {records.days}, less than FENCEPOST_EVIDENCE_DAYS ({evidence.days}): parts would outlive what tells of them",
            f"Set it to at least {evidence.days}.",
        )
    return Ages(evidence, records, history)


def parts_keep(parts: Parts, ages: Ages, now: datetime) -> Keeping:
    """Whether the parts stay at `now`, and why, in a sentence.

    >>> from datetime import UTC
    >>> old, now = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    >>> ages = Ages(timedelta(days=90), timedelta(days=400), timedelta(days=400))
    >>> parts_keep(Parts(Piece.AUDIT, old), ages, now).stays
    False
    >>> parts_keep(Parts(Piece.AUDIT, old, of_open_item=True), ages, now).says
    'Pinned: an open item was seen in them.'
    """
    for pins, because in _pins(parts):
        if pins:
            return Keeping(True, True, f"Pinned: {because}.")
    until = parts.ended_at + ages.evidence
    if parts.evidence_until is not None and parts.evidence_until > max(until, now):
        says = f"Pinned: a certificate needs them until {parts.evidence_until:%Y-%m-%d %H:%M} UTC."
        return Keeping(True, True, says, parts.evidence_until)
    if until > now:
        return Keeping(True, False, f"Kept until {until:%Y-%m-%d %H:%M} UTC, by age.", until)
    return Keeping(False, False, f"Due to go since {until:%Y-%m-%d %H:%M} UTC, by age.")


def _pins(parts: Parts) -> tuple[tuple[bool, str], ...]:
    newest = f"its pipeline has no newer {PIECES[parts.piece]}"
    return (
        (parts.unfinished, "a recovery that is not finished goes by them"),
        (parts.is_waiting, "the plan can still be approved or applied"),
        (parts.of_open_item, "an open item was seen in them"),
        (parts.of_ledger, "the ledger goes by them"),
        (parts.is_newest_certificate, "its pipeline's newest certificate rests on them"),
        (parts.is_base, "the next image audit goes by the base that is kept with them"),
        (parts.is_newest, newest),
    )
