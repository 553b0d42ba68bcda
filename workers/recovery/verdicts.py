"""From what one pair of readings showed to what may be said of it, and the rows that record it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from recovery_api.domain import verdicts
from recovery_api.domain.archives import unusable_says
from recovery_api.domain.conditions import UndisciplinedPath, undisciplined_weaknesses
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import coordinate_as_row, frontier_as_row
from recovery_api.domain.grounds import Standing
from recovery_api.domain.kinds import Retention, gaps_of, retention_of
from recovery_api.domain.statuses import given_says
from recovery_api.domain.verdicts import LANES_SAID, Below, LaneCounts, Total, Verdict, verdict_total
from recovery_api.models import Audit, Intent, Pipeline, Plan, Recovery
from recovery_api.selectors.clock import now_get
from recovery_api.services.audits import FINDINGS_PAGE, audit_record
from recovery_api.services.grounds import ground_refute
from recovery_api.services.omissions import omissions_accepted
from workers.connectors.readings import LaneReading, SafeFrontier
from workers.evidence.acknowledged import acknowledged_read
from workers.evidence.read import Evidence, LaneEvidence
from workers.evidence.store import FINDINGS, object_open
from workers.recovery.archiving import Archived, archived_lane_says, archived_row
from workers.recovery.cursors import cursor_row
from workers.recovery.following import reach_says
from workers.recovery.ledger import decided_given, is_seen_below, ledger_doubts, ledger_learn, ledger_row
from workers.recovery.listing import groups_make, listing_rows
from workers.recovery.pinning import pin_of_evidence, waiting_of


def lane_verdicts(found: Evidence, attested: Sequence[str] = ()) -> dict[str, Verdict]:
    """The verdict of each lane, with its ground and its weaknesses. `attested`: what each rests on beside its ground."""
    return {lane: _lane_verdict(found, lane_found, attested) for lane, lane_found in found.lanes.items()}


def total_says(total: Total) -> list[str]:
    """The verdict's sentences; of what is unknown, why."""
    return [*total.says, *total.unknown_because]


def audit_write(
    pipeline: Pipeline,
    found: Evidence,
    *,
    started_at: datetime,
    is_full: bool,
    paths: Sequence[UndisciplinedPath] = (),
    intent: Intent | None = None,
    recovery: Recovery | None = None,
    but: Plan | None = None,
    attested: Sequence[str] = (),
    archived: Archived | None = None,
    ends: Mapping[str, Any] | None = None,
) -> Audit:
    """The audit of `found`, recorded: verdict, positions, counts and evidence in one transaction.

    `paths`: the ways into record or target that pass admission by, as the sink names them. `but`: the plan that this
    reading was made for, which late rows do not void. `attested`: what a verdict of a recovery without a fence rests on.
    `archived`: what of it came to the archive; None: the pipeline has none. `ends`: what they showed of themselves.
    """
    judged = lane_verdicts(found, attested)
    total = verdict_total(judged)
    is_scheduled = bool(intent and intent.arguments.get("is_scheduled"))
    counts = [verdict.counts for verdict in judged.values()]
    late_refute(pipeline, found, but)
    _accepted_tell(pipeline, found)
    return audit_record(
        pipeline,
        status=total.status,
        exit_code=total.exit_code,
        now=now_get(),
        started_at=started_at,
        record_read_at=found.record_read_at,
        is_full=is_full,
        says=" ".join(
            [
                *total_says(total),
                *late_says(found),
                *_duplicates_says(found),
                *_gaps_says(found),
                *_above_says(found, is_scheduled),
                *([unusable] if (unusable := unusable_says(found.unarchived)) else []),
                *(archived_lane_says(found, archived) if archived else []),
            ]
        ),
        givens=list(total.given),
        intent=intent,
        recovery=recovery,
        generation=recovery.generation if recovery else None,
        findings=findings_page(found),
        groups=groups_make(found),
        listing=listing_rows(found),
        frontier=frontier_as_row({lane: one.frontier for lane, one in found.lanes.items()}),
        lanes={
            lane: {**lane_row(found, found.lanes[lane], verdict), "archive": archived_row(found, archived, lane)}
            for lane, verdict in judged.items()
        },
        lost_count=sum(one.lost_of[0] for one in counts),
        premature_count=sum(one.premature for one in counts),
        duplicate_count=sum(one.duplicate_payloads for one in counts),
        acknowledged_count=sum(one.acknowledged + one.absent_acknowledged for one in counts),
        obligation_count=sum(one.lost_of[1] for one in counts),
        accepted_count=sum(one.accepted_rows for one in counts),
        weaknesses=weaknesses(found, judged, paths),
        source_snapshot=found.source_reading.identity,
        sink_snapshot=found.sink_reading.identity,
        matching=next(iter(judged.values())).matching if found.identity else _matching(counts),
        evidence=found.stored,
        evidence_digest=evidence_digest(found),
        evidence_rows=found.findings_count,
        ends_seen=dict(ends or {}),
        verified={"last_entry": _text(found.sink_reading.handle.get("last_entry"))},
        pin=pin_of_evidence(found),
        waiting=waiting_of(found),
        learnt=ledger_learn(pipeline, found, {lane: verdict.given for lane, verdict in judged.items()}),
    )


def _accepted_tell(pipeline: Pipeline, found: Evidence) -> None:
    """What somebody acknowledged and the record holds all the same is marked so."""
    for lane, positions, ordinals in acknowledged_read(found.stored):
        omissions_accepted(pipeline, lane, positions, ordinals, found.record_read_at)


def _matching(counts: Sequence[LaneCounts]) -> str:
    return "by coordinate" if any(one.rows_by_coordinate for one in counts) else "by payload"


def lane_row(found: Evidence, lane: LaneEvidence, verdict: Verdict) -> dict[str, Any]:
    """One lane for the audit's row: what was judged, on which ground, and what came out."""
    safe = lane.reading.safe
    return {
        **verdict.as_row(),
        "frontier": coordinate_as_row(lane.frontier),
        "frontier_says": found.spell(lane.frontier),
        "safe_frontier": {
            "says": found.spell(safe.coordinate) if safe.coordinate else None,
            "ground": safe.ground,
            "because": safe.says,
            "waits_for": list(safe.waits_for),
            "weakness": safe.weakness,
            "standing": safe.standing.value,
            "coordinate": coordinate_as_row(safe.coordinate) if safe.coordinate else None,
            "catalogue": safe.catalogue,
            "incarnation": safe.incarnation,
        },
        "source_xmin": found.source_reading.handle.get("xmin"),
        "late": lane.late.says if lane.late else None,
        "head_says": found.spell(lane.reading.head) if lane.reading.head else None,
        "floor_says": found.spell(lane.reading.floor) if lane.reading.floor else None,
        "lowest_says": found.spell(lane.reading.lowest) if lane.reading.lowest else None,
        "accepted_to_says": _accepted_to(found, lane),
        "cursor": cursor_row(found, lane),
        "history": {name: str(value) for name, value in lane.fingerprint.items()},
        "above_frontier_owed": str(lane.stranded),
        "lost_archived": str(lane.counts.lost_archived),
        "gaps": _text(gap_count(found, lane)),
        "ledger": ledger_row(found, lane),
    }


def findings_page(found: Evidence) -> list[dict[str, Any]]:
    """The first findings, for the screen; the rest lies with the evidence."""
    page: list[dict[str, Any]] = []
    for part in found.stored.of(FINDINGS):
        if len(page) >= FINDINGS_PAGE:
            break
        for batch in object_open(found.stored.url, part).iter_batches(batch_size=FINDINGS_PAGE):
            page += [_finding_row(found, row) for row in batch.slice(0, FINDINGS_PAGE - len(page)).to_pylist()]
            break
    return page


def evidence_digest(found: Evidence) -> str:
    """A digest of everything the verdict rests on: snapshots, counts, the batch and the history's fingerprint."""
    bound = {
        "source": found.source_reading.identity,
        "sink": found.sink_reading.identity,
        "lanes": {
            lane: {
                "frontier": coordinate_as_row(one.frontier),
                "history": {name: str(value) for name, value in one.fingerprint.items()},
                "counts": repr(one.counts),
            }
            for lane, one in found.lanes.items()
        },
        "batch": [str(found.batch_count), found.batch_digest],
    }
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()


def weaknesses(found: Evidence, judged: Mapping[str, Verdict], paths: Sequence[UndisciplinedPath] = ()) -> list[str]:
    """Every assumption the verdict makes, once; what can pass the sink's fence (C1) among them."""
    said = [*found.source_reading.weaknesses, *found.sink_reading.weaknesses, *undisciplined_weaknesses(paths)]
    for verdict in judged.values():
        said += verdict.weaknesses
    return list(dict.fromkeys(said))


def _lane_verdict(found: Evidence, lane: LaneEvidence, attested: Sequence[str]) -> Verdict:
    safe = lane.reading.safe
    below, certified_given = _below(found, lane)
    return verdicts.verdict_make(
        lane.lane,
        found.spell(lane.frontier),
        lane.counts,
        verdicts.Evidence(
            below=below,
            unread=_unread(found, lane.reading),
            doubts=_doubts(found, lane) + ledger_doubts(found, lane),
            given=_given(safe) + _given_ids(found) + tuple(attested) + certified_given + decided_given(lane),
            weaknesses=(safe.weakness,) if safe.weakness else (),
            grounds=(
                f"Safe frontier by {safe.ground}: {safe.says}",
                f"Source snapshot {found.source_reading.identity}",
                f"Sink snapshot {found.sink_reading.identity}",
                *reach_says(found),
            ),
            identity=found.identity,
            rows_go=found.source_reading.rows_go and found.identity is None,
        ),
    )


def _below(found: Evidence, lane: LaneEvidence) -> tuple[Below, tuple[str, ...]]:
    """What stands for the history below the floor, and what that is given."""
    if lane.counts.justification_unknown and found.source_reading.is_complete:
        return Below.NOTHING, ()
    if lane.reading.floor is None:
        return Below.NOTHING_DROPPED, ()
    if found.identity is not None:
        certified = found.certified.get(lane.lane)
        is_certified = certified is not None and lane.reading.floor <= certified.frontier
        return (Below.CERTIFIED, certified.given) if is_certified and certified else (Below.NOTHING, ())
    return (Below.CERTIFIED, lane.known.givens) if is_seen_below(lane) and lane.known else (Below.NOTHING, ())


def _given(safe: SafeFrontier) -> tuple[str, ...]:
    """What the safe frontier takes on somebody's word, or assumes, as *given …* goes on. Empty: it is proven."""
    return () if safe.standing is Standing.PROVEN else (given_says(safe.standing, safe.given),)


def _given_ids(found: Evidence) -> tuple[str, ...]:
    """That an id stands for its event for ever is its owner's word: no catalogue shows it."""
    if found.identity is None:
        return ()
    by = f" ({found.ids_attested_by})" if found.ids_attested_by else ""
    return (f"the owner's word that no event id is ever used again{by}",)


def _doubts(found: Evidence, lane: LaneEvidence) -> tuple[str, ...]:
    """A cursor cannot show that anything was delivered; one beyond the newest event shows that events are not seen.

    Where the source purges what was delivered that is its ordinary state.
    """
    cursor = found.cursors.get(lane.lane)
    heads = [one for one in (lane.reading.head, lane.known.head if lane.known else None) if one is not None]
    head = max(heads, default=None)
    is_purged = retention_of(found.spec.source.kind, found.spec.source.options) is not Retention.KEEPS
    if is_purged or cursor is None or cursor.coordinate is None or (head is not None and cursor.coordinate <= head):
        return ()
    newest = f"the newest event ({found.spell(head)})" if head is not None else "every event: the source shows none"
    return (
        f"The relay's cursor ({found.spell(cursor.coordinate)}) lies beyond {newest}. The source no longer shows what "
        "the relay read (a restore, rows deleted), or the cursor is mapped wrongly: look at both before you trust this.",
    )


def _above_says(found: Evidence, is_scheduled: bool) -> list[str]:
    """What lies above the frontier and is not judged yet, and what the frontier waits for."""
    above = sorted((lane for lane in found.lanes.values() if lane.stranded), key=lambda lane: -lane.stranded)
    said = []
    for lane in above[:LANES_SAID]:
        if is_scheduled:
            them = "event that was" if lane.stranded == 1 else "events that were"
            way = "it may be on its way" if lane.stranded == 1 else "they may be on their way"
            said.append(
                f"Suspected above {found.spell(lane.frontier)}: {lane.stranded:,} {them} not accepted yet; {way}."
            )
        else:
            said.append(f"Above {found.spell(lane.frontier)}, not judged: {lane.stranded} not accepted yet.")
    if others := above[LANES_SAID:]:
        said.append(f"In {len(others):,} more lanes {sum(one.stranded for one in others):,} are not accepted yet.")
    waits = [
        f"The safe frontier waits for: {'; '.join(lane.reading.safe.waits_for)}."
        for lane in found.lanes.values()
        if lane.reading.safe.waits_for
    ]
    return said + _few(list(dict.fromkeys(waits)), "wait for something else")


def _few(said: list[str], what: str) -> list[str]:
    """The first sentences, and how many more lanes there are of which the like could be said."""
    more = len(said) - LANES_SAID
    return said if more <= 0 else [*said[:LANES_SAID], f"{more:,} more lanes {what}."]


def late_refute(pipeline: Pipeline, found: Evidence, but: Plan | None = None) -> None:
    """What was concluded before on a ground that late rows refute is void from now on."""
    for lane in found.lanes.values():
        if lane.late:
            lowest = min(lane.late.first, default=None)
            ground_refute(
                pipeline.source, lane.lane, lowest, lane.late.says, actor="worker", now=timezone.now(), but=but
            )


def late_says(found: Evidence) -> list[str]:
    """What came in at or below a frontier after it was taken to be safe."""
    return _few([f"Late: {lane.late.says}." for lane in found.lanes.values() if lane.late], "have late rows")


def _gaps_says(found: Evidence) -> list[str]:
    """How many numbers hold no committed row up to the frontier, and what its kind says that means. As sure as the ground."""
    said = []
    gaps = gaps_of(found.spec.source.kind, found.spec.source.options)
    for lane in found.lanes.values():
        count = gap_count(found, lane)
        if not count or gaps is None:
            continue
        ids = f"{count:,} {'id' if count == 1 else 'ids'} up to {found.spell(lane.frontier)}"
        said.append(f"{ids} {gaps.says(count, lane.reading.safe.standing is Standing.PROVEN)}")
    return _few(said, "have such numbers")


def gap_count(found: Evidence, lane: LaneEvidence) -> int | None:
    """The numbers between the lane's lowest row and its frontier that no committed row has.

    None where that means nothing: coordinates that nothing shows to be drawn one by one, rows the source has dropped, a
    frontier above the safe one, a number used twice. It is as sure as the safe frontier, whose weakness is named.
    """
    lowest, safe, step = lane.reading.lowest, lane.reading.safe, lane.reading.numbers_step
    if found.source_reading.rows_go or lane.counts.lost_remembered or lane.counts.justified_earlier:
        return None  # rows went: a number without one may be theirs
    is_counted = step is not None and lane.counts.coordinates_ascending and lane.reading.floor is None
    is_proven = safe.coordinate is not None and lane.frontier <= safe.coordinate
    if step is None or not is_counted or not is_proven or lowest is None or lane.frontier < lowest:
        return None
    return max((lane.frontier.position - lowest.position) // step + 1 - lane.fingerprint["count"], 0)


def _duplicates_says(found: Evidence) -> list[str]:
    """Whose acceptances the repeated payloads are, where one was accepted in several generations."""
    several = sorted(
        {number for numbers in found.duplicated_in.values() if len(set(numbers)) > 1 for number in numbers}
    )
    if not several:
        return []
    return [f"The same payloads were accepted in several generations: {', '.join(map(str, several))}."]


def _unread(found: Evidence, reading: LaneReading) -> tuple[str, ...]:
    unread = []
    for end, name in ((found.source_reading, "source"), (found.sink_reading, "acceptance record")):
        if not end.is_complete:
            unread.append(f"The {name} could not be read whole. " + " ".join(end.weaknesses))
    if reading.safe.coordinate is None and reading.head is not None:
        unread.append(" ".join(["Nothing is safe to judge yet.", reading.safe.says, *reading.safe.waits_for]))
    return tuple(unread)


def _accepted_to(found: Evidence, lane: LaneEvidence) -> str | None:
    """The highest coordinate in the acceptance record of this lane. None: the record says nothing of it."""
    recorded = found.sink_reading.lanes.get(lane.lane)
    return found.spell(recorded.head) if recorded and recorded.head else None


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _finding_row(found: Evidence, row: dict[str, Any]) -> dict[str, Any]:
    accepted_in = found.duplicated_in.get((row["lane"], row["position"], row["ordinal"], row["accepted_digest"]))
    return {
        **{name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()},
        "position": str(row["position"]),
        "ordinal": str(row["ordinal"]),
        "entry": None if row["entry"] is None else str(row["entry"]),
        "coordinate": found.spell(Coordinate(row["position"], row["ordinal"])),
        "accepted_in": None if accepted_in is None else [str(generation) for generation in accepted_in],
    }
