"""Pipelines: registered whole, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q

from recovery_api.domain.abilities import DELIVERIES, RECORDS
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.identity import ids_check
from recovery_api.domain.kinds import abilities_of
from recovery_api.domain.pipelines import pipeline_options_check, pipeline_options_parse
from recovery_api.models import EventKind, Pipeline, Sink, Source
from recovery_api.selectors.versions import version_check
from recovery_api.services.constraints import REMEDIES, constraints_mapped
from recovery_api.services.ends import name_check
from recovery_api.services.events import event_append
from recovery_api.services.plans import plans_lapse
from recovery_api.services.retirement import unfinished_refuse
from recovery_api.services.schedules import schedule_renew


def pipeline_create(
    name: str,
    source: Source,
    sink: Sink,
    *,
    actor: str,
    now: datetime,
    delivery: Sink | None = None,
    scope: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    requires_other_approver: bool = True,
) -> Pipeline:
    """A registered pipeline. `scope` None owes every key, on purpose; an empty one is refused. `delivery` None: the sink
    is record and delivery in one.

    Raises: BadInput, UnknownOption; Refused where one of the sinks already serves a pipeline.
    """
    keys, kept = pipeline_check(name, sink, delivery=delivery, scope=scope, options=options)
    ids_check(source.options, sink.options)
    action = f"registering pipeline {name}"
    special = {"a_pipeline_name_is_registered_once": partial(_taken, name)}
    with constraints_mapped(action, special), transaction.atomic():
        _hold_in_use(action, Source, source)
        _hold_sinks(action, sink, delivery)
        _sinks_check(Sink.objects.get(pk=sink.pk), delivery and Sink.objects.get(pk=delivery.pk))
        _free_check(action, sink, delivery)
        pipeline = Pipeline.objects.create(
            name=name,
            source=source,
            sink=sink,
            delivery=delivery,
            scope=keys,
            options=kept,
            requires_other_approver=requires_other_approver,
            created_at=now,
            created_by=actor,
        )
        to = f"to {sink.name}" if delivery is None else f"through {delivery.name}, recorded in {sink.name}"
        says = f"Pipeline {name} delivers {source.name} {to}, {_scope_says(keys)}."
        event_append(EventKind.PIPELINE_CREATED, actor=actor, now=now, says=says, pipeline=pipeline)
    return pipeline


def pipeline_update(
    pipeline: Pipeline,
    *,
    delivery: Sink | None,
    scope: Sequence[str] | None,
    options: Mapping[str, Any],
    requires_other_approver: bool,
    actor: str,
    now: datetime,
    read: frozenset[str] | None = None,
) -> Pipeline:
    """The pipeline with this delivery, this scope, these options and this rule about approvers, all of them; waiting
    plans lapse. `delivery` None: the record itself. Its audits stand: what they judged, the record showed. `read`: the
    versions that this is a change of (selectors.versions); None: of any.

    Raises: Outdated; BadInput, UnknownOption; Refused where it is retired, a recovery of it is unfinished, or the delivery serves
    another pipeline.
    """
    keys, kept = _scope_check(scope), _options_check(options)
    action = f"changing pipeline {pipeline.name}"
    with constraints_mapped(action), transaction.atomic():
        _hold_sinks(action, pipeline.sink, delivery)  # as whoever begins a recovery does, so that none begins meanwhile
        locked = Pipeline.objects.select_for_update(no_key=True).get(pk=pipeline.pk)
        if locked.retired_at is not None:
            raise Refused(action, "it was retired", "Register a new pipeline.")
        version_check(locked, read)
        unfinished_refuse(action, [locked])
        _sinks_check(locked.sink, delivery and Sink.objects.get(pk=delivery.pk))
        _free_check(action, locked.sink, delivery, locked)
        wanted = {
            "delivery": delivery,
            "scope": keys,
            "options": kept,
            "requires_other_approver": requires_other_approver,
        }
        before = {name: getattr(locked, name) for name in wanted}
        changed = [name for name in wanted if before[name] != wanted[name]]
        if not changed:
            return locked
        for name in changed:
            setattr(locked, name, wanted[name])
        locked.save(update_fields=changed)
        schedule_renew(locked)
        says = f"Pipeline {locked.name} changed: {', '.join(_change_says(n, before[n], wanted[n]) for n in changed)}."
        data = {
            "end": "pipeline",
            "end_id": str(locked.pk),
            "name": locked.name,
            "before": {name: _as_data(before[name]) for name in changed},
            "after": {name: _as_data(wanted[name]) for name in changed},
        }
        event_append(EventKind.PIPELINE_CHANGED, actor=actor, now=now, says=says, pipeline=locked, data=data)
        plans_lapse(locked, because=says, actor=actor, now=now)
    return Pipeline.objects.select_related("source", "sink", "delivery").get(pk=locked.pk)


def pipeline_check(
    name: str,
    sink: Sink,
    *,
    delivery: Sink | None = None,
    scope: Sequence[str] | None,
    options: Mapping[str, Any] | None,
) -> tuple[list[str] | None, dict[str, Any]]:
    """Scope and options as they would be kept. Raises what `pipeline_create` would, before anything is tested."""
    name_check("pipeline", name)
    keys = _scope_check(scope)
    kept = _options_check(options or {})
    if Pipeline.objects.filter(name=name, retired_at__isnull=True).exists():
        raise _taken(name)
    _sinks_check(sink, delivery)
    _free_check(f"registering pipeline {name}", sink, delivery)
    return keys, kept


def _sinks_check(sink: Sink, delivery: Sink | None) -> None:
    """Raises: BadInput where the sink keeps no record, the delivery is the record itself, or nothing can be sent to it."""
    if not abilities_of(sink.kind, sink.options) & RECORDS:
        problem = f"{sink.name} is a delivery alone: what arrives there cannot be read back"
        remedy = "Name the sink that shows what was accepted, and this one as its delivery."
        raise BadInput("pipeline.sink", problem, remedy)
    if delivery is None:
        return
    if delivery.pk == sink.pk:
        remedy = "Leave it out: a sink is its own delivery where none is named."
        raise BadInput("pipeline.delivery", f"{sink.name} is the record itself", remedy)
    if not abilities_of(delivery.kind, delivery.options) & DELIVERIES:
        problem = f"{delivery.name} is a record alone: a row in it is the mark of an effect, and not the effect"
        remedy = "Name a sink that can be sent to; or leave it out, and the pipeline is audited and planned."
        raise BadInput("pipeline.delivery", problem, remedy)


def _free_check(action: str, sink: Sink, delivery: Sink | None, own: Pipeline | None = None) -> None:
    """Raises: Refused where one of the sinks is the record or the delivery of another pipeline in use than `own`.

    The database holds two records, or two deliveries, apart; one's record and another's delivery only this does, under
    the lock on both sinks.
    """
    for end in (sink, delivery) if delivery is not None else (sink,):
        used = Pipeline.objects.filter(Q(sink=end) | Q(delivery=end), retired_at__isnull=True)
        used = used.exclude(pk=own.pk) if own else used
        if (other := used.first()) is not None:
            remedy = REMEDIES["a_sink_serves_one_pipeline" if end == sink else "a_delivery_serves_one_pipeline"]
            reason = f"sink {end.name} already serves pipeline {other.name}"
            raise Refused(action, reason, remedy)


def _options_check(given: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise BadInput("pipeline.options", "is not an object", "Write the options as members of one object.")
    parsed = pipeline_options_parse(given)
    pipeline_options_check(parsed)
    return {option: parsed[option] for option in given if parsed[option] is not None}


def _hold_sinks(action: str, sink: Sink, delivery: Sink | None) -> None:
    """Both in use until this transaction ends; in one order, so that no two wait in a ring."""
    for end in sorted([sink] if delivery is None else [sink, delivery], key=lambda one: one.pk):
        _hold_in_use(action, Sink, end)


def _hold_in_use(action: str, model: type[Source] | type[Sink], end: Source | Sink) -> None:
    """Keeps the end in use until this transaction ends. Raises: Refused where it is retired by now."""
    held = model._default_manager.select_for_update(no_key=True).filter(pk=end.pk, retired_at__isnull=True)
    if not held.exists():
        word = model._meta.model_name
        raise Refused(action, f"{word} {end.name} was retired", f"Choose another {word}.")


def _change_says(name: str, before: Any, wanted: Any) -> str:
    """One change as its event words it. Where the events go is said whole: a plan that lapses for it says so, too."""
    if name != "delivery":
        return name.replace("_", " ")
    was, now = (one.name if one else "the record itself" for one in (before, wanted))
    return f"delivery, from {was} to {now}"


def _as_data(value: Any) -> Any:
    return value.name if isinstance(value, Sink) else value


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
