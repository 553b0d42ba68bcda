"""Reads of sources, sinks and pipelines. A name that is not there is NotFound, with the nearest that is."""

from __future__ import annotations

import difflib

from django.db.models import QuerySet

from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import NotFound
from recovery_api.domain.kinds.base import spelling_of
from recovery_api.models import End, Pipeline, Sink, Source


def source_list() -> QuerySet[Source]:
    return Source.objects.filter(retired_at__isnull=True).order_by("name")


def sink_list() -> QuerySet[Sink]:
    return Sink.objects.filter(retired_at__isnull=True).order_by("name")


def pipeline_list() -> QuerySet[Pipeline]:
    return (
        Pipeline.objects.filter(retired_at__isnull=True)
        .select_related("source", "sink", "delivery", "schedule")
        .order_by("name")
    )


def source_get(name: str) -> Source:
    """Raises: NotFound."""
    found = source_list().filter(name=name).first()
    if found is None:
        raise _not_found("Source", name, Source)
    return found


def sink_get(name: str) -> Sink:
    """Raises: NotFound."""
    found = sink_list().filter(name=name).first()
    if found is None:
        raise _not_found("Sink", name, Sink)
    return found


def pipeline_get(name: str) -> Pipeline:
    """Raises: NotFound."""
    found = pipeline_list().filter(name=name).first()
    if found is None:
        raise _not_found("Pipeline", name, Pipeline)
    return found


def source_spelling(source: Source) -> Spelling:
    """How the source writes its coordinates, as registered."""
    return spelling_of(source.kind, source.options)


def _not_found(what: str, name: str, model: type[End] | type[Pipeline]) -> NotFound:
    names = list(model._default_manager.filter(retired_at__isnull=True).values_list("name", flat=True))
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean {nearest[0]!r}?" if nearest else f"Registered: {', '.join(sorted(names)) or 'none'}."
    return NotFound(f"{what} {name!r}", "the registry", hint)
