"""Reads of the ledger: what earlier audits saw of a pipeline."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.db.models import QuerySet

from recovery_api.domain.coordinates import Coordinate, coordinate_format
from recovery_api.domain.frontiers import coordinate_from_row
from recovery_api.domain.ledger.lanes import LaneKnown, Unseen, lane_inherit
from recovery_api.domain.ledger.words import ItemWord, SettledBy
from recovery_api.models import LedgerItem, LedgerLane, LedgerReading, Pipeline
from recovery_api.selectors.ends import source_spelling

SETTLED_LOOKED_AT = 50_000
"""The newest events that were found missing and were accepted since, which every audit looks at again: where their
acceptance is gone, they are owed once more."""

ITEM_COLUMNS = (
    *("id", "lane", "position", "ordinal", "word", "cause", "digest", "other_digest", "entry", "copies", "event_id"),
    *("key", "committed_at", "is_acknowledged", "is_content_gone", "settled_by", "epoch"),
)


def ledger_lanes(pipeline: Pipeline) -> dict[tuple[str, str], LaneKnown]:
    """What is remembered, by lane and epoch."""
    rows = LedgerLane.objects.filter(pipeline=pipeline, void_since__isnull=True).select_related("pipeline__source")
    return {(row.lane, row.epoch): lane_known(row) for row in rows}


def ledger_inherited(pipeline: Pipeline) -> dict[str, LaneKnown]:
    """What the newest ledger of each lane, void or not, leaves to another epoch."""
    rows = LedgerLane.objects.filter(pipeline=pipeline).select_related("pipeline__source")
    return {row.lane: lane_inherit(lane_known(row)) for row in rows.order_by("lane", "-read_at").distinct("lane")}


def lane_known(row: LedgerLane) -> LaneKnown:
    decided = ""
    if row.decided_at is not None and row.decided_below is not None:
        spelled = coordinate_format(coordinate_from_row(row.decided_below), source_spelling(row.pipeline.source))
        at = f"{row.decided_at:%Y-%m-%d %H:%M} UTC"
        decided = f"that nothing below {spelled} is owed ({row.decided_by} on {at})"
    return LaneKnown(
        frontier=_coordinate(row.frontier),
        lowest=_coordinate(row.lowest),
        earliest=_coordinate(row.earliest),
        head=_coordinate(row.head),
        admitted_below=row.admitted_below,
        prefix={name: int(value) for name, value in row.prefix.items()},
        unseen=_unseen(row),
        evidence=row.evidence,
        unjustifiable=row.unjustifiable_count,
        is_whole=row.is_whole,
        decided_below=_coordinate(row.decided_below),
        decided=decided,
        givens=tuple(row.givens),
    )


def ledger_token(pipeline: Pipeline) -> str:
    """Changes with every merge, every decision and every loss of the base: what was judged on top of what."""
    rows = LedgerLane.objects.filter(pipeline=pipeline).order_by("pk")
    seen = [[str(value) for value in row] for row in rows.values_list("pk", "audit_id", "void_since", "decided_at")]
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()


def ledger_items_remembered(pipeline: Pipeline) -> list[tuple[Any, ...]]:
    """The rows that an audit judges again, in ITEM_COLUMNS: every open one, and the newest that were accepted since."""
    mine = LedgerItem.objects.filter(pipeline=pipeline).order_by()
    accepted = mine.filter(word=ItemWord.LOST, settled_by=SettledBy.ACCEPTED).order_by("-settled_at")
    open_rows = mine.filter(settled_at__isnull=True).values_list(*ITEM_COLUMNS)
    return [*open_rows, *accepted.values_list(*ITEM_COLUMNS)[:SETTLED_LOOKED_AT]]


def ledger_items_open(pipeline: Pipeline) -> QuerySet[LedgerItem]:
    """What is not settled, in the order of lanes and coordinates. Of its audits the ids alone: each says a lot of every lane."""
    found = LedgerItem.objects.filter(pipeline=pipeline, settled_at__isnull=True)
    return found.select_related("pipeline__source").order_by("lane", "position", "ordinal", "id")


def ledger_evidence(pipeline: Pipeline) -> set[str]:
    """The evidence that the pipeline's ledger points to, and that of the reading which the next audit goes on from."""
    lanes = LedgerLane.objects.filter(pipeline=pipeline).exclude(evidence="").values_list("evidence", flat=True)
    return {*lanes, *LedgerReading.objects.filter(pipeline=pipeline).values_list("evidence_uri", flat=True)}


def ledger_lane_rows(pipeline: Pipeline) -> QuerySet[LedgerLane]:
    """The lanes as they were last seen, each in its newest epoch."""
    rows = LedgerLane.objects.filter(pipeline=pipeline, void_since__isnull=True)
    return rows.select_related("pipeline__source").order_by("lane", "-read_at").distinct("lane")


def _unseen(row: LedgerLane) -> Unseen | None:
    if row.unseen_below is None:
        return None
    return Unseen(_coordinate(row.unseen_above), coordinate_from_row(row.unseen_below))


def _coordinate(row: dict[str, str] | None) -> Coordinate | None:
    return None if row is None else coordinate_from_row(row)
