"""Pipelines: registered whole, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import EventKind, Pipeline, Sink, Source
from recovery_api.services.constraints import REMEDIES, constraints_mapped
from recovery_api.services.ends import name_check
from recovery_api.services.events import event_append


def pipeline_create(
    name: str,
    source: Source,
    sink: Sink,
    *,
    actor: str,
    now: datetime,
    scope: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    requires_other_approver: bool = True,
) -> Pipeline:
    """A registered pipeline. `scope` None owes every key, on purpose; an empty one is refused.

    Raises: BadInput, UnknownOption; Refused where the sink already serves a pipeline.
    """
    keys, kept = pipeline_check(name, sink, scope=scope, options=options)
    special = {"a_pipeline_name_is_registered_once": partial(_taken, name)}
    with constraints_mapped(f"registering pipeline {name}", special), transaction.atomic():
        pipeline = Pipeline.objects.create(
            name=name,
            source=source,
            sink=sink,
            scope=keys,
            options=kept,
            requires_other_approver=requires_other_approver,
            created_at=now,
            created_by=actor,
        )
        says = f"Pipeline {name} delivers {source.name} to {sink.name}, {_scope_says(keys)}."
        event_append(EventKind.PIPELINE_CREATED, actor=actor, now=now, says=says, pipeline=pipeline)
    return pipeline


def pipeline_check(
    name: str, sink: Sink, *, scope: Sequence[str] | None, options: Mapping[str, Any] | None
) -> tuple[list[str] | None, dict[str, Any]]:
    """Scope and options as they would be kept. Raises what `pipeline_create` would, before anything is tested."""
    name_check("pipeline", name)
    keys = _scope_check(scope)
    given = options or {}
    if not isinstance(given, Mapping):
        raise BadInput("pipeline.options", "is not an object", "Write the options as members of one object.")
    parsed = pipeline_options_parse(given)
    if Pipeline.objects.filter(name=name, retired_at__isnull=True).exists():
        raise _taken(name)
    if (other := Pipeline.objects.filter(sink=sink, retired_at__isnull=True).first()) is not None:
        reason = f"sink {sink.name} already serves pipeline {other.name}"
        raise Refused(f"registering pipeline {name}", reason, REMEDIES["a_sink_serves_one_pipeline"])
    return keys, {option: parsed[option] for option in given if parsed[option] is not None}


def _taken(name: str) -> BadInput:
    remedy = f"Choose another, or see it: manage.py pipelines show {name}."
    return BadInput("pipeline.name", f"{name!r} is taken", remedy)


def _scope_check(scope: Sequence[str] | None) -> list[str] | None:
    if scope is None:
        return None
    if isinstance(scope, str) or not all(isinstance(key, str) for key in scope):
        raise BadInput(
            "pipeline.scope", "is not a list of keys", "Give a list of texts, or leave it out for every key."
        )
    if not scope:
        raise BadInput("pipeline.scope", "is empty", "Leave it out to owe every key, or name the keys.")
    return sorted(set(scope))


def _scope_says(keys: list[str] | None) -> str:
    return "every key" if keys is None else f"{len(keys)} {'key' if len(keys) == 1 else 'keys'}"
