"""What crosses blocks: sums, and whether coordinates ascend over the whole lane (condition P4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import pairwise

from recovery_api.domain.verdicts import LaneCounts

_SUMMED = [field.name for field in fields(LaneCounts) if field.type in ("int", int)]


def fold(blocks: Iterable[Mapping[str, int | None]]) -> LaneCounts:
    """The lane's counts from the counts of its blocks, in any order. The blocks are disjoint ranges of coordinates; what
    was judged by id, and so of no range, is a block that gives no bounds. A count that a block does not give is zero.

    Coordinates ascend when none repeats and, where the history gives committed order (`entry`), that order is theirs:
    within each block, and from each block to the next.
    """
    sums = dict.fromkeys(_SUMMED, 0)
    spans: list[tuple[int, int, int, int]] = []
    ascends = True
    for block in blocks:
        for name in _SUMMED:
            sums[name] += block.get(name) or 0
        ascends = ascends and not block.get("coordinates_repeated") and not block.get("entries_descending")
        position, ordinal = block.get("first_position"), block.get("first_ordinal")
        first, last = block.get("first_entry"), block.get("last_entry")
        if position is not None and ordinal is not None and first is not None and last is not None:
            spans.append((position, ordinal, first, last))
    spans.sort()
    ascends = ascends and all(before[3] < after[2] for before, after in pairwise(spans))
    return LaneCounts(**sums, coordinates_ascending=ascends)
