"""Matching by message id, for records that know nothing else: how ids are compared, until when an absence counts.

The laws: an id identifies an event only where no two events can share it, neither now (a unique constraint at the
source shows that) nor later (the owner says so). An event whose id is absent is *lost* only while its row cannot have
been trimmed yet; after that it is *unknown*. A record of ids shows neither contents nor premature entries, so the best
outcome is *complete by identity at f*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from recovery_api.domain.errors import BadInput

BY_COORDINATE, BY_EVENT_ID = "coordinate", "event_id"
"""The values of a record's option `identity`."""

NOT_JUDGED = "contents and premature entries not judged"
"""What goes with *complete by identity at f*, everywhere."""

BY_IDENTITY = "by identity"
"""How an audit by ids says that it matched; what ids were compared as follows."""

NO_REUSE = "event_ids_are_never_reused"
"""The source's option by which its owner attests that an id is never used again."""

MARK = (
    "A row in this record is the mark of an effect, not the effect: writing one would tell the consumer that a message"
    " was handled which it never saw. So this record is audited and planned, and nothing is ever fired into it."
)


class IdType(StrEnum):
    """What two ids are compared as."""

    UUID = "uuid"
    """128 bits: upper case, braces and hyphens make no difference."""
    BIGINT = "bigint"
    """A signed 64-bit number: a sign or leading zeros make no difference."""
    TEXT = "text"
    """The exact text: case, blanks and accents make a difference, whatever a collation says."""


COLUMN_TYPES = {
    "uuid": IdType.UUID,
    "int2": IdType.BIGINT,
    "int4": IdType.BIGINT,
    "int8": IdType.BIGINT,
    "text": IdType.TEXT,
    "varchar": IdType.TEXT,
    "bpchar": IdType.TEXT,
}
"""PostgreSQL's types that can hold an id, by their names in the catalogue."""


def id_type_meet(source: IdType, record: IdType) -> IdType | None:
    """What ids of these two types are compared as: the source's type, or the record's where only that one has a type.

    A typed record has forgotten how a text was written, so a text source compares as the record does; two of its ids
    that are one then come twice, which is refused. None: they cannot be compared.

    >>> id_type_meet(IdType.UUID, IdType.TEXT), id_type_meet(IdType.TEXT, IdType.UUID)
    (<IdType.UUID: 'uuid'>, <IdType.UUID: 'uuid'>)
    >>> id_type_meet(IdType.UUID, IdType.BIGINT) is None
    True
    """
    if record is IdType.TEXT or source is record:
        return source
    return record if source is IdType.TEXT else None


def is_by_event_id(options: Mapping[str, Any]) -> bool:
    """Whether a record with these options knows only message ids."""
    return options.get("identity") == BY_EVENT_ID


def ids_check(source: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Nothing, where these two ends can be met as the record's options say. Raises: BadInput, before anything is read."""
    if not is_by_event_id(record):
        return
    if not source.get("event_id"):
        remedy = "Map event_id at the source: this sink's record knows nothing else to be met by."
        raise BadInput("pipeline.source", "maps no event id", remedy)
    if not source.get(NO_REUSE):
        problem = "does not say that an event id is never used again"
        remedy = f"Whoever owns it attests that, recorded with their name: {NO_REUSE}=true."
        raise BadInput("pipeline.source", problem, remedy)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long the record keeps a row after it accepted. `seconds` None: for ever, as its owner said.

    `margin_seconds`: what clocks may differ by, and how long a row may take from its commit to where it is read.
    """

    seconds: int | None
    margin_seconds: int = 60

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Lifetime:
        """From a record's parsed options."""
        return cls(options.get("lifetime_seconds"), options["lifetime_margin_seconds"])

    @property
    def certain_seconds(self) -> int | None:
        """For how long after an event's commit its absence shows that it was not accepted. None: for ever.

        >>> Lifetime(1800, 60).certain_seconds, Lifetime(30, 60).certain_seconds, Lifetime(None).certain_seconds
        (1740, 0, None)
        """
        return None if self.seconds is None else max(self.seconds - self.margin_seconds, 0)

    def says(self) -> str:
        """
        >>> Lifetime(1800, 60).says()
        'The record keeps a row for 1,800 s; with a margin of 60 s an absence is proof for 1,740 s.'
        """
        if self.seconds is None:
            return "That the record never deletes a row is only its owner's word."
        return (
            f"The record keeps a row for {self.seconds:,} s; with a margin of {self.margin_seconds:,} s an absence is"
            f" proof for {self.certain_seconds:,} s."
        )


@dataclass(frozen=True, slots=True)
class Identity:
    """How ids were compared, for a verdict. `consumer`: whose rows count, as a phrase; "" where all do.

    `id_type` as it is called. `first_unmatched`, `first_unreadable`: a few ids by name, of what could not be matched.
    `shown_until`: when the first lost event stops being provably lost; None: never, or none is lost.
    """

    id_type: str
    lifetime: Lifetime
    consumer: str = ""
    first_unmatched: tuple[str, ...] = ()
    first_unreadable: tuple[str, ...] = ()
    first_repeated: tuple[str, ...] = ()
    shown_until: datetime | None = None

    @property
    def matching(self) -> str:
        return f"{BY_IDENTITY} ({self.id_type})"

    def as_row(self) -> dict[str, Any]:
        return {
            "id_type": self.id_type,
            "consumer": self.consumer,
            "lifetime_seconds": self.lifetime.seconds,
            "margin_seconds": self.lifetime.margin_seconds,
            "shown_until": self.shown_until.isoformat() if self.shown_until else None,
        }
