"""Reading both ends in the right order, and what that shows at a frontier.

The order is THEORY section 2's: the frontier is pinned first, the record's snapshot opened second, the source's last.
So what is lost was committed before the record was read, and what is premature has no commit even afterwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format
from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.identity import Identity
from recovery_api.domain.ledger.blocks import ROWS_A_BLOCK, fingerprint_join
from recovery_api.domain.ledger.following import Known
from recovery_api.domain.ledger.lanes import LaneFound, LaneKnown
from recovery_api.domain.schedules import PinnedLane
from recovery_api.domain.verdicts import LaneCounts
from workers.connectors.readings import CursorReading, LaneReading, Reading, SafeFrontier, Width
from workers.evidence.archive.looking import Archive, told_sum
from workers.evidence.canonical import batch_digest_add
from workers.evidence.cutting import RANGES_LEAST
from workers.evidence.duplicates import Generations, generations_read
from workers.evidence.grounds import (
    Earlier,
    Late,
    Remembered,
    late_find,
    pinned_apply,
    written_since,
)
from workers.evidence.increment import Followed
from workers.evidence.judging import ends_judge
from workers.evidence.kernel import LaneQuestion, fold
from workers.evidence.known import Ledger, Opened, lane_found, ledger_open
from workers.evidence.pinning import AFTER_EVERYTHING, BEFORE_EVERYTHING, Pinned, pin, refuse_below_floor
from workers.evidence.ranges import EndSpec, MeetSpec
from workers.faults import Point, crash_point
from workers.spark.on_demand import OnDemand


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Certified:
    """An earlier audit's word for one lane: its frontier, the record's last entry then (None: not known), its givens."""

    frontier: Coordinate
    last_entry: int | None
    given: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What is to be judged. `frontier` empty: each lane at its safe frontier. `generation`: read under that claim.

    `proven`: the safe frontier that a plan found for each lane, at or above `frontier`. What was safe stays safe, so it
    is not asked again; a writer that is open now cannot stop a recovery that was approved before.

    `remembered`: the furthest frontier of each lane that was proven before. `earlier`: the history as an earlier reading
    found it, which this one is compared with. `attested_by`: who gave the owner's word, and when; `ids_attested_by`: the
    same of the word that no event id is used again.

    `acknowledged`, by lane: a table of position and ordinal of what a person took out of the obligation; `approved` is the
    evidence of an approved plan that the batch is compared with. `certified`: up to where an earlier audit found
    every id of a lane, of a record that knows only ids. `ledger`: what earlier audits saw (None: nothing is remembered, and
    nothing is told). `clock`: the one clock that orders readings. `sink` is the record; `delivery` the end that is fired
    into, None: the record itself. `is_followed`: what `known` says that earlier audits judged is not read again where
    nothing came in, and what this one judged can be continued.

    `aged`: an audit by its schedule, which judges each lane at what was pinned a window ago (domain.schedules), as far as
    that is safe now; a lane that is not named, or of another incarnation, is not judged.
    """

    source: EndSpec
    sink: EndSpec
    evidence: str
    frontier: Mapping[str, Coordinate] = field(default_factory=dict)
    proven: Mapping[str, SafeFrontier] = field(default_factory=dict)
    remembered: Mapping[str, Remembered] = field(default_factory=dict)
    earlier: Mapping[str, Earlier] = field(default_factory=dict)
    attested_by: str = ""
    ids_attested_by: str = ""
    scope: tuple[str, ...] | None = None
    acknowledged: Mapping[str, pa.Table] = field(default_factory=dict)
    certified: Mapping[str, Certified] = field(default_factory=dict)
    aged: Mapping[str, PinnedLane] | None = None
    width: Width = Width.PAYLOAD
    ranges_least: int = RANGES_LEAST
    generation: int | None = None
    approved: Stored | None = None
    excluded: pa.Table | None = None
    is_followed: bool = False
    known: Known | None = None
    block_rows: int = ROWS_A_BLOCK
    ledger: Ledger | None = None
    clock: Callable[[], datetime] = _utc_now
    delivery: EndSpec | None = None
    archive: Archive | None = None
    """Where contents are looked for that the source does not hold any more. None: nowhere."""


@dataclass(frozen=True, slots=True)
class LaneEvidence:
    """One lane as judged: where, on which ground, and the kernel's folded counts.

    `stranded`: events in scope above the frontier that the record does not hold: what a raised fence may reject. `late`:
    rows that came in at or below the frontier after it was taken to be safe. `waiting`: the lowest event that was not
    accepted, at the frontier or above; of a record that knows only ids, at the frontier alone. `known`: what earlier
    audits saw of it; `found`: what the ledger may learn (None: nothing).
    """

    lane: str
    frontier: Coordinate
    reading: LaneReading
    counts: LaneCounts
    fingerprint: Mapping[str, int]
    stranded: int
    late: Late | None = None
    waiting: Coordinate | None = None
    known: LaneKnown | None = None
    found: LaneFound | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """The share of the batch that one evidence part holds."""

    part: int
    lane: str
    count: int
    digest: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one pair of readings showed. `pieces`: each evidence part that holds any of the batch, in order.

    `cursors`: what the relay had recorded of each lane before anything else was read, so that what is lost at or below it
    was passed over and is not merely on its way. `duplicated_in`: in which generations the first repeated payloads were
    accepted, where the record says so. `record_read_at`: just before the record's snapshot was opened: whatever was
    accepted by then is in it, and of two readings the later one holds all that the earlier one held. `sink_release`
    ends the record's snapshot before the source's: nobody can read in it afterwards. `identity`: the record knows only
    ids, and how they were compared. `opened`: the ledger as this reading had it; `items_open`: how many items it found.
    """

    source_reading: Reading
    sink_reading: Reading
    lanes: Mapping[str, LaneEvidence]
    batch_count: int
    batch_digest: str
    findings_count: int
    spelling: Spelling
    approval: Mapping[str, int] | None
    spec: MeetSpec
    pieces: tuple[Piece, ...]
    duplicated_in: Generations = field(default_factory=dict)
    cursors: Mapping[str, CursorReading] = field(default_factory=dict)
    certified: Mapping[str, Certified] = field(default_factory=dict)
    opened: Opened | None = None
    items_open: int = 0
    identity: Identity | None = None
    ids_attested_by: str = ""
    record_read_at: datetime = field(default_factory=_utc_now)
    followed: Followed | None = None
    unarchived: Mapping[str, int] = field(default_factory=dict)
    """By domain.archives.Unusable: how many lost events are gone at the source and cannot be sent from the archive."""
    sink_release: Callable[[], None] = field(default=lambda: None)

    @property
    def stored(self) -> Stored:
        """Where the findings lie, and what was written of them."""
        return self.spec.stored

    def spell(self, coordinate: Coordinate) -> str:
        if coordinate == BEFORE_EVERYTHING:
            return "before every commit"
        return coordinate_format(coordinate, self.spelling)


@contextmanager
def evidence_read(session: Any, request: AuditRequest, progress: Callable[..., None]) -> Iterator[Evidence]:
    """Both ends judged by one Spark job; their snapshots stay open, for reading content, until the manager closes.

    Raises: FrontierRefused; whatever a connector or a task raised.
    """
    source, sink = request.source.source(), request.sink.record()
    cursors = source.cursors()
    with ExitStack() as held, ExitStack() as held_at_sink:
        pinned = Pinned(request.proven, {}, None, {})
        if not request.proven:
            pinned = pin(request, source, progress, held)
        crash_point(Point.FRONTIER_PINNED)
        record_read_at = request.clock()
        sink_reading = held_at_sink.enter_context(sink.hold_snapshot(generation=request.generation))
        source_reading = held.enter_context(source.hold_snapshot())
        if request.archive is not None:  # by what the source says of itself now, whatever a plan pinned
            request = replace(request, archive=request.archive.opened(source_reading))
        source_reading = pinned_apply(source_reading, pinned.safe, not request.proven, pinned.own)
        source_reading = replace(source_reading, handle={**source_reading.handle, "pinned": pinned.handle})
        if request.proven:
            for lane, reading in source_reading.lanes.items():
                asked = request.frontier.get(lane, BEFORE_EVERYTHING)
                refuse_below_floor(reading, asked, source.spelling)
        opened = None
        if sink_reading.ids is not None:
            source_reading = replace(
                source_reading, is_complete=source_reading.is_complete and not source_reading.rows_go
            )
        elif request.ledger is not None:
            opened = ledger_open(request.ledger, source_reading)
        frontier = pinned.frontiers or {
            lane: request.frontier.get(lane, BEFORE_EVERYTHING) for lane in source_reading.lanes
        }
        questions = {
            lane: _question(request, lane, frontier, source_reading, opened)
            for lane in _all_lanes(source_reading, sink_reading, opened)
        }
        judge = functools.partial(
            ends_judge, request, source, (source_reading, sink_reading), questions, progress, opened, record_read_at
        )
        if isinstance(session, OnDemand):
            spec, summaries, identity, followed = session.judged((source_reading, sink_reading), judge)
        else:
            spec, summaries, identity, followed = judge(session, None)
        has_duplicates = any(summary["counts"].get("duplicate_payloads") for summary in summaries)
        duplicated_in = generations_read(sink, spec) if has_duplicates and identity is None else {}
        written = functools.partial(written_since, source, source_reading, spec.stored)
        yield replace(
            _evidence(spec, request, summaries, source.spelling, written, opened),
            duplicated_in=duplicated_in,
            cursors=cursors,
            certified=request.certified,
            identity=identity,
            ids_attested_by=request.ids_attested_by,
            record_read_at=record_read_at,
            followed=followed,
            sink_release=held_at_sink.close,
        )


def _all_lanes(source: Reading, sink: Reading, opened: Opened | None) -> list[str]:
    """Those of the source, those that only the record has, and those of which only the ledger remembers anything."""
    return list(dict.fromkeys([*source.lanes, *sink.lanes, *(opened.item_lanes() if opened else [])]))


def _question(
    request: AuditRequest,
    lane: str,
    frontier: Mapping[str, Coordinate],
    source_reading: Reading,
    opened: Opened | None,
) -> LaneQuestion:
    reading = source_reading.lanes.get(lane)
    known = opened.lanes.get(lane) if opened else None
    f = frontier.get(lane, BEFORE_EVERYTHING)
    if reading is None and known is not None and known.frontier is not None:
        f = known.frontier
    heads = [one for one in (reading.head if reading else None, known.head if known else None) if one is not None]
    is_head_known = reading is not None and source_reading.is_complete and not source_reading.rows_go
    return LaneQuestion(
        lane=lane,
        frontier=f,
        journal_head=max(heads, default=None) if is_head_known else None,
        floor=_floor(reading),
        scope=None if request.scope is None else pa.array(request.scope, pa.string()),
        acknowledged=request.acknowledged.get(lane),
        has_journal=False,
        is_history_whole=source_reading.is_complete,
        rows_go=source_reading.rows_go,
        admitted_below=opened.seen_below(lane) if opened else None,
    )


def _floor(reading: LaneReading | None) -> Coordinate | None:
    """Below what the source holds now nothing can justify an acceptance: it may have been dropped, or never been.

    A source that says nothing of a floor is taken to have dropped nothing, until the record shows an older entry.
    """
    if reading is None:
        return None
    return reading.floor or reading.lowest or AFTER_EVERYTHING


def _evidence(
    spec: MeetSpec,
    request: AuditRequest,
    summaries: list[dict[str, Any]],
    spelling: Spelling,
    written: Any,
    opened: Opened | None,
) -> Evidence:
    lanes = {}
    weaknesses = list(spec.source_reading.weaknesses)
    for lane in spec.questions:
        mine = [summary for summary in summaries if summary["lane"] == lane]
        reading = spec.source_reading.lanes.get(lane) or _no_lane(lane)
        f, earlier = spec.questions[lane].frontier, request.earlier.get(lane)
        at_earlier = fingerprint_join(*(summary["earlier"] for summary in mine if "earlier" in summary))
        late = late_find(reading, f, mine, earlier, at_earlier, spelling, written)
        if late is not None:
            reading = replace(reading, safe=reading.safe.unproven(late.says))
            weaknesses.append(str(reading.safe.weakness))
        lanes[lane] = LaneEvidence(
            lane,
            f,
            reading,
            replace(fold(summary["counts"] for summary in mine), lost_archived=told_sum(mine)[0]),
            fingerprint_join(*(summary["history"] for summary in mine)),
            sum(summary["stranded"] for summary in mine),
            late,
            min((Coordinate(*one["waiting"]) for one in mine if one.get("waiting")), default=None),
            _lane_known(opened, lane, late) if opened else None,
            _lane_found(spec, opened, reading, f, mine) if opened else None,
        )
    judged = {lane: lanes[lane].reading for lane in spec.source_reading.lanes}
    source_reading = replace(spec.source_reading, lanes=judged, weaknesses=tuple(dict.fromkeys(weaknesses)))
    approvals = [summary["approval"] for summary in summaries if "approval" in summary]
    return Evidence(
        source_reading=source_reading,
        sink_reading=spec.sink_reading,
        lanes=lanes,
        batch_count=sum(summary["batch_count"] for summary in summaries),
        batch_digest=batch_digest_add(*(summary["batch_digest"] for summary in summaries)),
        findings_count=sum(summary["findings"] for summary in summaries),
        spelling=spelling,
        approval=_sum_by_name(approvals) if approvals else None,
        spec=spec,
        pieces=tuple(
            Piece(index, summary["lane"], summary["batch_count"], summary["batch_digest"])
            for index, summary in enumerate(summaries)
            if summary["batch_count"]
        ),
        opened=opened,
        unarchived=told_sum(summaries)[1],
        items_open=sum(summary["ledger"]["open"] for summary in summaries if "ledger" in summary),
    )


def _lane_known(opened: Opened, lane: str, late: Late | None) -> LaneKnown | None:
    """What is remembered of the lane. After a late row it is not known how far its history was seen."""
    known = opened.lanes.get(lane)
    return replace(known, frontier=None) if known is not None and late is not None else known


def _lane_found(
    spec: MeetSpec, opened: Opened, reading: LaneReading, frontier: Coordinate, mine: list[dict[str, Any]]
) -> LaneFound:
    prefix, then = (
        fingerprint_join(*(summary[name] for summary in mine if name in summary)) for name in ("prefix", "prefix_then")
    )
    found = lane_found(reading, frontier, spec.source_reading, spec.sink_reading, opened, prefix, then)
    return replace(found, unjustifiable=sum(summary["ledger"]["unjustifiable"] for summary in mine))


def _no_lane(lane: str) -> LaneReading:
    return LaneReading(lane, None, None, None, SafeFrontier(None, "no such lane", "The source has no such lane."))


def _sum_by_name(rows: list[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for row in rows:
        for name, value in row.items():
            total[name] = total.get(name, 0) + value
    return total
