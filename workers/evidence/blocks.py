"""A range judged block by block: the kernel's word of each, and fingerprints of both ends there, so that it can be kept.

The law: blocks are cut at coordinates, so everything of one event lies in one block, and what the blocks say adds up to
what the range says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import INT64_MAX, INT64_MIN, Coordinate
from recovery_api.domain.ledger.blocks import Block, coordinate_after, counts_join, fingerprint_join
from workers.connectors.readings import CoordinateRange
from workers.evidence.grounds import history_fingerprint
from workers.evidence.holding import Held
from workers.evidence.kernel import BlockVerdict, LaneQuestion

BEFORE_EVERYTHING, EVERYTHING = Coordinate(INT64_MIN, INT64_MIN), Coordinate(INT64_MAX, INT64_MAX)


Judge = Callable[[CoordinateRange, pa.Table, pa.Table], tuple[BlockVerdict, pa.Table]]
"""Judges one block: its range, history and acceptances; the verdict, and the acceptances with those found by asking more."""

GROUP_ROWS = 500_000
GROUP_FINDINGS = 65_536
"""What is worked on at once of a judged range, about: so many rows of both ends together, or so many findings."""


@dataclass(frozen=True)
class Group:
    """Neighbouring blocks of a range, judged. `accepted`: the acceptances they were judged with; `told`: a row for each
    block at or below the frontier; `sums`: what was summed of each block's rows as both ends gave them, joined, and as `above` the
    acceptances above the frontier."""

    range_: CoordinateRange
    history: pa.Table
    accepted: pa.Table
    verdict: BlockVerdict
    told: list[dict[str, Any]]
    sums: dict[str, dict[str, int]]


Sums = Callable[[pa.Table, pa.Table], dict[str, dict[str, int]]]
"""Fingerprints, by name, of one block's history and acceptances as both ends gave them."""


def range_judge_by_blocks(
    question: LaneQuestion, both: Held, rows: int, judge: Judge, sums: Sums, is_kept: bool
) -> Iterator[Group]:
    """The range cut into blocks of about `rows` events, one of them ending at the frontier where that lies in it; as many
    blocks at once as are worked on together. Only a block's rows are ever copied, and `both` is let go block by block.

    `is_kept` False: nobody goes on from the blocks, and nothing is told of them."""
    range_ = both.range_
    ascending = _ascending(both.history)
    cuts = _cuts(question.frontier, range_, both.history, rows, ascending)
    lows, highs = [range_.low, *cuts], [*cuts, range_.high]
    ends = coordinate_after(question.frontier)
    held = _Judged(range_.lane)
    shared_history = _shared(both.history_take(), cuts, ascending)
    accepted = both.accepted_take()
    shared_accepted = _shared(accepted, cuts, _ascending(accepted))
    del accepted, ascending
    for low, high, mine, theirs in zip(lows, highs, shared_history, shared_accepted, strict=True):
        block = CoordinateRange(range_.lane, low, high)
        verdict, with_more = judge(block, mine, theirs)
        summed, told = sums(mine, theirs), None
        if is_kept:
            entries = history_fingerprint(theirs, EVERYTHING)
            if high is None or high > ends:
                summed["above"] = entries
            else:
                told = {
                    "low": None if low is None else [low.position, low.ordinal],
                    "high": [high.position, high.ordinal],
                    "counts": verdict.counts,
                    "committed": history_fingerprint(mine, EVERYTHING),
                    "accepted": entries,
                }
        held.add(block, mine, with_more, verdict, told, summed)
        if held.rows >= GROUP_ROWS or held.findings >= GROUP_FINDINGS:
            yield held.taken()
    if held.ranges:
        yield held.taken()


class _Judged:
    """Blocks that were judged and are not worked on yet."""

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self._empty()

    def _empty(self) -> None:
        self.ranges: list[CoordinateRange] = []
        self.history: list[pa.Table] = []
        self.accepted: list[pa.Table] = []
        self.verdicts: list[BlockVerdict] = []
        self.told: list[dict[str, Any]] = []
        self.sums: list[dict[str, dict[str, int]]] = []
        self.rows = self.findings = 0

    def add(
        self,
        range_: CoordinateRange,
        history: pa.Table,
        accepted: pa.Table,
        verdict: BlockVerdict,
        told: dict[str, Any] | None,
        sums: dict[str, dict[str, int]],
    ) -> None:
        self.ranges.append(range_)
        self.history.append(history)
        self.accepted.append(accepted)
        self.verdicts.append(verdict)
        self.told += [told] if told is not None else []
        self.sums.append(sums)
        self.rows += len(history) + len(accepted)
        self.findings += len(verdict.findings)

    def taken(self) -> Group:
        counts = counts_join([one.counts for one in self.verdicts])
        group = Group(
            CoordinateRange(self.lane, self.ranges[0].low, self.ranges[-1].high),
            pa.concat_tables(self.history),
            pa.concat_tables(self.accepted, promote_options="default"),
            BlockVerdict(counts, _by_kind([one.findings for one in self.verdicts])),
            self.told,
            sums_join(self.sums),
        )
        self._empty()
        return group


def sums_join(parts: Sequence[dict[str, dict[str, int]]]) -> dict[str, dict[str, int]]:
    """By name the fingerprint of disjoint rows together."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: fingerprint_join(*(part[name] for part in parts if name in part)) for name in names}


def block_from_row(row: Mapping[str, Any], derived_at: datetime) -> Block:
    """What `range_judge_by_blocks` said of a block, as it came back from a task."""
    low, high = row["low"], row["high"]
    return Block(
        None if low is None else Coordinate(*low),
        Coordinate(*high),
        row["counts"],
        row["committed"],
        row["accepted"],
        derived_at,
    )


def _by_kind(findings: list[pa.Table]) -> pa.Table:
    """The findings kind by kind, as one block's are, each in the order of its blocks."""
    if len(findings) == 1:
        return findings[0]
    table = pa.concat_tables(findings).combine_chunks()
    kinds = pc.index_in(table["finding"], value_set=pa.array(["lost", "premature", "unknown", "duplicate"]))
    return table.take(pa.array(np.argsort(kinds.to_numpy(), kind="stable"))) if table.num_rows else table


def _ascending(table: pa.Table) -> list[np.ndarray] | None:
    """The rows' positions, piece by piece, where they ascend and are the whole coordinate: an index gives them so. None: they
    are not."""
    pieces = [piece.to_numpy() for piece in table["position"].chunks if len(piece)]
    if any(piece.to_numpy().any() for piece in table["ordinal"].chunks):
        return None
    is_broken = any((piece[1:] < piece[:-1]).any() for piece in pieces)
    return None if is_broken or any(two[0] < one[-1] for one, two in pairwise(pieces)) else pieces


def _cuts(
    frontier: Coordinate, range_: CoordinateRange, history: pa.Table, rows: int, ascending: list[np.ndarray] | None
) -> list[Coordinate]:
    """Where the range is cut: at events about `rows` apart, and just above the frontier where that lies inside."""
    found: set[Coordinate] = set()
    if ascending is not None:
        before = 0
        for piece in ascending:
            first = -before % rows if before else rows  # nothing is cut off below the first row of all
            found |= {Coordinate(int(one), 0) for one in piece[first::rows]}
            before += len(piece)
    elif history.num_rows > rows:
        position, ordinal = _coordinates(history)
        order = np.lexsort((ordinal, position)) if ordinal.any() else np.argsort(position, kind="stable")
        at = order[rows::rows]
        found = {Coordinate(int(one), int(two)) for one, two in zip(position[at], ordinal[at], strict=True)}
    found.add(coordinate_after(frontier))
    low, high = range_.low, range_.high
    return sorted(one for one in found if (low is None or one > low) and (high is None or one < high))


def _shared(table: pa.Table, cuts: list[Coordinate], ascending: list[np.ndarray] | None) -> Iterator[pa.Table]:
    """The rows of each block, in the order in which they came."""
    bounds = _bounds(cuts)
    if not cuts:
        yield table
        return
    if ascending is not None and bounds is not None:
        taken, below = 0, np.zeros(len(bounds), np.int64)
        for piece in ascending:
            below += np.searchsorted(piece, bounds)
        del ascending
        for end in [*below.tolist(), table.num_rows]:
            yield table.slice(0, end - taken)
            table, taken = table.slice(end - taken), end  # what lies before is let go
        return
    block = _places(table, cuts)
    for number in range(len(cuts) + 1):
        later = block > number
        begins = int(later.argmax()) if later.any() else len(block)
        is_mine = block == number
        ends = len(block) - int(is_mine[::-1].argmax()) if is_mine.any() else 0
        mine = table.slice(0, ends)
        yield mine if is_mine[:ends].all() else mine.filter(pa.array(is_mine[:ends]))
        del mine
        table, block = table.slice(begins), block[begins:]  # what lies before is let go


def _places(table: pa.Table, cuts: list[Coordinate]) -> np.ndarray:
    """By row the number of its block."""
    position, ordinal = _coordinates(table)
    bounds = _bounds(cuts)
    if ordinal.any() or bounds is None:
        block = np.zeros(len(position), np.int32)
        for cut in cuts:
            block += (position > cut.position) | ((position == cut.position) & (ordinal >= cut.ordinal))
        return block
    return np.searchsorted(bounds, position, side="right").astype(np.int32)


def _bounds(cuts: list[Coordinate]) -> np.ndarray | None:
    """The cuts as positions that rows without ordinals lie below or not; None where they are none."""
    if any(cut.ordinal not in (0, 1) or cut.position == INT64_MAX for cut in cuts):
        return None
    return np.array([cut.position + cut.ordinal for cut in cuts], np.int64)  # at ordinal 1: above the whole position


def _coordinates(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    return table["position"].to_numpy(), table["ordinal"].to_numpy()
