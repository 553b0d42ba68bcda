"""Reads about what is registered: who uses it, what happened to it, what is left of a retired one."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Exists, OuterRef, Q, QuerySet

from recovery_api.domain.events import OF_THE_REGISTRY
from recovery_api.models import (
    LIVE_STATES,
    End,
    Event,
    Intent,
    IntentAction,
    Pipeline,
    Sink,
    Source,
)

Registered = TypeVar("Registered", Source, Sink, Pipeline)


def retired_get(model: type[Registered], name: str) -> Registered | None:
    """The last one of this name that was taken out of use. None: there never was one."""
    found = model._default_manager.filter(name=name, retired_at__isnull=False)
    return found.order_by("-retired_at").first()


def pipelines_of(end: End) -> QuerySet[Pipeline]:
    """The pipelines in use that use this end, by name; a sink as their record or as their delivery."""
    used = Q(sink=end) | Q(delivery=end) if isinstance(end, Sink) else Q(source=end)
    return Pipeline.objects.filter(used, retired_at__isnull=True).order_by("name")


def sinks_free() -> QuerySet[Sink]:
    """The sinks in use that serve no pipeline, by name: neither as its record nor as its delivery."""
    serves = Pipeline.objects.filter(Q(sink=OuterRef("pk")) | Q(delivery=OuterRef("pk")), retired_at__isnull=True)
    return Sink.objects.filter(~Exists(serves), retired_at__isnull=True).order_by("name")


def pipeline_of(sink: Sink) -> Pipeline | None:
    """The pipeline in use that this sink serves, as its record or as its delivery."""
    return pipelines_of(sink).select_related("source", "sink", "delivery").first()


def end_history(end: End) -> QuerySet[Event]:
    """What was done to this end, newest first. An edit is told once for each pipeline it touched."""
    about = {"end": end._meta.model_name, "end_id": str(end.pk)}
    return Event.objects.filter(kind__in=OF_THE_REGISTRY, data__contains=about).order_by("-id")


def pipeline_history(pipeline: Pipeline) -> QuerySet[Event]:
    """What was done to this pipeline's configuration and its ends', newest first."""
    return Event.objects.filter(pipeline=pipeline, kind__in=OF_THE_REGISTRY).order_by("-id")


def sink_reading_latest(sink: Sink) -> Intent | None:
    """The newest request to ask this sink for its fence, whatever its state."""
    return Intent.objects.filter(action=IntentAction.SINK_READ, sink=sink).order_by("-created_at").first()


def live_work(pipeline: Pipeline) -> list[Intent]:
    """What is queued or running for this pipeline, oldest first."""
    return list(Intent.objects.filter(pipeline=pipeline, state__in=LIVE_STATES).order_by("created_at"))
