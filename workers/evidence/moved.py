"""Which blocks say something else because the source dropped rows, or because other omissions are acknowledged.

The law: of every other block the verdict rests on nothing that has moved. What the source holds, and below what it may have
dropped something, decides of the rows there and of nothing above; an omission decides of its own coordinate.
"""

from __future__ import annotations

import hashlib

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.ledger.blocks import blocks_hold
from recovery_api.domain.ledger.following import LaneBlocks
from workers.connectors.readings import LaneReading
from workers.evidence.blocks import EVERYTHING
from workers.evidence.kernel import LaneQuestion
from workers.evidence.newly import Whole

ACKNOWLEDGED = ("acknowledged", "acknowledged_remembered")


def purged_find(held: LaneBlocks, reading: LaneReading) -> set[int]:
    """The places of the blocks in which the lowest row or the floor was, is, or lay in between.

    A block below them both was judged without its rows and is as it was; one above them lost none.

    Raises: Whole where rows are there below those that an earlier audit found to be the lowest.
    """
    moved: set[int] = set()
    was, now = (held.lowest, held.floor), (reading.lowest, reading.floor)
    for then, since in ((was[0], now[0]), (was[1] or was[0], now[1] or now[0])):
        low, high = then or EVERYTHING, since or EVERYTHING
        touched = _between(held, min(low, high), max(low, high))
        if touched and high < low:
            raise Whole(
                "The source's oldest row lies below the one that an earlier audit read: rows came in there since."
            )
        moved |= touched
    return moved


def omitted_find(held: LaneBlocks, asked: LaneQuestion) -> set[int]:
    """The places of the blocks with an omission, as acknowledged then or now. Empty where they are the same as then."""
    if acknowledged_digest(asked) == held.acknowledged:
        return set()
    then = {at for at, block in enumerate(held.blocks) if any(block.counts.get(name) for name in ACKNOWLEDGED)}
    table = asked.acknowledged
    if table is None or not table.num_rows:
        return then
    ordinals = table["ordinal"].to_pylist() if "ordinal" in table.column_names else [0] * table.num_rows
    places = zip(table["position"].to_pylist(), ordinals, strict=True)
    now = {blocks_hold(held.blocks, Coordinate(*place)) for place in places}
    return then | {at for at in now if at is not None}


def acknowledged_digest(asked: LaneQuestion) -> str:
    """A digest of the coordinates that are acknowledged; "" where none is."""
    table = asked.acknowledged
    if table is None or not table.num_rows:
        return ""
    names = [name for name in ("position", "ordinal") if name in table.column_names]
    rows = table.select(names).sort_by([(name, "ascending") for name in names])
    return hashlib.sha256(b"".join(rows[name].to_numpy().tobytes() for name in names)).hexdigest()


def _between(held: LaneBlocks, low: Coordinate, high: Coordinate) -> set[int]:
    """The places of the blocks that hold anything from `low` up to but not including `high`."""
    return {
        at
        for at, block in enumerate(held.blocks)
        if low < high and block.high > low and (block.low is None or block.low < high)
    }
