"""What an audit need not read again: the blocks of earlier audits that nothing was accepted into, and nobody asked to see.

The law: an incremental audit says what a full one would. Wherever that is not certain (the record cannot be followed, an
end is another, the source dropped rows, a block is not what it was) everything is read, and the audit says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import EvidenceGone
from recovery_api.domain.evidence_places import Stored, stored_make
from recovery_api.domain.ledger.blocks import (
    ROUND,
    Block,
    Fingerprint,
    block_join,
    blocks_close,
    blocks_due,
    coordinate_after,
    fingerprint_join,
)
from recovery_api.domain.ledger.following import Increment, Known, LaneBlocks
from recovery_api.domain.ledger.lanes import LaneKnown
from workers.connectors.protocols.record import FollowedRecord, Record
from workers.connectors.readings import LaneReading
from workers.evidence import schemas
from workers.evidence.archive.looking import archive_look_again
from workers.evidence.batch import batch_rows, rows_digest
from workers.evidence.blocks import BEFORE_EVERYTHING, block_from_row
from workers.evidence.kernel import LaneQuestion
from workers.evidence.moved import acknowledged_digest, omitted_find, purged_find
from workers.evidence.newly import ABOVE, Whole, new_entries
from workers.evidence.ranges import MeetSpec, ranges_judge
from workers.evidence.segments import Reach, Segment, changed_find, opened_find, segments_find
from workers.evidence.store import FINDINGS, ITEMS, objects_in, part_write, range_filter, rows_read
from workers.spark.on_demand import fewer_run

CELLS = 2048
"""How finely a lane is looked at to tell how many of its rows lie above what was judged."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What an audit that follows an earlier one read. `reach.because`: why it read everything, a sentence; "" where it
    did not. `learned`: what the next one may continue; None: nothing."""

    spec: MeetSpec
    summaries: list[dict[str, Any]]
    reach: Reach
    learned: Known | None


def followed_judge(
    session: Any,
    spec: MeetSpec,
    before: tuple[Known | None, Mapping[str, LaneKnown] | None],
    sink: Record,
    now: datetime,
    block_rows: int,
) -> Followed:
    """Both ends judged over `spec.ranges`, which cover every lane, as far as earlier audits have not judged them.

    `before`: what earlier audits judged, and what the ledger knows of each lane (None: there is none).

    Raises: the first error that a task met, as itself.
    """
    known, lanes = before
    spec = replace(spec, block_rows=0 if spec.sink_reading.following.problem else block_rows)
    reach = reach_find(known, sink, spec, now, lanes)
    chosen, summaries = spec, None
    if known is not None and not reach.because:
        chosen = replace(spec, ranges=tuple(segment.range_ for segment in reach.segments))
        try:
            summaries = _judged(session, chosen, known, reach, now, lanes or {})
        except Whole as because:
            chosen, reach = spec, Reach(tuple(map(Segment, spec.ranges)), str(because))
    if summaries is None:
        summaries = ranges_judge(session, chosen)
    return Followed(chosen, summaries, reach, _learn(known, reach, summaries, chosen, now))


def _judged(
    session: Any, spec: MeetSpec, known: Known, reach: Reach, now: datetime, lanes: Mapping[str, LaneKnown]
) -> list[dict[str, Any]]:
    found = kept_summaries(spec, known, reach.segments)
    wanted = [place for place in range(len(reach.segments)) if place not in found]

    def judge(engine: Any, most_rows: int | None) -> list[dict[str, Any]]:
        return ranges_judge(engine, replace(spec, most_rows=most_rows or spec.most_rows), wanted)

    found |= zip(wanted, fewer_run(session, rows_estimated(spec, reach), judge), strict=True)
    summaries = [found[place] for place in range(len(reach.segments))]
    if changed := changed_find(reach, summaries, now, spec.source.source().spelling):
        raise Whole(changed)
    for lane in {summary["lane"] for summary in summaries} & lanes.keys() & known.lanes.keys():
        first, *others = [summary for summary in summaries if summary["lane"] == lane]
        for summary in others:
            summary.pop("prefix", None), summary.pop("prefix_then", None)
        first["prefix_then"] = dict(lanes[lane].prefix)  # as it was: what was seen before is not counted again here
        first["prefix"] = fingerprint_join(lanes[lane].prefix, reach.older.get(lane, {}))
    return summaries


def rows_estimated(spec: MeetSpec, reach: Reach) -> int:
    """About how many rows of each end the stretches hold that are to be read: blocks know theirs, and what lies above them
    is told by the share of the lane's equal ranges that begin there."""
    source, rows = spec.source.source(), reach.new.get("count", 0)
    for segment in reach.segments:
        if segment.again is not None:
            rows += segment.again.rows
        elif not segment.kept and segment.range_.lane in spec.source_reading.lanes:
            lane, low, high = segment.range_.lane, segment.range_.low, segment.range_.high
            equal = source.split(spec.source_reading, lane, CELLS)
            lows = [one.low for one in equal if one.low is not None]
            inside = [one for one in lows if (low is None or one >= low) and (high is None or one < high)]
            rows += spec.source_reading.lanes[lane].estimated_rows * (len(inside) + 1) // len(equal)
    return rows


def reach_find(
    known: Known | None,
    sink: Record,
    spec: MeetSpec,
    now: datetime,
    lanes: Mapping[str, LaneKnown] | None = None,
) -> Reach:
    """Which ranges are to be read and which blocks stand.

    Raises: SnapshotLost and what else the record's reading raises.
    """
    source_reading, sink_reading, whole = spec.source_reading, spec.sink_reading, spec.ranges
    everything = tuple(map(Segment, whole))
    if sink_reading.following.problem:
        return Reach(everything, sink_reading.following.problem)
    if known is None:
        return Reach(everything, "No earlier audit is remembered that could be continued.")
    try:
        for lane in known.lanes:
            reading, asked = source_reading.lanes.get(lane), spec.questions.get(lane)
            _same_or_whole(known.lanes[lane], reading, asked, spec.earlier.get(lane))
            if lanes is not None and (lane not in lanes or lanes[lane].frontier is None):
                raise Whole("What earlier audits saw was voided, by a restore or by a row that came in late.")
        if not (source_reading.is_complete and sink_reading.is_complete):
            raise Whole("An end could not be read whole.")
        if source_reading.rows_go:
            raise Whole("The source drops rows once they are delivered, wherever they lie.")
        assert isinstance(sink, FollowedRecord)
        new, older, came = new_entries(known, sink, spec)
        segments: list[Segment] = []
        above: dict[str, Fingerprint] = {}
        opened, derived, kept = 0, 0, []
        for lane in dict.fromkeys(range_.lane for range_ in whole):
            mine = [range_ for range_ in whole if range_.lane == lane]
            if lane not in known.lanes:
                segments += [Segment(range_) for range_ in mine]
                continue
            held = known.lanes[lane]
            entered = dict(came.get(lane, {}))
            entered_above = entered.pop(ABOVE, {})
            if held.above is not None:
                above[lane] = fingerprint_join(held.above, entered_above)
            purged = purged_find(held, source_reading.lanes[lane])
            open_ = opened_find(held, spec.block_rows // 2) | entered.keys()
            open_ |= purged | omitted_find(held, spec.questions[lane])
            due = blocks_due(held.blocks, now, known.read_at, known.promised)
            opened, derived = opened + len(open_), derived + len(due - open_)
            segments += segments_find(lane, held, open_ | due, entered, purged, mine)
            kept += [block.derived_at for place, block in enumerate(held.blocks) if place not in open_ | due]
    except Whole as because:
        return Reach(everything, str(because))
    oldest = min(kept, default=None)
    return Reach(tuple(segments), "", new, older, opened, derived, oldest, known.read_at, above)


def kept_summaries(spec: MeetSpec, known: Known, segments: Sequence[Segment]) -> dict[int, dict[str, Any]]:
    """By place the summary of each stretch that was kept, as if it had been judged now; its findings are written again.

    Raises: Whole where the evidence of what was found there is gone.
    """
    found: dict[int, dict[str, Any]] = {}
    for place, segment in enumerate(segments):
        if not segment.kept:
            continue
        block = block_join(segment.kept)
        findings = _kept_rows(known.stored, FINDINGS, schemas.FINDING, segment, block)
        findings, archived, unarchived = archive_look_again(spec.archive, segment.range_.lane, findings)
        written = part_write(spec.evidence, FINDINGS, place, findings)
        batch = batch_rows(findings, spec.excluded)
        found[place] = {
            "lane": segment.range_.lane,
            "counts": dict(block.counts),
            "findings": findings.num_rows,
            "batch_count": batch.num_rows,
            "batch_digest": rows_digest(batch),
            "history": dict(block.committed),
            "stranded": 0,
            "waiting": _lowest_owed(findings),
            "earlier": dict(block.committed),
            "archived": archived,
            "unarchived": unarchived,
        }
        if segment.range_.lane not in spec.earlier:
            del found[place]["earlier"]
        if spec.has_ledger:  # what could not be justified is judged anew each time, so none of it is here
            open_ = _kept_rows(known.stored, ITEMS, schemas.ITEM, segment, block)
            written += part_write(spec.evidence, ITEMS, place, open_)
            found[place]["ledger"] = {"open": open_.num_rows, "unjustifiable": 0}
        found[place]["written"] = [one.as_row() for one in written]
    return found


def _lowest_owed(findings: pa.Table) -> tuple[int, int] | None:
    """The lowest coordinate that is lost and that nobody acknowledged; None: there is none. It waits in a kept block, too."""
    owed = findings.filter(pc.and_(pc.equal(findings["finding"], "lost"), pc.invert(findings["is_acknowledged"])))
    places = zip(owed["position"].to_pylist(), owed["ordinal"].to_pylist(), strict=True)
    return min(places, default=None)


def _kept_rows(stored: Stored | None, sort: str, schema: pa.Schema, segment: Segment, block: Block) -> pa.Table:
    """What an earlier audit wrote of the stretch that is open still: one row a finding. Raises: Whole where it is gone."""
    rows = schema.empty_table()
    if block.findings and stored is not None:
        wanted = range_filter(segment.range_)
        if "settled_by" in schema.names:
            wanted &= ds.field("settled_by").is_null()
        try:
            rows = rows_read(stored, objects_in(stored.of(sort), segment.range_), schema, wanted=wanted)
        except EvidenceGone:
            rows = schema.empty_table()
    if rows.num_rows != block.findings:
        raise Whole("The evidence of an earlier audit, which holds what is still owed, is gone or was changed.")
    return rows


def _learn(
    known: Known | None,
    reach: Reach,
    summaries: Sequence[Mapping[str, Any]],
    spec: MeetSpec,
    now: datetime,
) -> Known | None:
    """What the next audit may continue; None where the record cannot be followed, or an end was not read whole."""
    following = spec.sink_reading.following
    if following.problem or not (spec.source_reading.is_complete and spec.sink_reading.is_complete):
        return None
    lanes: dict[str, LaneBlocks] = {}
    for lane, reading in spec.source_reading.lanes.items():
        blocks: list[Block] = []
        for segment, summary in zip(reach.segments, summaries, strict=True):
            if segment.range_.lane == lane:
                blocks += segment.kept or [block_from_row(row, now) for row in summary["blocks"]]
        asked = spec.questions[lane]
        is_judged = asked.frontier > BEFORE_EVERYTHING and bool(blocks)
        if is_judged and reading.safe.incarnation and blocks[-1].high == coordinate_after(asked.frontier):
            closed, omitted = tuple(blocks_close(blocks, spec.block_rows)), acknowledged_digest(asked)
            above = [summary["above"] for summary in summaries if summary["lane"] == lane and "above" in summary]
            here = (reading.lowest, reading.floor, omitted, reading.safe.incarnation, fingerprint_join(*above))
            lanes[lane] = LaneBlocks(asked.frontier, closed, *here)
    increment = known.increment if known is not None and not reach.because else None
    if known is not None and reach.new.get("count"):
        increment = Increment(known.snapshot, reach.new)
    stored = stored_make(spec.evidence, (row for summary in summaries for row in summary["written"]))
    promised = known.promised if known else ROUND
    return Known(following.snapshot, stored.uri, now, lanes, increment, promised, stored)


def _same_or_whole(
    held: LaneBlocks, reading: LaneReading | None, asked: LaneQuestion | None, earlier: Coordinate | None
) -> None:
    if reading is None or asked is None or reading.safe.incarnation != held.incarnation:
        raise Whole("The source is another server, timeline or table than an earlier audit read.")
    if asked.frontier < held.frontier or (earlier is not None and earlier < held.frontier):
        raise Whole("It is asked at a frontier below the one that an earlier audit judged.")
