"""A finding that somebody looked at and left as it is, with a reason: a note for whoever looks next. It changes no verdict."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from recovery_api.domain.actors import subject
from recovery_api.domain.coordinates import Coordinate, coordinate_format, coordinate_parse
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.frontiers import SINGLE_LANE, coordinate_as_row
from recovery_api.models import EventKind, Finding, LedgerItem, Pipeline
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.findings_named import Left
from recovery_api.services.events import event_append


def finding_leave(
    pipeline: Pipeline, coordinate: str, *, reason: str, actor: str, now: datetime, lane: str = SINGLE_LANE
) -> Left:
    """Leaves what was found at `coordinate` (the source's spelling) as it is. A later reason stands beside the earlier ones.

    Raises: BadCoordinate; BadInput for a missing reason; Refused where nothing that is still listed was found there.
    """
    held = coordinate_parse(coordinate, source_spelling(pipeline.source))
    spelled = coordinate_format(held, source_spelling(pipeline.source))
    if not (reason := reason.strip()):
        raise BadInput("reason", "is missing", "Say why what was found here may stay as it is.")
    if not _is_found(pipeline, lane, held):
        remedy = "Audit again, or write it down in an incident."
        raise Refused(
            f"Leaving what was found at {spelled}", "no audit that is still listed found anything there", remedy
        )
    says = f"{subject(actor)} left what was found at {spelled} as it is: {reason}"
    data = {"lane": lane, **coordinate_as_row(held), "reason": reason}
    with transaction.atomic():
        event_append(EventKind.FINDING_LEFT, actor=actor, now=now, says=says, pipeline=pipeline, data=data)
    return Left(actor, now, reason)


def _is_found(pipeline: Pipeline, lane: str, held: Coordinate) -> bool:
    at = {"lane": lane, "position": held.position, "ordinal": held.ordinal}
    listed = pipeline.audits.filter(listed_count__gt=0).values("pk")
    planned = pipeline.plans.filter(listed_count__gt=0).values("pk")
    return (
        Finding.objects.filter(audit__in=listed, **at).exists()
        or Finding.objects.filter(plan__in=planned, **at).exists()
        or LedgerItem.objects.filter(pipeline=pipeline, settled_at__isnull=True, **at).exists()
    )
