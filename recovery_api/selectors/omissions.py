"""Reads of acknowledged omissions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from recovery_api.domain.errors import NotFound
from recovery_api.models import AcknowledgedOmission, Audit, OmissionPreview, Pipeline


@dataclass(frozen=True, slots=True)
class AcknowledgedLane:
    """The acknowledged coordinates of one lane, ascending: each column's signed 64-bit numbers, big-endian, end to end."""

    count: int
    positions: bytes
    ordinals: bytes


def stands() -> Q:
    """Of omissions: those that count at this moment, by the control database's clock."""
    return Q(withdrawn_at__isnull=True) & (Q(until__isnull=True) | Q(until__gt=Now()))


def omission_list(pipeline: Pipeline, *, with_withdrawn: bool = False) -> QuerySet[AcknowledgedOmission]:
    """In coordinate order. These rows are what an audit lists apart and a plan never re-drives."""
    found = AcknowledgedOmission.objects.filter(pipeline=pipeline).select_related("pipeline__source")
    found = found if with_withdrawn else found.filter(stands())
    return found.order_by("lane", "position", "ordinal")


def omissions_ended(now: datetime) -> QuerySet[AcknowledgedOmission]:
    """Those whose time is over, and whom nobody has told so yet."""
    return AcknowledgedOmission.objects.filter(withdrawn_at__isnull=True, until__lte=now)


def acknowledged_by_lane(pipeline: Pipeline) -> dict[str, AcknowledgedLane]:
    """The acknowledged coordinates that stand, by lane: one query and no object a row, for there may be millions."""
    rows, parameters = (
        AcknowledgedOmission.objects.filter(stands(), pipeline=pipeline)
        .order_by()
        .values("lane", "position", "ordinal")
        .query.sql_with_params()
    )
    query = (
        "SELECT lane, count(*), string_agg(int8send(position), ''::bytea ORDER BY position, ordinal),"
        f" string_agg(int8send(ordinal), ''::bytea ORDER BY position, ordinal) FROM ({rows}) AS standing"  # nosec B608
        " GROUP BY lane ORDER BY lane"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        found = cursor.fetchall()
    return {
        lane: AcknowledgedLane(count, bytes(positions), bytes(ordinals)) for lane, count, positions, ordinals in found
    }


def audit_deciding(pipeline: Pipeline) -> Audit | None:
    """The newest audit that stands: what it found lost is what can be acknowledged. None: nothing was judged."""
    found = Audit.objects.filter(pipeline=pipeline, is_standing=True, void_since__isnull=True).exclude(
        lanes={}, frontier={}
    )
    return found.order_by("-record_read_at", "-finished_at").first()


def preview_get(pipeline: Pipeline, preview_id: UUID | str) -> OmissionPreview:
    """Raises: NotFound where there is none of this pipeline."""
    try:
        found = OmissionPreview.objects.select_related("pipeline__source", "audit").filter(
            pipeline=pipeline, id=preview_id
        )
        preview = found.first()
    except ValidationError:
        preview = None
    if preview is None:
        raise NotFound(f"Preview {preview_id}", f"pipeline {pipeline.name}", "It is kept for a day: preview again.")
    return preview
