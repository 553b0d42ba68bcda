"""Drills: asked for as an intent, by a person or by a sink's schedule; recorded whole with their evidence."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from recovery_api.domain.drills import DrillResult, DrillVerdict, drill_names, verdict_of, verdict_says
from recovery_api.domain.errors import BadInput, Frozen, Refused
from recovery_api.models import Drill, DrillState, EventKind, Intent, IntentAction, Sink
from recovery_api.selectors.freezes import freeze_of, frozen_error
from recovery_api.selectors.registry import pipeline_of, pipelines_of
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.events import event_append
from recovery_api.services.intents import intent_create, intent_finish

STATE_OF = {
    DrillVerdict.PASSED: DrillState.PASSED,
    DrillVerdict.FAILED: DrillState.FAILED,
    DrillVerdict.NOT_APPLICABLE: DrillState.NOT_APPLICABLE,
    DrillVerdict.UNKNOWN: DrillState.UNKNOWN,
}
SCHEDULE = "schedule"
"""Who asked, where a sink's schedule did."""


def drill_request(
    sink: Sink, *, actor: str, now: datetime, names: Iterable[str] = (), wake: bool = True
) -> tuple[Drill, Intent]:
    """A run of these drills (none named: all) and the intent to do it.

    Raises: UnknownOption for a name that is no drill; Refused where one of this sink is under way; Frozen.
    """
    wanted = [name.value for name in drill_names(names)] if (names := list(names)) else []
    pipeline = pipeline_of(sink)
    if (freeze := freeze_of(pipeline.pk if pipeline else None)) is not None:
        raise frozen_error(freeze, f"Drilling sink {sink.name}")
    with constraints_mapped(f"drilling sink {sink.name}"), transaction.atomic():
        intent = intent_create(
            IntentAction.DRILL,
            actor=actor,
            now=now,
            pipeline=pipeline,
            sink=sink,
            arguments={"names": wanted},
            wake=wake,
        )
        drill = Drill.objects.create(sink=sink, intent=intent, names=wanted, requested_by=actor, requested_at=now)
        event_append(
            EventKind.DRILL_REQUESTED,
            actor=actor,
            now=now,
            says=f"Sink {sink.name} is asked to prove what its recoveries rest on: {', '.join(wanted) or 'every drill'}.",
            pipeline=pipeline,
            data={"drill": str(drill.id), "sink": sink.name},
        )
    return drill, intent


def drill_record(drill: Drill, results: Iterable[DrillResult], *, intent: Intent, now: datetime) -> Drill:
    """The run with its results; its intent ends with it. A pass counts for the sink where every drill was asked for.

    Raises: Refused where the intent is no longer ours.
    """
    found = list(results)
    verdict, says = verdict_of(found), verdict_says(found)
    with transaction.atomic():
        intent_finish(intent, {"drill": str(drill.id), "verdict": verdict.value}, now)
        drill.state, drill.says, drill.finished_at = STATE_OF[verdict], says, now
        drill.results = [result.as_row() for result in found]
        drill.save(update_fields=["state", "says", "results", "finished_at"])
        if verdict is DrillVerdict.PASSED and not drill.names:
            Sink.objects.filter(id=drill.sink_id).update(drill_passed_at=now)
        event_append(
            EventKind.DRILL_RECORDED,
            actor=intent.taken_by,
            now=now,
            says=f"Drills of sink {drill.sink.name}: {says}",
            pipeline=intent.pipeline,
            data={"drill": str(drill.id), "sink": drill.sink.name, "verdict": verdict.value},
        )
    return drill


def drill_schedule(sink: Sink, every_hours: int | None, *, actor: str, now: datetime) -> Sink:
    """The sink, drilled every so many hours from now on; None: only when asked. Raises: BadInput."""
    if every_hours is not None and not 1 <= every_hours <= 24 * 366:
        raise BadInput("every_hours", f"{every_hours} is not between 1 hour and a year", "Give whole hours, or none.")
    with transaction.atomic():
        if not Sink.objects.filter(id=sink.id, retired_at__isnull=True).update(drill_every_hours=every_hours):
            raise Refused(f"scheduling drills of sink {sink.name}", "it is retired", "")
        says = f"every {every_hours} hours" if every_hours else "only when asked"
        for pipeline in pipelines_of(sink):
            event_append(
                EventKind.END_CHANGED,
                actor=actor,
                now=now,
                says=f"Sink {sink.name} is drilled {says}.",
                pipeline=pipeline,
            )
    sink.drill_every_hours = every_hours
    return sink


def drills_sweep(now: datetime) -> int:
    """Requests the drills that are due by their sinks' schedules; how many. Two sweeps at once request each once."""
    live = Drill.objects.filter(sink=OuterRef("pk"), state=DrillState.REQUESTED)
    requested = 0
    for sink in Sink.objects.filter(~Exists(live), retired_at__isnull=True, drill_every_hours__isnull=False):
        last = sink.drills.filter(Q(names=[])).order_by("-requested_at").values_list("requested_at", flat=True).first()
        if last is not None and now - last < timedelta(hours=sink.drill_every_hours):
            continue
        try:
            drill_request(sink, actor=SCHEDULE, now=now)
        except (Refused, Frozen):  # another sweep, or a person, asked between our two looks; or nothing may be sent
            continue
        requested += 1
    return requested
