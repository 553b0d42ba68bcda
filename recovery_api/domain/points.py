"""What a sink can do, point by point: declared and tested side by side, and which of the two counts.

The law: the weaker counts. Where nothing was declared, the test counts; what could not be tested is taken as absent. A
declaration makes nothing true, and a test gives back nothing that the registration takes away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from recovery_api.domain.words import row_make

FOR_GOOD = math.inf
"""A memory without an end, and a batch without a limit."""

Value = bool | float | None
"""Yes or no; a number of seconds or entries, `FOR_GOOD` without bound, 0 for none. None: not declared, or not tested."""


class Point(StrEnum):
    """One point. A row: the word; what it asks; what its value counts (empty: yes or no)."""

    asks: str
    unit: str

    def __new__(cls, word: str, asks: str = "", unit: str = "") -> Point:
        return row_make(cls, word, asks=asks, unit=unit)

    READS_RECORD = "reads record", "Can what was accepted be read back?"
    RECORD_COMPLETE = "record complete", "Does the record hold everything that was ever accepted?"
    FENCE = "fence", "Is a request of an older generation refused when it arrives?"
    IDENTITY_KEY = "identity key", "Is a second delivery of one event noticed when it arrives?"
    ONE_TRANSACTION = "one transaction", "Does a batch arrive as a whole, or not at all?"
    APPEND = "append under a lock", "Can what is missing be added while everybody else is kept out?"
    MEMORY = "memory of identities", "How long is an identity remembered?", "s"
    BATCH_LIMIT = "batch limit", "How much can arrive in one step?", "entries"


@dataclass(frozen=True, slots=True)
class Compared:
    """One point of one sink. `counts`: the weaker of `declared` and `tested`. `because`: why it is not as declared."""

    point: Point
    declared: Value
    tested: Value
    counts: Value
    how: str = ""
    because: str = ""

    @property
    def is_weaker(self) -> bool:
        """Whether the test found less than was declared."""
        if self.declared is None:
            return False
        return self.tested is None or self.tested < self.declared

    def as_row(self, tested_at: str | None) -> dict[str, Any]:
        return {
            "point": self.point.value,
            "asks": self.point.asks,
            "declared": value_says(self.point, self.declared, "not declared"),
            "tested": value_says(self.point, self.tested, "could not be tested"),
            "counts": value_says(self.point, self.counts, "no"),
            "is_weaker": self.is_weaker,
            "how": self.how,
            "because": self.because,
            "tested_at": tested_at,
        }


def value_says(point: Point, value: Value, absent: str) -> str:
    """A value in words.

    >>> value_says(Point.FENCE, True, ""), value_says(Point.MEMORY, FOR_GOOD, ""), value_says(Point.MEMORY, 3600, "")
    ('yes', 'for good', '3,600 s')
    >>> value_says(Point.BATCH_LIMIT, FOR_GOOD, ""), value_says(Point.MEMORY, 0, ""), value_says(Point.FENCE, None, "?")
    ('no limit', 'not at all', '?')
    """
    if value is None:
        return absent
    if not point.unit:
        return "yes" if value else "no"
    if value == FOR_GOOD:
        return "for good" if point is Point.MEMORY else "no limit"
    return f"{int(value):,} {point.unit}" if value else "not at all"


def weaker(declared: Value, tested: Value) -> Value:
    """What counts of the two.

    >>> weaker(True, False), weaker(False, True), weaker(None, True), weaker(True, None), weaker(500, 100)
    (False, False, True, False, 100)
    """
    if tested is None:
        return False
    return tested if declared is None else min(declared, tested)


def values_tested(capability: Mapping[str, Any] | None) -> dict[Point, Value]:
    """A capability's row, point by point. None: nothing could be tested."""
    if capability is None:
        return {}
    horizon, limit = capability.get("horizon_seconds"), capability.get("batch_limit")
    has_key = bool(capability.get("has_identity_key"))
    return {
        Point.READS_RECORD: bool(capability.get("can_read_record")),
        Point.RECORD_COMPLETE: bool(capability.get("is_record_complete")),
        Point.FENCE: bool(capability.get("has_fence")),
        Point.IDENTITY_KEY: has_key,
        Point.ONE_TRANSACTION: bool(capability.get("lands_in_one_transaction")),
        Point.APPEND: bool(capability.get("may_append")),
        Point.MEMORY: (FOR_GOOD if horizon is None else horizon) if has_key else 0,
        Point.BATCH_LIMIT: FOR_GOOD if limit is None else limit,
    }


def points_compared(
    declared: Mapping[Point, Value], capability: Mapping[str, Any] | None, how: Mapping[Point, str]
) -> list[Compared]:
    """Every point of a sink. `how`: how its kind tests each."""
    tested, because = values_tested(capability), _because(capability or {})
    found = []
    for point in Point:
        mine, theirs = declared.get(point), tested.get(point)
        counts = weaker(mine, theirs)
        found.append(
            Compared(point, mine, theirs, counts, how.get(point, ""), because.get(point, "") if not theirs else "")
        )
    return found


def _because(capability: Mapping[str, Any]) -> dict[Point, str]:
    """Why a point is not there, where the test found out."""
    return {
        Point.FENCE: str(capability.get("unfenced_because") or ""),
        Point.APPEND: str(capability.get("unappended_because") or capability.get("mark_because") or ""),
    }
