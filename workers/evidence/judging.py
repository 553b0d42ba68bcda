"""Both ends' open readings, judged range by range or by message id, on the engine or in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recovery_api.domain.evidence_places import stored_make
from recovery_api.domain.identity import Identity
from workers.connectors.protocols.source import Source
from workers.connectors.readings import CoordinateRange, Reading
from workers.evidence.cutting import ranges_cut
from workers.evidence.ids import ids_judge
from workers.evidence.increment import Followed, followed_judge
from workers.evidence.kernel import LaneQuestion
from workers.evidence.known import Opened, admitted_now
from workers.evidence.left_out import left_out_tell
from workers.evidence.ranges import MeetSpec, ranges_judge
from workers.evidence.remembered import remembered_write
from workers.evidence.store import objects_forget
from workers.spark.slots import slots_of

if TYPE_CHECKING:
    from workers.evidence.read import AuditRequest


def ends_judge(
    request: AuditRequest,
    source: Source,
    readings: tuple[Reading, Reading],
    questions: dict[str, LaneQuestion],
    progress: Callable[..., None],
    opened: Opened | None,
    record_read_at: datetime,
    session: Any,
    most_rows: int | None,
) -> tuple[MeetSpec, list[dict[str, Any]], Identity | None, Followed | None]:
    """What was asked, of `opened` what is remembered too, a summary a range, how ids were compared, and what an earlier audit was continued by. With `most_rows` a lane is one piece, and no larger.

    Raises: TooManyRows where it is.
    """
    source_reading, sink_reading = readings
    record = request.sink.record()
    if most_rows is None:
        slots = slots_of(session, is_opened=request.known is None)
        known = request.known.lanes if request.known else {}
        ends = (source, source_reading), (record, sink_reading)
        ranges = tuple(ranges_cut(questions, *ends, known, slots, request.ranges_least))
    else:
        ranges = tuple(CoordinateRange(lane, None, None) for lane in questions)
    spec = MeetSpec(
        request.source,
        request.sink,
        source_reading,
        sink_reading,
        ranges,
        questions,
        request.width,
        request.evidence,
        request.approved,
        request.excluded,
        {lane: one.frontier for lane, one in request.earlier.items()},
        most_rows,
        request.delivery,
        has_ledger=opened is not None,
        kept=opened.kept if opened else {},
        admitted_now=admitted_now(sink_reading),
        admitted_then=opened.admitted_then if opened else {},
        archive=request.archive,
    )
    if opened is not None:
        spec = replace(spec, remembered=remembered_write(request.evidence, opened.items()))
    progress(step="reading both ends", done=0, total=len(ranges), unit="ranges")
    identity, followed = None, None
    if sink_reading.ids is None:
        if request.is_followed:
            before = request.known, opened.lanes if opened else None
            followed = followed_judge(session, spec, before, record, record_read_at, request.block_rows)
            spec, summaries = followed.spec, followed.summaries
        else:
            summaries = ranges_judge(session, spec)
        spec = replace(spec, stored=stored_make(spec.evidence, written_of(summaries)))
        spec = replace(spec, source_reading=left_out_tell(source, source_reading, spec.stored, summaries))
    else:
        certified = {lane: one.frontier for lane, one in request.certified.items()}
        judged = ids_judge(session, spec, request.earlier, certified)
        summaries, identity = judged.summaries, judged.identity
        spec = replace(spec, stored=stored_make(spec.evidence, written_of(summaries)))
    if spec.remembered is not None:
        objects_forget(spec.remembered)
    progress(step="reading both ends", done=len(ranges), total=len(ranges), unit="ranges")
    return spec, summaries, identity, followed


def written_of(summaries: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """What the tasks put, as they told it."""
    return (row for summary in summaries for row in summary.get("written", ()))
