"""Blocks: what was judged of a lane, in closed ranges, so that an audit need not read it again.

The law: a block is what the kernel said of its range, and fingerprints of both ends there. A block that is read again and
is another has changed behind the ledger's back, and then nothing that is remembered of its lane is believed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recovery_api.domain.coordinates import INT64_MAX, INT64_MIN, Coordinate

ROWS_A_BLOCK = 65_536
"""Obligations of a block, about: ranges follow the rows, not the numbers, so that sparse coordinates fit."""

ROUND = timedelta(days=7)
"""Within which every block is read again from both ends."""

Counts = Mapping[str, int | None]
Fingerprint = Mapping[str, int]

_BOUNDS = ("first_position", "first_ordinal", "last_position", "last_ordinal", "first_entry", "last_entry")


@dataclass(frozen=True, slots=True)
class Block:
    """One lane from `low` (inclusive; None: from the beginning) to `high` (exclusive), as it was last read.

    `counts`: the kernel's. `committed`, `accepted`: fingerprints of the range at each end.
    """

    low: Coordinate | None
    high: Coordinate
    counts: Counts
    committed: Fingerprint
    accepted: Fingerprint
    derived_at: datetime

    @property
    def rows(self) -> int:
        return max(self.committed.get("count", 0), self.accepted.get("count", 0))

    @property
    def findings(self) -> int:
        """How many rows of evidence the kernel wrote of it."""
        names = ("lost", "justification_unknown", "duplicate_payloads", *_PREMATURE)
        return sum(self.counts.get(name) or 0 for name in names)

    @property
    def is_settled(self) -> bool:
        """Whether only an acceptance, or a change at an end, can say something else of it.

        An entry that nothing justified, or whose head was not believed, may look better when more is committed.
        """
        return not (self.counts.get("justification_unknown") or self.counts.get("premature_head_not_believed"))


_PREMATURE = ("premature_never_committed", "premature_altered", "premature_ahead", "premature_head_not_believed")


def coordinate_after(at: Coordinate) -> Coordinate:
    """The lowest coordinate above `at`.

    >>> coordinate_after(Coordinate(7)), coordinate_after(Coordinate(7, INT64_MAX)).position
    (Coordinate(position=7, ordinal=1), 8)
    """
    if at.ordinal < INT64_MAX:
        return Coordinate(at.position, at.ordinal + 1)
    return Coordinate(at.position + 1, INT64_MIN)


def counts_join(parts: Sequence[Counts]) -> dict[str, int | None]:
    """The counts of neighbouring ranges, in their order, as if they had been judged as one.

    >>> one = {"lost": 1, "entries_descending": 0, "first_position": 1, "first_entry": 1, "last_entry": 9}
    >>> two = {"lost": 2, "entries_descending": 0, "first_position": 5, "first_entry": 8, "last_entry": 12}
    >>> joined = counts_join([one, two])
    >>> joined["lost"], joined["entries_descending"], joined["first_position"], joined["last_entry"]
    (3, 1, 1, 12)
    """
    names = dict.fromkeys(name for part in parts for name in part if name not in _BOUNDS)
    joined: dict[str, int | None] = {name: sum(part.get(name) or 0 for part in parts) for name in names}
    held = [part for part in parts if part.get("first_position") is not None]
    for name in _BOUNDS[:2]:
        joined[name] = held[0].get(name) if held else None
    for name in _BOUNDS[2:4]:
        joined[name] = held[-1].get(name) if held else None
    is_told = bool(held) and all(part.get("first_entry") is not None for part in held)
    firsts = [part["first_entry"] or 0 for part in held] if is_told else []
    lasts = [part["last_entry"] or 0 for part in held] if is_told else []
    joined["first_entry"], joined["last_entry"] = min(firsts, default=None), max(lasts, default=None)
    if is_told:
        broken = sum(last >= first for last, first in zip(lasts, firsts[1:], strict=False))
        joined["entries_descending"] = (joined.get("entries_descending") or 0) + broken
    return joined


def fingerprint_join(*parts: Fingerprint) -> dict[str, int]:
    """The fingerprint of disjoint rows together.

    >>> fingerprint_join({"count": 1, "positions": 2**64 - 1}, {"count": 2, "positions": 2})
    {'count': 3, 'positions': 1}
    """
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part.get(name, 0) for part in parts) % 2**64 for name in names}


def block_join(blocks: Sequence[Block]) -> Block:
    """Neighbours as one, as old as the oldest of them."""
    return Block(
        blocks[0].low,
        blocks[-1].high,
        counts_join([one.counts for one in blocks]),
        fingerprint_join(*(one.committed for one in blocks)),
        fingerprint_join(*(one.accepted for one in blocks)),
        min(one.derived_at for one in blocks),
    )


def blocks_close(blocks: Sequence[Block], rows_most: int) -> list[Block]:
    """The blocks of a lane, in order, with small neighbours joined: what short increments left does not stay small."""
    closed: list[Block] = []
    for block in blocks:
        if closed and closed[-1].rows + block.rows <= rows_most:
            closed[-1] = block_join([closed[-1], block])
        else:
            closed.append(block)
    return closed


def blocks_due(blocks: Sequence[Block], now: datetime, since: datetime, promised: timedelta = ROUND) -> set[int]:
    """Which blocks, by place, are to be read again now, the oldest first, so that each is within the promised time.

    In the first half of its round none is; in the second half as many an audit as are needed for all, at the pace at
    which audits come (`since`: the last one); and at once what has waited for the whole of it.

    >>> at = datetime(2026, 1, 1)
    >>> block = Block(None, Coordinate(9), {}, {}, {}, at)
    >>> [blocks_due([block] * 4, at + timedelta(days=day), at + timedelta(days=day - 1)) for day in (1, 4, 8)]
    [set(), {0, 1}, {0, 1, 2, 3}]
    """
    oldest = sorted(range(len(blocks)), key=lambda place: blocks[place].derived_at)
    waiting = [place for place in oldest if blocks[place].derived_at + promised / 2 <= now]
    share = min(1.0, max((now - since) / (promised / 2), 0.0)) if promised else 1.0
    overdue = {place for place in waiting if blocks[place].derived_at + promised <= now}
    return overdue | set(waiting[: math.ceil(len(blocks) * share)])


def blocks_hold(blocks: Sequence[Block], at: Coordinate) -> int | None:
    """The place of the block that holds the coordinate; None: it lies above them all."""
    low, high = 0, len(blocks)
    while low < high:
        middle = (low + high) // 2
        if at < blocks[middle].high:
            high = middle
        else:
            low = middle + 1
    return low if low < len(blocks) else None
