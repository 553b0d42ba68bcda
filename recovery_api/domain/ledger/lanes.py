"""One lane as it is remembered: how far it was seen, which acceptances were, and what an audit adds to that.

Readings are ordered by the record's snapshot. What is said here of acceptances holds of those *admitted below* a
transaction number of the sink: the oldest that was still open when a snapshot was taken. Every acceptance of an older
transaction was in that snapshot; entry numbers may be drawn early and committed late, so they show nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from recovery_api.domain.coordinates import Coordinate

GIVENS_KEPT = 20


@dataclass(frozen=True, slots=True)
class Unseen:
    """A stretch of coordinates of which nobody knows what was committed there. `above` None: from the beginning."""

    above: Coordinate | None
    below: Coordinate

    def with_(self, other: Unseen | None) -> Unseen:
        """Both together, and what lies between them.

        >>> Unseen(Coordinate(4), Coordinate(9)).with_(Unseen(None, Coordinate(2))).below
        Coordinate(position=9, ordinal=0)
        """
        if other is None:
            return self
        above = None if self.above is None or other.above is None else min(self.above, other.above)
        return Unseen(above, max(self.below, other.below))


@dataclass(frozen=True, slots=True)
class LaneKnown:
    """What is remembered of a lane in one epoch.

    `frontier`: everything at or below it was judged: accepted, or an open item, but for `unseen`. `lowest`: of the source
    when it was last read; `earliest` and `head`: the lowest and the highest that were ever seen there. In a new epoch
    `earliest` and `unseen` are all that is known. `admitted_below`: every acceptance of an older transaction of the sink was judged; None: the
    record does not show who admitted an entry. `prefix`: their count and sums; without `admitted_below` the count of the
    whole record. `evidence`: where the last audit keeps what is not kept as rows; "" where nothing is.
    `unjustifiable`: how many acceptances were not shown to be committed. `is_whole` False: items were left out of the
    rows, and are in that evidence alone. `decided_below`: somebody decided that nothing is owed below it; `decided`: the
    phrase that says so, after *given*. `givens`: on what else that rests.
    """

    frontier: Coordinate | None = None
    lowest: Coordinate | None = None
    earliest: Coordinate | None = None
    head: Coordinate | None = None
    admitted_below: int | None = None
    prefix: Mapping[str, int] = field(default_factory=dict)
    unseen: Unseen | None = None
    evidence: str = ""
    unjustifiable: int = 0
    is_whole: bool = True
    decided_below: Coordinate | None = None
    decided: str = ""
    givens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LaneFound:
    """What one whole reading of both ends found of a lane. `lowest` None: the source holds nothing of it.

    `first_number`: where the sequence of its numbers began, `step` apart; None: nothing shows that. `floor`: the source
    says that what lies below may have been dropped. `prefix_then`: count and sums now of what `LaneKnown.prefix` counted.
    `has_evidence` False: what `LaneKnown.evidence` names is gone, or is not what was written there.
    """

    frontier: Coordinate
    lowest: Coordinate | None
    floor: Coordinate | None = None
    first_number: int | None = None
    step: int | None = None
    admitted_below: int | None = None
    prefix: Mapping[str, int] = field(default_factory=dict)
    prefix_then: Mapping[str, int] = field(default_factory=dict)
    head: Coordinate | None = None
    has_evidence: bool = True
    evidence: str = ""
    unjustifiable: int = 0
    is_whole: bool = True
    givens: tuple[str, ...] = ()


def unseen_find(known: LaneKnown | None, found: LaneFound) -> Unseen | None:
    """The stretch that went before anybody saw it, earlier ones included; None: there is none, or it was decided.

    Numbers without a row in the middle were rolled back, or are the ground's affair; only what lies below the lowest row
    can have been dropped unseen.

    >>> unseen_find(None, LaneFound(Coordinate(9), Coordinate(4), first_number=1))
    Unseen(above=None, below=Coordinate(position=4, ordinal=0))
    >>> seen = LaneKnown(frontier=Coordinate(3), lowest=Coordinate(1))
    >>> unseen_find(seen, LaneFound(Coordinate(9), Coordinate(4), first_number=1, step=1)) is None
    True
    >>> unseen_find(seen, LaneFound(Coordinate(9), Coordinate(6), first_number=1, step=1)).above
    Coordinate(position=3, ordinal=0)
    """
    new, earlier = _unseen_now(known, found), known.unseen if known else None
    unseen = new.with_(earlier) if new else earlier
    decided = known.decided_below if known else None
    if unseen is None or (decided is not None and unseen.below <= decided):
        return None
    return unseen


def _unseen_now(known: LaneKnown | None, found: LaneFound) -> Unseen | None:
    lowest = found.lowest
    if known is None or known.frontier is None or known.lowest is None:
        if lowest is not None and found.first_number is not None:
            return Unseen(None, lowest) if lowest.position > found.first_number else None
        if found.floor is not None:
            return Unseen(None, found.floor)
        earliest = known.earliest if known else None
        return Unseen(None, lowest) if earliest is not None and lowest is not None and lowest > earliest else None
    if lowest is None or lowest <= known.frontier:
        return None
    is_next = found.step is not None and lowest.position <= known.frontier.position + found.step
    return None if is_next or known.lowest == lowest else Unseen(known.frontier, lowest)


def base_lost(known: LaneKnown | None, found: LaneFound) -> str | None:
    """Why nothing may be concluded from what is remembered, as a sentence; None: it stands.

    Either acceptances that an earlier audit saw are not the ones in the record now, or items that it kept with its
    evidence alone are gone with that.

    >>> known = LaneKnown(admitted_below=700, prefix={"count": 3, "contents": 5})
    >>> base_lost(known, LaneFound(Coordinate(9), None, prefix_then={"count": 3, "contents": 5})) is None
    True
    >>> base_lost(known, LaneFound(Coordinate(9), None, prefix_then={"count": 2, "contents": 4}))
    'An earlier audit saw 3 acceptances of which the record holds 2 now.'
    """
    if known is None:
        return None
    if not known.is_whole and not found.has_evidence:
        return (
            f"What an earlier audit found and kept at {known.evidence} alone is gone, or is not what was written there."
        )
    then, now = known.prefix.get("count", 0), found.prefix_then.get("count", 0)
    if known.admitted_below is None:
        return None if now >= then else _fewer(then, now)
    if dict(known.prefix) == dict(found.prefix_then):
        return None
    if now != then:
        return _fewer(then, now)
    return f"The {then:,} acceptances that an earlier audit saw are in the record with other contents or places now."


def _fewer(then: int, now: int) -> str:
    which = "acceptance" if then == 1 else "acceptances"
    return f"An earlier audit saw {then:,} {which} of which the record holds {now:,} now."


def lane_inherit(known: LaneKnown) -> LaneKnown:
    """What another epoch of the lane leaves: what was there once, what nobody saw, and open items that are no rows."""
    if known.is_whole:
        return LaneKnown(earliest=known.earliest, unseen=known.unseen)
    return LaneKnown(
        earliest=known.earliest,
        unseen=known.unseen,
        evidence=known.evidence,
        unjustifiable=known.unjustifiable,
        is_whole=False,
    )


def lane_learn(known: LaneKnown | None, found: LaneFound, *, is_rebased: bool) -> LaneKnown:
    """What is remembered after `found`. `is_rebased`: an audit in full, by name, which takes what is there as the base.

    An audit that finds its base lost moves nothing but the unseen stretch: the base stays, and says the same next time.
    """
    unseen = unseen_find(known, found)
    if known is None:
        known = LaneKnown()
    elif base_lost(known, found) is not None and not is_rebased:
        return replace(known, unseen=unseen)
    return replace(
        known,
        frontier=found.frontier if known.frontier is None else max(known.frontier, found.frontier),
        lowest=known.lowest if found.lowest is None else found.lowest,
        earliest=min((one for one in (known.earliest, found.lowest) if one is not None), default=None),
        head=max((one for one in (known.head, found.head) if one is not None), default=None),
        admitted_below=found.admitted_below,
        prefix=dict(found.prefix),
        unseen=unseen,
        evidence=found.evidence,
        unjustifiable=found.unjustifiable,
        is_whole=found.is_whole,
        givens=tuple(dict.fromkeys((*known.givens, *found.givens)))[:GIVENS_KEPT],
    )
