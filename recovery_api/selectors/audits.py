"""Reads of audits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import NotFound
from recovery_api.domain.frontiers import frontier_from_row
from recovery_api.domain.identity import is_by_event_id
from recovery_api.domain.outcomes import CERTIFIES, CERTIFIES_BY_IDENTITY, Status
from recovery_api.domain.statuses import RecordReading
from recovery_api.models import Audit, Pipeline

CERTIFYING_AUDITS = 200
"""How far back certificates are looked for."""


class CertifiedLane(NamedTuple):
    """The highest frontier found exactly once, the record's last entry then, and what that was given."""

    frontier: Coordinate
    last_entry: int | None
    given: tuple[str, ...]


def certified_by_lane(pipeline: Pipeline) -> dict[str, CertifiedLane]:
    """For each lane the highest frontier at which an audit that stands found it exactly once.

    One that was given something certifies no more than that: who relies on it takes over what was given. A restore of
    the sink voids what was found before it, so such an audit certifies nothing any more. Where the record knows only ids:
    the same of audits that were complete by identity, since either end's options last changed.
    """
    found: dict[str, CertifiedLane] = {}
    audits = Audit.objects.filter(pipeline=pipeline, status__in=CERTIFIES, void_since__isnull=True)
    if is_by_event_id(pipeline.sink.options):
        changes = [end.updated_at for end in (pipeline.source, pipeline.sink) if end.updated_at is not None]
        audits = Audit.objects.filter(pipeline=pipeline, status__in=CERTIFIES_BY_IDENTITY, void_since__isnull=True)
        audits = audits.filter(started_at__gt=max(changes)) if changes else audits
    rows = audits.order_by("-finished_at").values_list("frontier", "verified", "givens")
    for frontier, verified, givens in rows[:CERTIFYING_AUDITS]:
        entry = (verified or {}).get("last_entry")
        for lane, coordinate in frontier_from_row(frontier).items():
            if lane not in found or found[lane].frontier < coordinate:
                found[lane] = CertifiedLane(coordinate, None if entry is None else int(entry), tuple(givens))
    return found


def audit_newest(pipeline: Pipeline) -> Audit | None:
    """The newest audit that stands and read anything."""
    found = Audit.objects.filter(pipeline=pipeline, void_since__isnull=True).exclude(lanes={})
    return found.order_by("-finished_at").first()


def audit_get(audit_id: UUID | str) -> Audit:
    """Raises: NotFound."""
    try:
        found = Audit.objects.select_related("pipeline__source").filter(id=audit_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(f"Audit {audit_id}", "the control database", "Run one: manage.py audit PIPELINE.")
    return found


def audit_list(pipeline: Pipeline | None = None) -> QuerySet[Audit]:
    """Newest first; of every pipeline where none is named."""
    found = Audit.objects.select_related("pipeline__source").order_by("-finished_at")
    return found.filter(pipeline=pipeline) if pipeline else found


def audits_reading(audits: QuerySet[Audit], status: str, now: datetime) -> QuerySet[Audit]:
    """Those that read so now: unknown, once their evidence has expired."""
    expired = Q(evidence_until__lte=now)
    if status == Status.UNKNOWN:
        return audits.filter(Q(status=status) | expired)
    return audits.filter(Q(status=status) & ~(Q(evidence_until__isnull=False) & expired))


def audits_standing(pipeline_ids: Sequence[int]) -> QuerySet[Audit]:
    """The audits of these pipelines that no later reading has taken the place of: a few each, by an index of their own."""
    return Audit.objects.filter(pipeline_id__in=pipeline_ids, is_standing=True, void_since__isnull=True)


def audit_readings(pipeline_ids: Sequence[int]) -> list[tuple[UUID, RecordReading]]:
    """What stands of these pipelines, as the domain compares it. One query, a few columns."""
    rows = audits_standing(pipeline_ids).values_list("pk", "record_read_at", "status", "frontier")
    return [(pk, RecordReading(read_at, Status(status), frontier)) for pk, read_at, status, frontier in rows]


def reading_of(audit: Audit) -> RecordReading:
    return RecordReading(audit.record_read_at, Status(audit.status), audit.frontier, audit.says, audit.evidence_until)
