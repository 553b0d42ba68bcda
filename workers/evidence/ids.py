"""A record that knows only message ids, and its source: read apart, matched by id, reported by ranges as ever.

1. Tasks read the history by ranges and the record by shares, each in its snapshot, and stage what they read under the
   place of the evidence, ids in their one spelling (workers.evidence.kernel.ids).
2. `workers.spark.meet_ids` brings the two together by id and writes the findings back as one part for each range.
3. The result has the same shape as matching by ranges gives, so whoever reads evidence need not know the difference.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.evidence_places import NOTHING, Stored, stored_make
from recovery_api.domain.grounds import came_late
from recovery_api.domain.identity import NO_REUSE, Identity, IdType, id_type_meet
from recovery_api.domain.ledger.blocks import fingerprint_join
from workers.connectors.protocols.record import IdRecord
from workers.connectors.readings import LateRows, RecordIds, SourceIds
from workers.evidence import schemas
from workers.evidence.canonical import batch_digest_add
from workers.evidence.grounds import Earlier, history_fingerprint, late_summary
from workers.evidence.holding import history_held
from workers.evidence.kernel import ids as kernel
from workers.evidence.ranges import MeetSpec
from workers.evidence.store import FINDINGS, objects_forget, part_write, rows_read
from workers.spark.meet_ids import HISTORY, RECORD, ids_meet
from workers.spark.on_demand import counted
from workers.spark.tasks import summary_row, tasks_run

SHARE_ROWS = 1_000_000
"""Entries of the record that one task reads, about."""

MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class IdsJudged:
    """`summaries`: one a range as workers.evidence.ranges gives them, and one of what is of no range. `identity`: how."""

    summaries: list[dict[str, Any]]
    identity: Identity


def ids_judge(
    session: Any,
    spec: MeetSpec,
    earlier: Mapping[str, Earlier],
    certified: Mapping[str, Coordinate],
) -> IdsJudged:
    """Every event and entry judged by its id. `certified`: up to where an earlier audit found every id, by lane.

    Raises: Unsuitable where an id cannot stand for an event; the first error that a task met, as itself.
    """
    id_type, record = ids_check(spec)
    staged_at = NOTHING
    count = len(spec.ranges)
    lane_rows = sum(reading.estimated_rows for reading in spec.sink_reading.lanes.values())
    shares = max(count, -(-lane_rows // SHARE_ROWS))
    try:
        staged = tasks_run(session, count + shares, _stage(spec, id_type, shares))
        staged_at = stored_make(spec.evidence, (row for one in staged for row in one["staged"]))
        ranges, entries = staged[:count], staged[count:]
        events = sum(counts["history_rows"] for one in ranges for counts in one["blocks"])
        rows = events + sum(one["rows"] for one in entries)
        unreadable = sum(one["unreadable"] for one in entries)
        lane = spec.ranges[0].lane
        question = _question(
            lane, record, unreadable, None if _has_late(ranges, earlier.get(lane)) else certified.get(lane)
        )
        met = ids_meet(session, question, staged_at, rows, spec.evidence)
    finally:
        objects_forget(staged_at)
    found = stored_make(spec.evidence, (row for one in met.parts.values() for row in one["written"]))
    late = [_late_finish(spec, found, index, one) for index, one in enumerate(ranges)]
    summaries = [_summary(spec, index, one, met.parts.get(index)) | late[index] for index, one in enumerate(ranges)]
    identity = Identity(
        id_type.value,
        record.lifetime,
        record.consumer,
        first_unmatched=_few(one for each in met.sets for one in each["unmatched"]),
        first_unreadable=_few(one for each in entries for one in each["strange"]),
        first_repeated=_few(one for each in met.sets for one in each["repeated"]),
        shown_until=_shown_until(record, [one["oldest_lost_us"] for one in met.sets]),
    )
    more = [_apart(lane, counts) for one in ranges for counts in one["blocks"][1:]]
    return IdsJudged([*summaries, *more, _of_no_range(lane, met.sets, unreadable)], identity)


def ids_check(spec: MeetSpec) -> tuple[IdType, RecordIds]:
    """What ids are compared as, and what the record says of its own. Raises: Unsuitable."""
    source, record = spec.source_reading.ids, spec.sink_reading.ids
    assert isinstance(record, RecordIds)
    what = "event_id of the source"
    if not isinstance(source, SourceIds):
        remedy = "Map event_id at the source, or register a record that knows coordinates."
        raise Unsuitable(what, "is not mapped, and this record knows nothing but ids", remedy)
    if source.problem:
        raise Unsuitable(what, source.problem, source.remedy)
    if not spec.source.options.get(NO_REUSE):
        problem = "may be used again for all that anybody has said: then an old row stands for a new event"
        remedy = f"Whoever owns the source attests that no id is ever used again: {NO_REUSE}=true."
        raise Unsuitable(what, problem, remedy)
    if len(spec.source_reading.lanes) != 1:
        raise Unsuitable(what, "is read of a source of one lane only", "Register each lane's table as a source.")
    id_type = id_type_meet(source.id_type, record.id_type)
    if id_type is None:
        problem = f"is {source.id_type.value}, and the record's id is {record.id_type.value}: they can never be equal"
        raise Unsuitable(what, problem, "Map the columns that hold the same id at both ends.")
    return id_type, record


def _question(lane: str, record: RecordIds, unreadable: int, certified: Coordinate | None) -> kernel.IdQuestion:
    read_at = int(record.read_at.timestamp()) * MICROSECONDS + record.read_at.microsecond
    certain = record.lifetime.certain_seconds
    return kernel.IdQuestion(
        lane=lane,
        lost_since_us=None if certain is None else read_at - certain * MICROSECONDS,
        believed_to_us=read_at + record.lifetime.margin_seconds * MICROSECONDS,
        certified_below=certified,
        has_unreadable=unreadable > 0,
    )


def _stage(
    spec: MeetSpec, id_type: IdType, shares: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                share = index - len(spec.ranges)
                if share < 0:
                    body: Callable[[], dict[str, Any]] = functools.partial(history_stage, spec, index, id_type)
                else:
                    body = functools.partial(record_stage, spec, share, shares, id_type)
                yield summary_row(index, spec.ranges[0].lane, body)

    return stage


def history_stage(spec: MeetSpec, index: int, id_type: IdType) -> dict[str, Any]:
    """One range of the history, staged; the counts of each stretch of it that was held at once, and its fingerprints."""
    range_ = spec.ranges[index]
    question, earlier = spec.questions[range_.lane], spec.earlier.get(range_.lane)
    told: dict[str, Any] = {"staged": [], "blocks": [], "strange": []}
    now, then = fingerprint_join(), fingerprint_join()
    late = LateRows(question.frontier)
    for history, seen in history_held(spec, range_):
        table, counts, strange = kernel.history_prepare(question, history, id_type, index)
        told["staged"] += [one.as_row() for one in part_write(spec.evidence, HISTORY, index, table)]
        told["blocks"].append(counts)
        told["strange"] += strange[: kernel.EXAMPLES - len(told["strange"])]
        now = fingerprint_join(now, history_fingerprint(history, question.frontier))
        if earlier is not None:
            then = fingerprint_join(then, history_fingerprint(history, earlier))
        late.count, late.written_since = late.count + seen.count, late.written_since + seen.written_since
        late.first += seen.first
    told["history"] = now
    if earlier is not None:
        told["earlier"] = then
    if late.first:
        first = [(one.position, one.ordinal) for one in late.first]
        told["late"] = {"count": late.count, "written_since": late.written_since, "first": first}
    return told


def record_stage(spec: MeetSpec, share: int, shares: int, id_type: IdType) -> dict[str, Any]:
    """One share of the record, staged; how many of its accepted ids can be none of the type."""
    record = spec.sink.record()
    assert isinstance(record, IdRecord)
    tables, unreadable = [kernel.RECORD_IDS.empty_table()], 0
    strange: list[str] = []
    for batch in counted(record.read_ids(spec.sink_reading, share, shares), spec.most_rows):
        table, count, first = kernel.record_prepare(pa.Table.from_batches([batch]), id_type)
        tables.append(table)
        unreadable += count
        strange += first[: kernel.EXAMPLES - len(strange)]
    table = pa.concat_tables(tables)
    written = part_write(spec.evidence, RECORD, share, table)
    staged = [one.as_row() for one in written]
    return {"staged": staged, "rows": table.num_rows, "unreadable": unreadable, "strange": strange}


def _has_late(ranges: list[dict[str, Any]], earlier: Earlier | None) -> bool:
    """Whether rows came in below a frontier that was taken to be safe: then nothing earlier certifies anything."""
    if any("late" in one for one in ranges):
        return True
    if earlier is None:
        return False
    now = {name: sum(one["earlier"].get(name, 0) for one in ranges) for name in ("count", "positions")}
    now["positions"] %= 2**64
    return came_late(earlier.fingerprint, now) > 0


def _summary(spec: MeetSpec, index: int, staged: dict[str, Any], written: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "lane": spec.ranges[index].lane,
        "written": written["written"] if written else [],
        "counts": staged["blocks"][0],
        "findings": written["findings"] if written else 0,
        "batch_count": written["batch"] if written else 0,
        "batch_digest": written["digest"] if written else batch_digest_add(),
        "history": staged["history"],
        "stranded": 0,
        **({"earlier": staged["earlier"]} if "earlier" in staged else {}),
    }


def _of_no_range(lane: str, sets: list[dict[str, Any]], unreadable: int) -> dict[str, Any]:
    """What was counted by sets of ids: it lies in no range of coordinates."""
    counts: dict[str, int] = {}
    for one in sets:
        for name, count in one["counts"].items():
            counts[name] = counts.get(name, 0) + count
    stranded = counts.pop("stranded", 0)
    counted_here = {"duplicate_payloads": 0, **counts, "ids_unreadable": unreadable}
    return _apart(lane, counted_here) | {"stranded": stranded}


def _apart(lane: str, counts: dict[str, int]) -> dict[str, Any]:
    """Counts beside those of ranges: of ids, or of a further stretch of a range whose findings stand with the range."""
    return {
        "lane": lane,
        "counts": counts,
        "findings": 0,
        "batch_count": 0,
        "batch_digest": batch_digest_add(),
        "history": {},
        "stranded": 0,
    }


def _late_finish(spec: MeetSpec, found: Stored, index: int, staged: dict[str, Any]) -> dict[str, Any]:
    """What a range's late rows are told with: which of the named ones the sink lacks."""
    if "late" not in staged:
        return {}
    seen = staged["late"]
    late = LateRows(spec.questions[spec.ranges[index].lane].frontier, seen["count"], seen["written_since"])
    late.first = [Coordinate(*pair) for pair in seen["first"]]
    findings = rows_read(found, found.of(FINDINGS, index), schemas.FINDING)
    return {"late": late_summary(late, findings.filter(pc.equal(findings["finding"], "lost")))}


def _shown_until(record: RecordIds, oldest: list[int | None]) -> datetime | None:
    """Until when every lost event can be shown to be lost: then the first of their rows could be gone."""
    times, certain = [one for one in oldest if one is not None], record.lifetime.certain_seconds
    if not times or certain is None:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=min(times), seconds=certain)


def _few(ids: Iterator[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(ids))[: kernel.EXAMPLES])
