"""Taking a source, a sink or a pipeline out of use. The row and its history stay; the name becomes free again.

Refused while something uses it or works on it, and unless its name was typed.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from django.db import transaction

from recovery_api.domain.errors import BadInput, Refused
from recovery_api.models import LIVE_STATES, End, EventKind, Intent, Pipeline, Recovery, RecoveryState, Sink, Source
from recovery_api.selectors.registry import pipelines_of
from recovery_api.services.events import event_append
from recovery_api.services.plans import plans_lapse
from recovery_api.services.schedules import schedule_end

E = TypeVar("E", bound=End)


def source_retire(source: Source, confirm: str, *, actor: str, now: datetime) -> Source:
    """The source, out of use. Raises: BadInput for another name; Refused while used, worked on, or retired already."""
    return _end_retire(source, confirm, actor=actor, now=now)


def sink_retire(sink: Sink, confirm: str, *, actor: str, now: datetime) -> Sink:
    """The sink, out of use. Raises: BadInput for another name; Refused while used, worked on, or retired already."""
    return _end_retire(sink, confirm, actor=actor, now=now)


def pipeline_retire(pipeline: Pipeline, confirm: str, *, actor: str, now: datetime) -> Pipeline:
    """The pipeline, out of use: its sinks are free for another, its waiting plans lapse, its fence stays where it is.

    Raises: BadInput for another name; Refused while a recovery or other work is unfinished, or retired already.
    """
    action = f"retiring pipeline {pipeline.name}"
    _confirmed("pipeline", pipeline.name, confirm)
    with transaction.atomic():
        locked = Pipeline.objects.select_for_update().get(pk=pipeline.pk)
        _still_in_use(action, locked.retired_at)
        if (recovery := _unfinished(locked)) is not None:
            reason = f"recovery {recovery.id} is unfinished"
            raise Refused(action, reason, f"Wait for it, or settle it: manage.py recovery {recovery.id} settle.")
        schedule_end(locked, actor=actor, now=now)
        _not_worked_on(action, Intent.objects.filter(pipeline=locked, state__in=LIVE_STATES).first())
        locked.retired_at = now
        locked.save(update_fields=["retired_at"])
        free = "its sink is free" if locked.delivery_id is None else "its two sinks are free"
        says = f"Pipeline {locked.name} is out of use; its history stays and {free}."
        data = {"end": "pipeline", "end_id": str(locked.pk), "name": locked.name}
        event_append(EventKind.RETIRED, actor=actor, now=now, says=says, pipeline=locked, data=data)
        plans_lapse(locked, because="The pipeline was retired.", actor=actor, now=now)
    return locked


def unfinished_refuse(action: str, pipelines: list[Pipeline]) -> None:
    """Raises: Refused where a recovery of one of these is unfinished: what it runs on must not change under it."""
    for pipeline in pipelines:
        if (recovery := _unfinished(pipeline)) is not None:
            reason = f"recovery {recovery.id} of pipeline {pipeline.name} is unfinished"
            raise Refused(action, reason, "Wait for it, or stop or settle it first.")


def _end_retire(end: E, confirm: str, *, actor: str, now: datetime) -> E:
    model = type(end)
    word = model._meta.model_name or ""
    action = f"retiring {word} {end.name}"
    _confirmed(word, end.name, confirm)
    with transaction.atomic():
        locked = model._default_manager.select_for_update().get(pk=end.pk)
        _still_in_use(action, locked.retired_at)
        if names := list(pipelines_of(locked).values_list("name", flat=True)):
            reason = f"pipeline{'s' if len(names) > 1 else ''} {', '.join(names)} use{'' if len(names) > 1 else 's'} it"
            raise Refused(action, reason, "Retire what uses it first.")
        _not_worked_on(action, Intent.objects.filter(**{word: locked}, state__in=LIVE_STATES).first())
        locked.retired_at = now
        locked.save(update_fields=["retired_at"])
        says = f"{word.capitalize()} {locked.name} is out of use; its history stays."
        data = {"end": word, "end_id": str(locked.pk), "name": locked.name}
        event_append(EventKind.RETIRED, actor=actor, now=now, says=says, data=data)
    return locked


def _confirmed(word: str, name: str, confirm: str) -> None:
    if confirm != name:
        raise BadInput("confirm", f"{confirm!r} is not this {word}'s name", f"Type the {word}'s name.")


def _still_in_use(action: str, retired_at: datetime | None) -> None:
    if retired_at is not None:
        raise Refused(action, f"it was retired at {retired_at:%Y-%m-%d %H:%M:%S} UTC", "Nothing is left to do.")


def _not_worked_on(action: str, intent: Intent | None) -> None:
    if intent is not None:
        raise Refused(action, f"{intent} is {intent.state}", "Wait for it to end, or cancel it.")


def _unfinished(pipeline: Pipeline) -> Recovery | None:
    return Recovery.objects.filter(pipeline=pipeline).exclude(state=RecoveryState.FINISHED).first()
