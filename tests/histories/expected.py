"""What a history must come to, told from the rows that were generated and from nothing of the product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recovery_api.domain.coordinates import Coordinate
from tests.histories.ends import Event


@dataclass(frozen=True)
class Expected:
    """How many of each, at one frontier."""

    owed: int
    lost: int
    acknowledged: int
    duplicates: int
    premature: int
    unknown: int


def expected_of(
    history: Sequence[Event], record: Sequence[Event], frontier: Coordinate, acknowledged: Collection[Coordinate]
) -> Expected:
    """THEORY section 2, row by row. What lies below the oldest row the source holds may have been dropped."""
    held = {(one.at, one.digest) for one in history}
    places = {one.at for one in history}
    floor = min(places, default=None)
    newest = max(places, default=None)
    taken = {(one.at, one.digest) for one in record}
    owed = [one for one in history if one.at <= frontier]
    lost = [one for one in owed if (one.at, one.digest) not in taken]
    premature = unknown = 0
    for one in record:
        is_ahead = one.head is not None and one.head < one.at
        is_beyond = one.head is not None and newest is not None and one.head > newest
        if (one.at, one.digest) in held:
            premature += is_ahead or is_beyond
        elif one.at in places or is_ahead or is_beyond or (floor is not None and one.at >= floor):
            premature += 1
        else:
            unknown += 1
    copies = Counter((one.at, one.digest) for one in record)
    return Expected(
        len(owed),
        len(lost),
        sum(one.at in acknowledged for one in lost),
        sum(count > 1 for count in copies.values()),
        premature,
        unknown,
    )
