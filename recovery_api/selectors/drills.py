"""Reads of drills."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from recovery_api.domain.errors import NotFound
from recovery_api.models import Drill, DrillState, Pipeline, Sink


def drill_list(sink: Sink | None = None) -> QuerySet[Drill]:
    """Newest first; of every sink, or of one."""
    found = Drill.objects.select_related("sink", "intent").order_by("-requested_at")
    return found.filter(sink=sink) if sink else found


def drill_get(drill_id: UUID | str) -> Drill:
    """Raises: NotFound."""
    try:
        found = drill_list().filter(id=drill_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(f"Drill {drill_id}", "the control database", "")
    return found


def drills_unneeded(before: datetime) -> QuerySet[Drill]:
    """Those that ended before `before`. Of each sink these stay: the newest that was asked for in full, that ended, and that passed in full."""
    ended = Drill.objects.exclude(state=DrillState.REQUESTED)
    newest = (
        Drill.objects.filter(names=[]).order_by("sink_id", "-requested_at"),
        ended.exclude(state=DrillState.NOT_APPLICABLE).order_by("sink_id", "-finished_at"),
        ended.filter(names=[], state=DrillState.PASSED).order_by("sink_id", "-finished_at"),
        ended.order_by("sink_id", "-finished_at"),
    )
    kept = {key for rows in newest for key in rows.distinct("sink_id").values_list("pk", flat=True)}
    return ended.filter(finished_at__lt=before).exclude(pk__in=kept).order_by("finished_at")


def passed_at(sink: Sink) -> datetime | None:
    """When every drill that applies last passed; None where none did since the sink's options last changed."""
    if sink.drill_passed_at is None or (sink.updated_at is not None and sink.updated_at > sink.drill_passed_at):
        return None
    return sink.drill_passed_at


def pipeline_passed_at(pipeline: Pipeline) -> datetime | None:
    """As `passed_at` of its sink. None of two ends, too: nothing is fired there that a drill could prove."""
    return passed_at(pipeline.sink) if pipeline.delivery_id is None else None
