"""Why an owed event is in a plan's batch, or is not: one row for each class.

The law: only what is *provably missing* is sent. Every lost event is of exactly one class, the first in `ORDER` that
fits it, so the counts of the classes add up to what is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from recovery_api.domain.words import row_make


class EvidenceClass(StrEnum):
    """A row: the word; what becomes of events of it; what somebody can do about them.

    `is_sent`: they are the batch. `is_always_shown`: a plan shows their number where it is none, too; the others belong
    to sinks that cannot be read back, and to sinks that forget.
    """

    means: str
    remedy: str
    is_sent: bool
    is_always_shown: bool

    def __new__(
        cls, word: str, means: str = "", remedy: str = "", is_sent: bool = False, is_always_shown: bool = True
    ) -> EvidenceClass:
        return row_make(cls, word, means=means, remedy=remedy, is_sent=is_sent, is_always_shown=is_always_shown)

    PROVABLY_MISSING = "provably missing", "The sink does not have them. These are sent.", "", True
    """Absent from the whole record."""
    UNKNOWABLE = (
        "unknowable",
        "The source deleted them, and their content is gone. Nothing is guessed.",
        "Read them somewhere else, or acknowledge them.",
    )
    """Below the floor with its content gone: never fabricated."""
    ACKNOWLEDGED = (
        "acknowledged",
        "Somebody decided that they are never to be delivered. Not sent.",
        "Withdraw the acknowledgement where they are to be sent after all.",
    )
    """Taken out of the obligation by a person."""
    ALTERED_AT_THE_SINK = (
        "altered at the sink",
        "The sink holds other content in their place. No recovery can deliver them.",
        "Compare both sides of each, and decide which one stands.",
    )
    """The sink holds its coordinate with other content: no fire can deliver it."""
    NOT_REPRESENTABLE = (
        "not representable at the sink",
        "The sink cannot hold their content. Not sent; they stay lost.",
        "Widen the sink's column or map it otherwise, then plan again.",
    )
    """The sink cannot hold its content."""
    TRIMMED = (
        "trimmed",
        "The record no longer holds entries as old as these: it does not show whether they arrived. Not sent.",
        "Look for them where the sink's effect can be seen.",
    )
    """Older than the record's rows live: absent from it, which proves nothing."""
    AMBIGUOUS = (
        "ambiguous",
        "They may have arrived: the sink cannot be read back. Sent or skipped only by the recorded choice.",
        "Ask whoever receives them.",
        False,
        False,
    )
    """In the window that the relay's cursor leaves open, at a sink that shows nothing."""
    ABSORBED = (
        "absorbed",
        "The sink has their identity: a second one is ignored there.",
        "",
        False,
        False,
    )
    """Within the sink's memory of identities: harmless to send again."""
    PAST_THE_HORIZON = (
        "past the horizon",
        "Older than the identities that the sink remembers: a second one would not be noticed. Not sent.",
        "Read the sink's record instead.",
        False,
        False,
    )
    """Beyond the sink's memory of identities."""


ORDER = (
    EvidenceClass.ACKNOWLEDGED,
    EvidenceClass.TRIMMED,
    EvidenceClass.UNKNOWABLE,
    EvidenceClass.ALTERED_AT_THE_SINK,
    EvidenceClass.PAST_THE_HORIZON,
    EvidenceClass.ABSORBED,
    EvidenceClass.AMBIGUOUS,
    EvidenceClass.NOT_REPRESENTABLE,
    EvidenceClass.PROVABLY_MISSING,
)
"""Which class an event is of that several fit: the first. What is left when nothing else fits is sent."""


REFUSED_MEANS = "The sink does not have them. Not sent: this plan is refused."


def classes_counted(counts: Mapping[str, int]) -> dict[str, int]:
    """Each class that a plan shows and how many events are of it, in the order of the rows.

    >>> list(classes_counted({"provably missing": 3, "absorbed": 2}).items())[::5]
    [('provably missing', 3), ('trimmed', 0)]
    >>> classes_counted({"provably missing": 3, "absorbed": 2})["absorbed"]
    2
    """
    return {one.value: counts.get(one, 0) for one in EvidenceClass if one.is_always_shown or counts.get(one, 0)}


def sent_count(counts: Mapping[str, Any]) -> int:
    """How many owed events are in the batch."""
    return sum(int(counts.get(one, 0)) for one in EvidenceClass if one.is_sent)


def owed_count(counts: Mapping[str, Any]) -> int | None:
    """How many events are owed, over all classes. None: an earlier version counted some of them in two."""
    return sum(map(int, counts.values())) if EvidenceClass.TRIMMED in counts else None


def unsent_says(counts: Mapping[str, Any]) -> str:
    """What is owed and not sent, by class; empty where nothing is.

    >>> unsent_says({"provably missing": 3, "trimmed": 1200, "unknowable": 1})
    'Not sent: 1 unknowable, 1,200 trimmed.'
    """
    held = [f"{int(counts[one]):,} {one}" for one in EvidenceClass if not one.is_sent and int(counts.get(one, 0))]
    return f"Not sent: {', '.join(held)}." if held else ""


def kept_back(counts: Mapping[str, Any]) -> int:
    """How many owed events are not in the batch, and nobody decided so: what a person still has to look at."""
    return sum(
        int(counts.get(one, 0)) for one in EvidenceClass if not one.is_sent and one is not EvidenceClass.ACKNOWLEDGED
    )


def class_as_row(name: str, count: Any, is_refused: bool = False) -> dict[str, Any]:
    """One class of a plan as pages, REST and commands show it; a word of another version as it stands."""
    known = EvidenceClass(name) if name in list(EvidenceClass) else None
    if known is not None and known.is_sent and is_refused:
        return {"evidence_class": name, "count": count, "is_sent": False, "says": REFUSED_MEANS, "remedy": ""}
    return {
        "evidence_class": name,
        "count": count,
        "is_sent": known is not None and known.is_sent,
        "says": known.means if known else "",
        "remedy": known.remedy if known else "",
    }


def classes_as_rows(batch: Mapping[str, Any], is_refused: bool = False) -> list[dict[str, Any]]:
    """A plan's classes with what becomes of each, in the order of the rows. Empty: nothing was computed yet.

    `is_refused`: the plan cannot be applied, so nothing of it is sent.
    """
    order: Iterable[str] = [
        *(one.value for one in EvidenceClass if one in batch),
        *sorted(set(batch) - set(EvidenceClass)),
    ]
    return [class_as_row(name, batch[name], is_refused) for name in order]
