"""Reads of acknowledged omissions."""

from __future__ import annotations

from collections import defaultdict

from django.db.models import QuerySet

from recovery_api.domain.coordinates import Coordinate
from recovery_api.models import AcknowledgedOmission, Pipeline


def omission_list(pipeline: Pipeline, *, with_withdrawn: bool = False) -> QuerySet[AcknowledgedOmission]:
    """In coordinate order. These rows are what an audit lists apart and a plan never re-drives."""
    found = AcknowledgedOmission.objects.filter(pipeline=pipeline).select_related("pipeline__source")
    found = found if with_withdrawn else found.filter(withdrawn_at__isnull=True)
    return found.order_by("lane", "position", "ordinal")


def acknowledged_by_lane(pipeline: Pipeline) -> dict[str, tuple[Coordinate, ...]]:
    """The acknowledged coordinates that stand, by lane, ascending."""
    found: dict[str, list[Coordinate]] = defaultdict(list)
    for lane, position, ordinal in omission_list(pipeline).values_list("lane", "position", "ordinal"):
        found[lane].append(Coordinate(position, ordinal))
    return {lane: tuple(coordinates) for lane, coordinates in found.items()}
