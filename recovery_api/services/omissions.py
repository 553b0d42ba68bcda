"""Acknowledged omissions: taken out of the obligation by a person, with a reason, and listed apart for ever after."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q

from recovery_api.domain.actors import subject
from recovery_api.domain.coordinates import Coordinate, coordinate_format, coordinate_parse
from recovery_api.domain.errors import BadInput, NotFound, Refused
from recovery_api.domain.findings import ABSENCES, FindingWord
from recovery_api.domain.frontiers import SINGLE_LANE, frontier_from_row
from recovery_api.models import AcknowledgedOmission, Audit, AuditStatus, EventKind, Finding, Pipeline
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.omissions import audit_deciding, omissions_ended
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.events import event_append
from recovery_api.services.plans import plans_lapse

TEXT_LIMIT = 2000
ITS_END = "its end"
"""Who withdrew an omission whose time was over."""


def omission_acknowledge(
    pipeline: Pipeline,
    coordinate: str,
    *,
    reason: str,
    actor: str,
    now: datetime,
    lane: str = SINGLE_LANE,
    reference: str = "",
    until: datetime | None = None,
) -> AcknowledgedOmission:
    """The omission of `coordinate` (the source's spelling). An approved plan stands: it may arm less, never more.

    Where an audit stands and could tell, it decides what can be acknowledged. Else nothing is known of the coordinate.

    Raises: BadCoordinate; BadInput for a missing reason, and an end that is over; Refused where it is acknowledged
    already, or the newest audit did not find it lost.
    """
    found = coordinate_parse(coordinate, source_spelling(pipeline.source))
    reason, reference = reason_check(reason), reference.strip()
    until_check(until)
    with constraints_mapped(f"acknowledging {coordinate}"), transaction.atomic():
        omissions_end(pipeline)
        _lost_check(pipeline, lane, found, coordinate)
        omission = AcknowledgedOmission.objects.create(
            pipeline=pipeline,
            lane=lane,
            position=found.position,
            ordinal=found.ordinal,
            reason=reason,
            reference=reference,
            act=uuid.uuid4(),
            until=until,
            acknowledged_by=actor,
            acknowledged_at=now,
        )
        says = f"{subject(actor)} acknowledged the omission of {spelled(omission)}: {why(reason, reference, until)}"
        event_append(
            EventKind.OMISSION_ACKNOWLEDGED, actor=actor, now=now, says=says, pipeline=pipeline, data=_row(omission)
        )
    return omission


def omission_withdraw(
    pipeline: Pipeline, coordinate: str, *, actor: str, now: datetime, lane: str = SINGLE_LANE
) -> AcknowledgedOmission:
    """The withdrawn omission: its coordinate is owed again. Raises: BadCoordinate, NotFound."""
    found = coordinate_parse(coordinate, source_spelling(pipeline.source))
    with transaction.atomic():
        omission = (
            AcknowledgedOmission.objects.select_for_update()
            .filter(
                pipeline=pipeline,
                lane=lane,
                position=found.position,
                ordinal=found.ordinal,
                withdrawn_at__isnull=True,
            )
            .first()
        )
        if omission is None:
            raise NotFound(f"An acknowledged omission of {coordinate}", f"pipeline {pipeline.name}", "")
        omission.withdrawn_by, omission.withdrawn_at = actor, now
        omission.save(update_fields=["withdrawn_by", "withdrawn_at"])
        says = f"{subject(actor)} withdrew the omission of {spelled(omission)}; it is owed again."
        event_append(
            EventKind.OMISSION_WITHDRAWN, actor=actor, now=now, says=says, pipeline=pipeline, data=_row(omission)
        )
        plans_lapse(pipeline, because=f"{spelled(omission)} is owed again.", actor=actor, now=now)
    return omission


def omissions_withdraw(pipeline: Pipeline, act: UUID | str, *, actor: str, now: datetime) -> int:
    """How many omissions of one act were withdrawn: each is owed again. Raises: BadInput, NotFound where none stands."""
    try:
        act = UUID(str(act))
    except ValueError as error:
        raise BadInput(
            "act", f"{str(act)[:80]!r} is no act", "manage.py omissions list PIPELINE names them."
        ) from error
    with transaction.atomic():
        standing = AcknowledgedOmission.objects.filter(pipeline=pipeline, act=act, withdrawn_at__isnull=True)
        count = standing.update(withdrawn_by=actor, withdrawn_at=now)
        if not count:
            raise NotFound(f"A standing omission of act {act}", f"pipeline {pipeline.name}", "")
        what = f"{count:,} {'omission' if count == 1 else 'omissions'}"
        says = f"{subject(actor)} withdrew {what} of one act; {'it is' if count == 1 else 'they are'} owed again."
        data = {"act": str(act), "count": str(count)}
        event_append(EventKind.OMISSION_WITHDRAWN, actor=actor, now=now, says=says, pipeline=pipeline, data=data)
        plans_lapse(pipeline, because=f"{what} were withdrawn.", actor=actor, now=now)
    return count


def omissions_accepted(
    pipeline: Pipeline, lane: str, positions: Sequence[int], ordinals: Sequence[int], at: datetime
) -> int:
    """How many omissions that stand are marked as accepted all the same: a reading of the record that began at `at` holds
    these coordinates with what was committed there. The first such reading is kept."""
    table = connection.ops.quote_name(AcknowledgedOmission._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table} AS omission SET accepted_seen_at = %s"  # nosec B608
            " FROM unnest(%s::bigint[], %s::bigint[]) AS seen (position, ordinal)"
            " WHERE omission.pipeline_id = %s AND omission.lane = %s AND omission.withdrawn_at IS NULL"
            " AND omission.accepted_seen_at IS NULL"
            " AND omission.position = seen.position AND omission.ordinal = seen.ordinal",
            [at, list(positions), list(ordinals), pipeline.pk, lane],
        )
        return int(cursor.rowcount)


def omissions_end(pipeline: Pipeline | None = None) -> int:
    """How many omissions ended because their time is over, by the control database's clock. Nothing waits for this: from
    that moment on they count no longer, whoever reads; this writes it in the timeline and makes waiting plans lapse."""
    now = now_get()
    ended = omissions_ended(now) if pipeline is None else omissions_ended(now).filter(pipeline=pipeline)
    total = 0
    for one in Pipeline.objects.filter(id__in=ended.values("pipeline")):
        with transaction.atomic():
            count = omissions_ended(now).filter(pipeline=one).update(withdrawn_by=ITS_END, withdrawn_at=F("until"))
            if not count:
                continue  # another sweep was here
            what = f"{count:,} acknowledged {'omission' if count == 1 else 'omissions'}"
            says = f"The time of {what} is over; {'it is' if count == 1 else 'they are'} owed again."
            data = {"count": str(count)}
            event_append(EventKind.OMISSION_WITHDRAWN, actor="sweep", now=now, says=says, pipeline=one, data=data)
            plans_lapse(one, because=says, actor="sweep", now=now)
            total += count
    return total


def reason_check(reason: str) -> str:
    """Raises: BadInput."""
    if not reason.strip():
        raise BadInput("reason", "is missing", "Say why this event is never to be delivered.")
    return reason.strip()


def until_check(until: datetime | None) -> None:
    """Raises: BadInput for an end that is over by the control database's clock, or has no time zone."""
    if until is None:
        return
    if until.tzinfo is None:
        raise BadInput("until", "has no time zone", "Write it as 2026-11-28T22:30:00Z.")
    if until <= now_get():
        raise BadInput("until", f"{until:%Y-%m-%d %H:%M} UTC is over", "Give a moment to come, or leave it out.")


def why(reason: str, reference: str, until: datetime | None) -> str:
    """Reason, reference and end as they stand in the timeline."""
    end = f" Until {until:%Y-%m-%d %H:%M} UTC." if until else ""
    return f"{reason}{f' ({reference})' if reference else ''}{end}"


def spelled(omission: AcknowledgedOmission) -> str:
    """Its coordinate in the source's spelling, with the lane where it is not the only one."""
    held = Coordinate(omission.position, omission.ordinal)
    words = coordinate_format(held, source_spelling(omission.pipeline.source))
    return words if omission.lane == SINGLE_LANE else f"{omission.lane}={words}"


def _lost_check(pipeline: Pipeline, lane: str, found: Coordinate, coordinate: str) -> None:
    """Raises: Refused where the newest audit that stands shows that there is nothing to acknowledge at this coordinate."""
    audit = audit_deciding(pipeline)
    if audit is None:
        return
    action, at = f"acknowledging {coordinate}", f"the audit of {audit.record_read_at:%Y-%m-%d %H:%M} UTC"
    judged = frontier_from_row(audit.frontier).get(lane)
    if judged is None or found > judged:
        reason = f"it lies above the frontier of {at}: nothing is known of it yet"
        raise Refused(action, reason, f"Run manage.py audit {pipeline.name}, then look again.")
    here = Finding.objects.filter(audit=audit, lane=lane, position=found.position, ordinal=found.ordinal)
    is_open = Q(finding=FindingWord.LOST) | Q(finding=FindingWord.UNKNOWN, cause__in=ABSENCES)
    if audit.status == AuditStatus.UNKNOWN or here.filter(is_open).exists() or not _is_listed(audit):
        return
    raise Refused(
        action,
        f"{at} did not find it lost: it was accepted, or never committed, or is not owed by this pipeline",
        "Read the event on its page to see what both ends hold.",
    )


def _is_listed(audit: Audit) -> bool:
    """Whether every finding of the audit is in its listing, so that what is not there was not found."""
    return audit.listed_count >= audit.evidence_rows


def _row(omission: AcknowledgedOmission) -> dict[str, str]:
    return {
        "lane": omission.lane,
        "position": str(omission.position),
        "ordinal": str(omission.ordinal),
        "act": str(omission.act),
    }
