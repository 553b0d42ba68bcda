"""What crosses blocks: sums, and whether coordinates ascend over the whole lane (condition P4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import pairwise

from recovery_api.domain.verdicts import LaneCounts

_SUMMED = [field.name for field in fields(LaneCounts) if field.type in ("int", int)]


def fold(blocks: Iterable[Mapping[str, int | None]]) -> LaneCounts:
    """The lane's counts from the counts of its blocks, in any order. The blocks are disjoint ranges of coordinates.

    Coordinates ascend when none repeats and, where the history gives committed order (`entry`), that order is theirs:
    within each block, and from each block to the next.
    """
    sums = dict.fromkeys(_SUMMED, 0)
    spans: list[tuple[int, int, int, int]] = []
    ascends = True
    for block in blocks:
        for name in _SUMMED:
            sums[name] += block[name] or 0
        ascends = ascends and not block["coordinates_repeated"] and not block["entries_descending"]
        position, ordinal = block["first_position"], block["first_ordinal"]
        first, last = block["first_entry"], block["last_entry"]
        if position is not None and ordinal is not None and first is not None and last is not None:
            spans.append((position, ordinal, first, last))
    spans.sort()
    ascends = ascends and all(before[3] < after[2] for before, after in pairwise(spans))
    return LaneCounts(**sums, coordinates_ascending=ascends)
