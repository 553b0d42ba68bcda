"""Keeping what an audit judged for the next one to go on from; letting it go where nothing of it can be believed."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models import QuerySet

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import coordinate_as_row
from recovery_api.domain.ledger.blocks import Block
from recovery_api.domain.ledger.following import Known, LaneBlocks
from recovery_api.models import LedgerBlock, LedgerReading, Pipeline
from recovery_api.selectors.blocks import block_places

Place = tuple[str, int, int]


def blocks_remember(pipeline: Pipeline, known: Known, epoch: str) -> bool:
    """Keeps `known` in place of what was kept; whether it did: an older reading never takes the place of a newer one.

    Only what changed is written: of a long history an audit changes a few blocks.
    """
    with transaction.atomic():
        Pipeline.objects.select_for_update(no_key=True).get(pk=pipeline.pk)
        held = LedgerReading.objects.filter(pipeline=pipeline).first()
        if held is not None and held.epoch == epoch and held.read_at > known.read_at:
            return False
        new = {
            (lane, block.high.position, block.high.ordinal): block
            for lane, blocks in known.lanes.items()
            for block in blocks.blocks
        }
        old = {} if held is None or held.epoch != epoch else block_places(pipeline)
        if not old:
            LedgerBlock.objects.filter(pipeline=pipeline).delete()
        gone = [key for place, (key, block) in old.items() if new.get(place) != block]
        kept = {place for place, (_, block) in old.items() if new.get(place) == block}
        LedgerBlock.objects.filter(pk__in=gone).delete()
        rows = [_row(pipeline, place, block) for place, block in new.items() if place not in kept]
        LedgerBlock.objects.bulk_create(rows, batch_size=1000)
        increment = known.increment
        LedgerReading.objects.update_or_create(
            pipeline=pipeline,
            defaults={
                "epoch": epoch,
                "snapshot": known.snapshot,
                "evidence_uri": known.directory,
                "read_at": known.read_at,
                "lanes": {lane: _lane_row(blocks) for lane, blocks in known.lanes.items()},
                "increment": increment and {"since": increment.since, "entries": _text(increment.entries.items())},
            },
        )
    return True


def blocks_forget(pipelines: QuerySet[Pipeline]) -> None:
    """Nothing that audits kept of these pipelines is gone on from: their next one reads everything."""
    with transaction.atomic():
        LedgerReading.objects.filter(pipeline__in=pipelines).delete()
        LedgerBlock.objects.filter(pipeline__in=pipelines).delete()


def _row(pipeline: Pipeline, place: Place, block: Block) -> LedgerBlock:
    return LedgerBlock(
        pipeline=pipeline,
        lane=place[0],
        low_position=None if block.low is None else block.low.position,
        low_ordinal=None if block.low is None else block.low.ordinal,
        high_position=block.high.position,
        high_ordinal=block.high.ordinal,
        counts={name: None if value is None else str(value) for name, value in block.counts.items()},
        committed=_text(block.committed.items()),
        accepted=_text(block.accepted.items()),
        derived_at=block.derived_at,
    )


def _lane_row(lane: LaneBlocks) -> dict[str, object]:
    return {
        "frontier": coordinate_as_row(lane.frontier),
        "lowest": _coordinate(lane.lowest),
        "floor": _coordinate(lane.floor),
        "acknowledged": lane.acknowledged,
        "incarnation": lane.incarnation,
        "above": None if lane.above is None else _text(lane.above.items()),
    }


def _coordinate(at: Coordinate | None) -> object:
    return None if at is None else coordinate_as_row(at)


def _text(pairs: Iterable[tuple[str, int]]) -> dict[str, str]:
    return {name: str(value) for name, value in pairs}
