"""From what one reading showed to what the ledger learns of it, and what the remembered makes of its verdict."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from recovery_api.domain.frontiers import SINGLE_LANE, coordinate_as_row
from recovery_api.domain.ledger.lanes import Unseen, base_lost, lane_learn, unseen_find
from recovery_api.domain.ledger.words import ItemWord
from recovery_api.models import Pipeline
from recovery_api.services.ledger import Learnt, LearntItem
from workers.evidence.read import Evidence, LaneEvidence
from workers.evidence.schemas import ITEM
from workers.evidence.store import ITEMS, object_open

IN_FULL = "An audit in full, by name, takes what is there now as the new base: manage.py audit PIPELINE --full."


def ledger_doubts(found: Evidence, lane: LaneEvidence) -> tuple[str, ...]:
    """Why no success may be said of a lane, whatever its counts: the remembered base is gone, or something was never seen."""
    if lane.found is None or found.opened is None:
        return ()
    said = []
    lost = base_lost(lane.known, lane.found)
    if lost is not None and not found.opened.ledger.is_rebased:
        said.append(f"{lost} {IN_FULL}")
    if (unseen := unseen_find(lane.known, lane.found)) is not None:
        said.append(unseen_says(found, lane, unseen))
    return tuple(said)


def unseen_says(found: Evidence, lane: LaneEvidence, unseen: Unseen) -> str:
    """What was never verified, and what can be done about it.

    A first number that was rolled back and a first row that was committed and deleted leave the same: no row. An audit
    that saw the table empty before cannot tell them apart either, since a row may have come and gone after it.
    """
    below, name = found.spell(unseen.below), lane.reading.lane
    is_single = name == SINGLE_LANE
    unknown, named = ("Unknown", "") if is_single else (f"In lane {name}: unknown", f" --lane {shlex.quote(name)}")
    decide = f"manage.py ledger nothing-owed-below PIPELINE {below}{named} --reason TEXT."
    first = lane.found.first_number if lane.found is not None else None
    if unseen.above is None and first is not None:
        return (
            f"{unknown} below {below}: numbers begin at {first:,}, and the oldest row is {below}. Either the transactions that "
            f"took the numbers in between were rolled back, as a first one that fails in a new table often is, or their rows "
            f"were deleted before any audit saw them. Nothing shows which. If you know that no event was deleted there, "
            f"say so, once: {decide}"
        )
    above = f"above {found.spell(unseen.above)} and below {below}" if unseen.above else f"below {below}"
    return (
        f"{unknown} {above}: the source's rows there were gone before any audit saw them, so nothing shows what was committed "
        f"and whether it arrived. Somebody who knows decides: {decide}"
    )


def decided_given(lane: LaneEvidence) -> tuple[str, ...]:
    """That somebody decided that nothing is owed where nobody saw anything, as *given …* goes on."""
    return (lane.known.decided,) if lane.known is not None and lane.known.decided else ()


def is_seen_below(lane: LaneEvidence) -> bool:
    """Whether earlier audits saw everything below the floor of this reading. Only where the record shows who admitted an
    entry: another may have been put back to an earlier state since, and shows nothing of what it lost there."""
    known, floor = lane.known, lane.reading.floor
    if known is None or lane.found is None or floor is None or known.frontier is None or known.admitted_below is None:
        return False
    return floor <= known.frontier and unseen_find(known, lane.found) is None


def ledger_row(found: Evidence, lane: LaneEvidence) -> dict[str, Any] | None:
    """What is remembered of the lane, for the audit's row. None: nothing is, as of a record that knows only ids."""
    if lane.found is None:
        return None
    unseen = unseen_find(lane.known, lane.found)
    return {
        "content_gone": str(lane.counts.lost_remembered),
        "justified_earlier": str(lane.counts.justified_earlier),
        "unjustifiable": str(lane.found.unjustifiable),
        "unknown_below": found.spell(unseen.below) if unseen else None,
        "unknown_below_row": coordinate_as_row(unseen.below) if unseen else None,
    }


def ledger_learn(pipeline: Pipeline, found: Evidence, givens: Mapping[str, tuple[str, ...]]) -> Learnt | None:
    """What the ledger learns of `found`. None: nothing, because an end could not be read whole, or is known by ids alone."""
    opened = found.opened
    if opened is None or not (found.source_reading.is_complete and found.sink_reading.is_complete):
        return None
    lanes = {}
    for lane, one in found.lanes.items():
        if one.found is None or (one.reading.safe.coordinate is None and one.reading.head is not None):
            return None
        is_shallow = one.known is not None and one.known.frontier is not None and one.frontier < one.known.frontier
        if is_shallow and one.known is not None and not one.known.is_whole:
            return None  # it would forget what lies above it and is kept with an earlier evidence alone
        told = replace(one.found, givens=givens[lane], evidence=found.stored.uri if one.found.unjustifiable else "")
        lanes[lane] = lane_learn(one.known, told, is_rebased=opened.ledger.is_rebased)
    return Learnt(epoch=opened.epoch, token=opened.ledger.token, lanes=lanes, items=_items(found))


def _items(found: Evidence) -> Iterator[LearntItem]:
    """The open items of the evidence, and those that were settled, as the ledger keeps them as rows."""
    for part in found.stored.of(ITEMS):
        for batch in object_open(found.stored.url, part).iter_batches(batch_size=10_000, columns=ITEM.names):
            for row in batch.to_pylist():
                if row["word"] == ItemWord.UNJUSTIFIABLE:
                    continue
                question = found.spec.questions.get(row["lane"])
                is_scoped = question is not None and question.scope is not None
                yield LearntItem(
                    lane=row["lane"],
                    position=row["position"],
                    ordinal=row["ordinal"],
                    word=row["word"],
                    cause=row["cause"] or "",
                    digest=row["digest"] or b"",
                    other_digest=row["other_digest"],
                    entry=row["entry"],
                    copies=row["copies"],
                    event_id=row["event_id"],
                    key=row["key"] if is_scoped else None,
                    shown_key=row["key"],
                    committed_at=row["committed_at"],
                    is_acknowledged=bool(row["is_acknowledged"]),
                    is_content_gone=bool(row["is_content_gone"]),
                    settled_by=row["settled_by"] or "",
                )
