"""Acknowledged omissions: taken out of the obligation by a person, with a reason, and listed apart for ever after."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from recovery_api.domain.actors import subject
from recovery_api.domain.coordinates import Coordinate, coordinate_format, coordinate_parse
from recovery_api.domain.errors import BadInput, NotFound
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.models import AcknowledgedOmission, EventKind, Pipeline
from recovery_api.selectors.ends import source_spelling
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.events import event_append
from recovery_api.services.plans import plans_lapse


def omission_acknowledge(
    pipeline: Pipeline, coordinate: str, *, reason: str, actor: str, now: datetime, lane: str = SINGLE_LANE
) -> AcknowledgedOmission:
    """The omission of `coordinate` (the source's spelling). An approved plan stands: it may arm less, never more.

    Raises: BadCoordinate; BadInput for a missing reason; Refused where it is acknowledged already.
    """
    found = coordinate_parse(coordinate, source_spelling(pipeline.source))
    if not reason.strip():
        raise BadInput("reason", "is missing", "Say why this event is never to be delivered.")
    with constraints_mapped(f"acknowledging {coordinate}"), transaction.atomic():
        omission = AcknowledgedOmission.objects.create(
            pipeline=pipeline,
            lane=lane,
            position=found.position,
            ordinal=found.ordinal,
            reason=reason.strip(),
            acknowledged_by=actor,
            acknowledged_at=now,
        )
        says = f"{subject(actor)} acknowledged the omission of {spelled(omission)}: {reason.strip()}"
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


def spelled(omission: AcknowledgedOmission) -> str:
    """Its coordinate in the source's spelling, with the lane where it is not the only one."""
    held = Coordinate(omission.position, omission.ordinal)
    words = coordinate_format(held, source_spelling(omission.pipeline.source))
    return words if omission.lane == SINGLE_LANE else f"{omission.lane}={words}"


def _row(omission: AcknowledgedOmission) -> dict[str, str]:
    return {"lane": omission.lane, "position": str(omission.position), "ordinal": str(omission.ordinal)}
