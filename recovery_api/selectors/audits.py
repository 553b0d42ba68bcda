"""Reads of audits."""

from __future__ import annotations

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.frontiers import frontier_from_row
from recovery_api.models import Audit, AuditStatus, Pipeline


def certified_by_lane(pipeline: Pipeline) -> dict[str, Coordinate]:
    """Up to where the latest audit that stands found each lane exactly once. Empty: none did.

    A restore of the sink voids what was found before it, so such an audit certifies nothing any more.
    """
    audit = (
        Audit.objects.filter(pipeline=pipeline, status=AuditStatus.EXACTLY_ONCE, void_since__isnull=True)
        .order_by("-finished_at")
        .first()
    )
    return {} if audit is None else frontier_from_row(audit.frontier)
