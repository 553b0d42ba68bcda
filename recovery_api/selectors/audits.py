"""Reads of audits."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import NotFound
from recovery_api.domain.frontiers import frontier_from_row
from recovery_api.models import Audit, AuditStatus, Pipeline

CERTIFYING_AUDITS = 200
"""How far back certificates are looked for."""


def certified_by_lane(pipeline: Pipeline) -> dict[str, tuple[Coordinate, int | None]]:
    """The highest frontier at which an audit that stands found each lane exactly once, and the record's last entry then.

    A restore of the sink voids what was found before it, so such an audit certifies nothing any more.
    """
    found: dict[str, tuple[Coordinate, int | None]] = {}
    audits = Audit.objects.filter(pipeline=pipeline, status=AuditStatus.EXACTLY_ONCE, void_since__isnull=True)
    for frontier, verified in audits.order_by("-finished_at").values_list("frontier", "verified")[:CERTIFYING_AUDITS]:
        entry = (verified or {}).get("last_entry")
        for lane, coordinate in frontier_from_row(frontier).items():
            if lane not in found or found[lane][0] < coordinate:
                found[lane] = (coordinate, None if entry is None else int(entry))
    return found


def audit_newest(pipeline: Pipeline) -> Audit | None:
    """The newest audit that stands."""
    return Audit.objects.filter(pipeline=pipeline, void_since__isnull=True).order_by("-finished_at").first()


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
