"""Which stretches of the lanes an audit reads and which stand, and whether what is read again is what it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from recovery_api.domain.coordinates import Spelling, coordinate_format
from recovery_api.domain.ledger.blocks import Block, Fingerprint, block_join, fingerprint_join
from recovery_api.domain.ledger.following import LaneBlocks
from workers.connectors.readings import CoordinateRange
from workers.evidence.blocks import block_from_row
from workers.evidence.newly import is_same


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a lane: to be read, or `kept` as these blocks say.

    `again`: a block that is read again; `entered`: the fingerprint of the entries that came into it since. `is_last`: of those in
    which rows may have come in late; `is_purged`: of those from which the source dropped rows.
    """

    range_: CoordinateRange
    kept: tuple[Block, ...] = ()
    again: Block | None = None
    entered: Fingerprint = field(default_factory=dict)
    is_last: bool = False
    is_purged: bool = False


@dataclass(frozen=True, slots=True)
class Reach:
    """What an audit reads of the lanes. `because`: why everything; "" where blocks may be kept. `new`: entries that came in
    since `since`; `older`: by lane, those that the ledger may count as seen now and could not before. `opened` blocks are judged anew, `derived` read again in turn; `oldest`: when the oldest other was read.
    `above`: by lane the fingerprint that its acceptances above the newest block have, if those seen before are what they were."""

    segments: tuple[Segment, ...]
    because: str = ""
    new: Fingerprint = field(default_factory=dict)
    older: Mapping[str, Fingerprint] = field(default_factory=dict)
    opened: int = 0
    derived: int = 0
    oldest: datetime | None = None
    since: datetime | None = None
    above: Mapping[str, Fingerprint] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return not any(segment.kept for segment in self.segments)


def opened_find(held: LaneBlocks, look_back: int) -> set[int]:
    """The places of the blocks that are judged anew although nothing was accepted there: more commits may justify what is
    there; and always the last ones, of at least `look_back` rows together, where late rows come in, which end the ground
    that the frontier stands on."""
    open_ = {place for place, block in enumerate(held.blocks) if not block.is_settled}
    rows = 0
    for place in reversed(range(len(held.blocks))):
        open_.add(place)
        rows += held.blocks[place].rows
        if rows >= look_back:
            break
    return open_


def segments_find(
    lane: str,
    held: LaneBlocks,
    read: set[int],
    entered: Mapping[int, Fingerprint],
    purged: set[int],
    whole: Sequence[CoordinateRange],
) -> list[Segment]:
    """The lane in order: runs of blocks that stand, each other block alone, and what lies above them, cut as `whole` is."""
    segments: list[Segment] = []
    last = len(held.blocks) - 1
    while (
        last > 0 and last - 1 in read
    ):  # the blocks that are read again at the end: what came late is told apart there
        last -= 1
    for is_read, places in groupby(range(len(held.blocks)), key=read.__contains__):
        blocks = [(place, held.blocks[place]) for place in places]
        if is_read:
            for place, block in blocks:
                is_last = place >= last
                range_ = CoordinateRange(lane, block.low, block.high)
                segments.append(Segment(range_, (), block, entered.get(place, {}), is_last, place in purged))
        else:
            run = tuple(block for _, block in blocks)
            segments.append(Segment(CoordinateRange(lane, run[0].low, run[-1].high), run))
    above = held.blocks[-1].high
    for range_ in whole:
        if range_.high is None or range_.high > above:
            low = above if range_.low is None or range_.low < above else range_.low
            segments.append(Segment(CoordinateRange(lane, low, range_.high)))
    return segments


def changed_find(reach: Reach, summaries: Sequence[Mapping[str, Any]], now: datetime, spelling: Spelling) -> str:
    """Why what is remembered cannot be believed: a block that was read again, or what lies above the blocks, is another.
    "" where each is as it was."""
    accepted_above: dict[str, Fingerprint] = {}
    for segment, summary in zip(reach.segments, summaries, strict=True):
        lane, held = segment.range_.lane, segment.again
        if segment.kept:
            continue
        blocks = [block_from_row(row, now) for row in summary["blocks"]]
        if held is None:
            parts = [accepted_above.get(lane, {}), *(block.accepted for block in blocks), summary.get("above", {})]
            accepted_above[lane] = fingerprint_join(*parts)
            continue
        read = block_join(blocks)
        is_as_committed = segment.is_last or is_same(read.committed, held.committed)
        if segment.is_purged:  # what went cannot be told from what was there; nothing may have come
            is_as_committed |= read.committed.get("count", 0) <= held.committed.get("count", 0)
        is_as_accepted = is_same(read.accepted, fingerprint_join(held.accepted, segment.entered))
        if not (is_as_committed and is_as_accepted):
            return _changed(segment.range_, "acceptance record" if is_as_committed else "source", spelling)
    for lane, expected in reach.above.items():
        if not is_same(accepted_above[lane], expected):
            above = (one.range_ for one in reach.segments if one.range_.lane == lane and not (one.kept or one.again))
            return _changed(next(above), "acceptance record", spelling)
    return ""


def _changed(range_: CoordinateRange, end: str, spelling: Spelling) -> str:
    low = "the beginning" if range_.low is None else coordinate_format(range_.low, spelling)
    return (
        f"From {low} on, in lane {range_.lane}, the {end} does not hold any more what an earlier audit read there, so "
        "everything was read again."
    )
