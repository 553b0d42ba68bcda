"""Reads of what audits judged, as the next audit goes on from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import coordinate_from_row
from recovery_api.domain.ledger.blocks import Block
from recovery_api.domain.ledger.following import Increment, Known, LaneBlocks
from recovery_api.models import LedgerBlock, LedgerReading, Pipeline
from recovery_api.selectors.evidence_places import stored_get

Place = tuple[str, int, int]


def known_get(pipeline: Pipeline, epoch: str) -> Known | None:
    """What an audit in this epoch may go on from; None: nothing."""
    held = LedgerReading.objects.filter(pipeline=pipeline, epoch=epoch).first()
    if held is None:
        return None
    blocks: dict[str, list[Block]] = {lane: [] for lane in held.lanes}
    for (lane, *_), (_, block) in block_places(pipeline).items():
        blocks[lane].append(block)
    increment = held.increment
    return Known(
        held.snapshot,
        held.evidence_uri,
        held.read_at,
        {lane: _lane(row, blocks[lane]) for lane, row in held.lanes.items()},
        None if increment is None else Increment(increment["since"], _numbers(increment["entries"])),
        stored=stored_get(held.evidence_uri),
    )


def block_places(pipeline: Pipeline) -> dict[Place, tuple[int, Block]]:
    """The pipeline's blocks by lane and upper end, in order, each with its key."""
    rows = LedgerBlock.objects.filter(pipeline=pipeline).order_by("lane", "high_position", "high_ordinal")
    return {(row.lane, row.high_position, row.high_ordinal): (row.pk, block_from_row(row)) for row in rows}


def block_from_row(row: LedgerBlock) -> Block:
    low = None
    if row.low_position is not None and row.low_ordinal is not None:
        low = Coordinate(row.low_position, row.low_ordinal)
    return Block(
        low,
        Coordinate(row.high_position, row.high_ordinal),
        {name: None if value is None else int(value) for name, value in row.counts.items()},
        _numbers(row.committed),
        _numbers(row.accepted),
        row.derived_at,
    )


def _lane(row: Mapping[str, Any], blocks: list[Block]) -> LaneBlocks:
    lowest, floor = (None if row[name] is None else coordinate_from_row(row[name]) for name in ("lowest", "floor"))
    above = row.get("above")  # an audit of before it was kept did not say
    return LaneBlocks(
        coordinate_from_row(row["frontier"]),
        tuple(blocks),
        lowest,
        floor,
        row["acknowledged"],
        row["incarnation"],
        None if above is None else _numbers(above),
    )


def _numbers(row: Mapping[str, str]) -> dict[str, int]:
    return {name: int(value) for name, value in row.items()}
