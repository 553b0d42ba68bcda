"""What a sink last said about itself. Never lowered silently: a sink found behind its memory was restored."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from recovery_api.domain.commands import command_line
from recovery_api.domain.errors import Refused
from recovery_api.domain.restores import RestoreFinding, SinkMemory, Standing, restore_find
from recovery_api.models import Audit, EventKind, Intent, IntentAction, Pipeline, Recovery, Sink
from recovery_api.selectors.registry import pipeline_of
from recovery_api.services.blocks import blocks_forget
from recovery_api.services.events import event_append
from recovery_api.services.history import observations_end
from recovery_api.services.intents import intent_create
from recovery_api.services.ledger import ledger_void
from recovery_api.services.plans import plans_lapse

RESTORED = "The sink was restored to an earlier state after it; what it found says nothing about the sink now."
"""Why what was found before a restore is void."""


def sink_remember(sink: Sink, said: SinkMemory, *, actor: str, now: datetime) -> RestoreFinding:
    """What was found by comparing `said` with the memory, which keeps the greater of both.

    A sink found restored stays so until `sink_clear`: nothing fires, its pipelines' certificates, audits and waiting
    plans are void from now on. The finding of a sink that is waiting to be cleared is restored, too.
    """
    with transaction.atomic():
        locked = Sink.objects.select_for_update(no_key=True).get(id=sink.id)
        finding = restore_find(memory_of(locked), said)
        if locked.restored_at is not None and not finding.is_restored:
            finding = replace(finding, standing=Standing.RESTORED, behind=("it was found restored and is not cleared",))
        memory = finding.memory
        locked.said_identity, locked.said_counter = memory.incarnation, memory.counter
        locked.said_fence, locked.said_last_entry = memory.fence, memory.last_entry
        locked.said_at = now
        if finding.is_restored and locked.restored_at is None:
            locked.restored_at, locked.restored_says = now, finding.says
            _void(locked, finding, actor, now)
            blocks_forget(Pipeline.objects.filter(sink=locked))
        if locked.restored_at is not None:
            locked.counter_floor = max(finding.counter_floor, locked.counter_floor or 0)
        locked.save(
            update_fields=[
                "said_identity",
                "said_counter",
                "said_fence",
                "said_last_entry",
                "said_at",
                "restored_at",
                "restored_says",
                "counter_floor",
            ]
        )
    return finding


def sink_clear(sink: Sink, said: SinkMemory, *, audit: Audit, is_record_whole: bool, actor: str, now: datetime) -> Sink:
    """The sink, trusted again after a restore, its memory what it says now.

    Raises: Refused unless its counter passed the floor and `audit` is a full one, of this sink's pipeline, begun after the
    restore was found, and read the whole record (`is_record_whole`; its verdict may well be owed, or unknown below
    the floor: the restore is what lost that).
    """
    with transaction.atomic():
        locked = Sink.objects.select_for_update(no_key=True).get(id=sink.id)
        if locked.restored_at is None:
            return locked
        action = f"clearing sink {sink.name}"
        if said.counter is not None and said.counter <= (locked.counter_floor or 0):
            reason = f"its counter is {said.counter} and must pass {locked.counter_floor}"
            raise Refused(action, reason, "Raise the counter at the sink first.")
        is_whole = audit.is_full and is_record_whole and audit.started_at >= locked.restored_at
        if not is_whole or sink.id not in (audit.pipeline.sink_id, audit.pipeline.delivery_id):
            raise Refused(
                action, "no full audit has read it since", f"Run: {command_line('sinks', 'settle', sink.name)}."
            )
        locked.said_identity, locked.said_counter = said.incarnation, said.counter
        locked.said_fence, locked.said_last_entry = said.fence, said.last_entry
        locked.said_at, locked.restored_at, locked.restored_says, locked.counter_floor = now, None, "", None
        locked.save()
        says = f"Sink {sink.name} is trusted again: counter {said.counter}, full audit {audit.id}."
        event_append(EventKind.SINK_CLEARED, actor=actor, now=now, says=says, pipeline=audit.pipeline, audit=audit)
    return locked


def sink_settle_request(sink: Sink, *, actor: str, now: datetime, wake: bool = True) -> Intent:
    """An intent to compare the sink with the memory of it and, where it was restored, to make it safe again.

    Raises: Refused where the sink serves no pipeline.
    """
    pipeline = pipeline_of(sink)
    if pipeline is None:
        raise Refused(f"settling sink {sink.name}", "it serves no pipeline", "Register a pipeline for it first.")
    return intent_create(IntentAction.SETTLE, actor=actor, now=now, pipeline=pipeline, sink=sink, wake=wake)


def memory_of(sink: Sink) -> SinkMemory | None:
    """What is remembered of the sink. None: it never said anything."""
    if sink.said_identity is None:
        return None
    return SinkMemory(sink.said_identity, sink.said_counter, sink.said_fence, sink.said_last_entry)


def _void(sink: Sink, finding: RestoreFinding, actor: str, now: datetime) -> None:
    for pipeline in Pipeline.objects.filter(Q(sink=sink) | Q(delivery=sink)):
        if pipeline.sink_id == sink.pk:  # what was read of a record of its own still stands
            Recovery.objects.filter(
                pipeline=pipeline, certificate__isnull=False, certificate_void_since__isnull=True
            ).update(certificate_void_since=now, certificate_void_says=RESTORED)
            Audit.objects.filter(pipeline=pipeline, void_since__isnull=True).update(void_since=now, void_says=RESTORED)
            observations_end([pipeline], now)
            ledger_void(pipeline, RESTORED, now)
        event_append(
            EventKind.SINK_RESTORED,
            actor=actor,
            now=now,
            says=finding.says,
            pipeline=pipeline,
            data={"behind": list(finding.behind), "counter_floor": str(finding.counter_floor)},
        )
        plans_lapse(pipeline, because="The sink was restored.", actor=actor, now=now)
