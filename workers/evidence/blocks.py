"""A range judged block by block: the kernel's word of each, and fingerprints of both ends there, so that it can be kept.

The law: blocks are cut at coordinates, so everything of one event lies in one block, and what the blocks say adds up to
what the range says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import INT64_MAX, INT64_MIN, Coordinate
from recovery_api.domain.ledger.blocks import Block, coordinate_after, counts_join
from workers.connectors.readings import CoordinateRange
from workers.evidence.grounds import history_fingerprint
from workers.evidence.kernel import BlockVerdict, LaneQuestion

BEFORE_EVERYTHING, EVERYTHING = Coordinate(INT64_MIN, INT64_MIN), Coordinate(INT64_MAX, INT64_MAX)


Judge = Callable[[CoordinateRange, pa.Table, pa.Table], tuple[BlockVerdict, pa.Table]]
"""Judges one block: its range, history and acceptances; the verdict, and the acceptances with those found by asking more."""


def range_judge_by_blocks(
    question: LaneQuestion,
    range_: CoordinateRange,
    history: pa.Table,
    accepted: pa.Table,
    rows: int,
    judge: Judge,
) -> tuple[BlockVerdict, pa.Table, list[dict[str, Any]]]:
    """The range cut into blocks of about `rows` events, the last of them ending at the frontier where that lies in it.

    Returns the verdict of the whole, the acceptances it was judged with, and a row for each block at or below the frontier.
    """
    cuts = _cuts(question.frontier, range_, history, rows)
    events, entries = _shared(history, cuts), _shared(accepted, cuts)
    counts, findings, taken, blocks = [], [], [], []
    lows, highs = [range_.low, *cuts], [*cuts, range_.high]
    ends = coordinate_after(question.frontier)
    for low, high, mine, theirs in zip(lows, highs, events, entries, strict=True):
        verdict, with_more = judge(CoordinateRange(range_.lane, low, high), mine, theirs)
        counts.append(verdict.counts)
        findings.append(verdict.findings)
        taken.append(with_more)
        if high is not None and high <= ends:
            blocks.append(
                {
                    "low": None if low is None else [low.position, low.ordinal],
                    "high": [high.position, high.ordinal],
                    "counts": verdict.counts,
                    "committed": history_fingerprint(mine, EVERYTHING),
                    "accepted": history_fingerprint(theirs, EVERYTHING),
                }
            )
    whole = accepted if sum(map(len, taken)) == len(accepted) else pa.concat_tables(taken, promote_options="default")
    return BlockVerdict(counts_join(counts), _by_kind(findings)), whole, blocks


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


def _cuts(frontier: Coordinate, range_: CoordinateRange, history: pa.Table, rows: int) -> list[Coordinate]:
    """Where the range is cut: at events about `rows` apart, and just above the frontier where that lies inside."""
    position, ordinal = _coordinates(history)
    found: set[Coordinate] = set()
    if len(position) > rows:
        order = np.lexsort((ordinal, position)) if ordinal.any() else np.argsort(position, kind="stable")
        at = order[rows::rows]
        found = {Coordinate(int(one), int(two)) for one, two in zip(position[at], ordinal[at], strict=True)}
    found.add(coordinate_after(frontier))
    low, high = range_.low, range_.high
    return sorted(one for one in found if (low is None or one > low) and (high is None or one < high))


def _shared(table: pa.Table, cuts: list[Coordinate]) -> list[pa.Table]:
    """The rows of each block, in the order in which they came."""
    if not cuts:
        return [table]
    position, ordinal = _coordinates(table)
    if ordinal.any() or any(cut.ordinal not in (0, 1) or cut.position == INT64_MAX for cut in cuts):
        block = np.zeros(len(position), np.int64)
        for cut in cuts:
            block += (position > cut.position) | ((position == cut.position) & (ordinal >= cut.ordinal))
    else:  # all ordinals are zero: a cut at ordinal 1 lies above the whole position
        bounds = np.array([cut.position + cut.ordinal for cut in cuts], np.int64)
        block = np.searchsorted(bounds, position, side="right")
    order = np.argsort(block, kind="stable")
    starts = np.searchsorted(block[order], np.arange(len(cuts) + 2))
    sorted_rows = table if (np.diff(order) == 1).all() else table.take(pa.array(order))
    return [sorted_rows.slice(start, stop - start) for start, stop in pairwise(starts)]


def _coordinates(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    return table["position"].to_numpy(), table["ordinal"].to_numpy()
