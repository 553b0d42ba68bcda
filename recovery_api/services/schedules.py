"""Schedules: audits that are due are asked for as intents, by whichever worker sweeps first.

The row is what remembers: next due is stored, and counted from what was stored. A pipeline without a row gets one from
the sweep, by the control database's clock, as does one whose options changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Least

from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.schedules import (
    ACTOR,
    Cadence,
    Pin,
    PinnedLane,
    Waiting,
    cadence_of,
    due_next,
    pins_keep,
    waiting_settle,
)
from recovery_api.models import LIVE_STATES, Audit, Intent, IntentAction, IntentState, Pipeline, Schedule
from recovery_api.selectors.retention import audits_unneeded
from recovery_api.services.evidence_places import evidence_release
from recovery_api.services.gone import audits_delete, intents_delete
from recovery_api.services.intents import intent_create, intent_finish

KEPT = timedelta(days=1)
"""How long a scheduled audit is kept that said nothing new."""

AT_ONCE = 200
"""So many audits one sweep asks for at most, the longest due first: it has other things to do every ten seconds."""

FORGOTTEN_AT_ONCE = 5000
"""So many audits one sweep forgets at most, of all pipelines together."""


def schedules_sweep(now: datetime) -> int:
    """How many audits that are due were asked for. Two sweeps at once ask for each once: the row's due time is guarded."""
    _settle(now)
    due = Schedule.objects.filter(next_due_at__lte=now, pipeline__retired_at__isnull=True)
    return sum(schedule_ask(one, now) for one in due.select_related("pipeline").order_by("next_due_at")[:AT_ONCE])


def schedule_renew(pipeline: Pipeline) -> None:
    """Has the sweep count anew when the pipeline is due: its options changed."""
    Schedule.objects.filter(pipeline=pipeline).update(next_due_at=None)


def schedule_end(pipeline: Pipeline, *, actor: str, now: datetime) -> None:
    """Withdraws what the schedule asked for and nobody has taken: the pipeline goes out of use."""
    queued = Intent.objects.filter(pipeline=pipeline, action=IntentAction.AUDIT, state=IntentState.QUEUED)
    queued.filter(arguments__is_scheduled=True).update(
        state=IntentState.CANCELLED, finished_at=now, result={"cancelled_by": actor}
    )


def pins_forget(pipelines: Collection[Pipeline]) -> None:
    """Of these pipelines nothing that was pinned counts any more: other rows are read, or a row came in below."""
    Schedule.objects.filter(pipeline__in=pipelines).update(pins=[], waiting={}, waiting_since=None)


def schedule_pin(intent: Intent, pin: Pin, now: datetime) -> None:
    """Ends a scheduled audit that found no frontier a window old: it pinned one, and is due again when that is.

    Raises: Refused where the intent is no longer ours.
    """
    with transaction.atomic():
        schedule = _locked(intent.pipeline, pin.at)
        cadence = _cadence(intent.pipeline)
        schedule.pins = [one.as_row() for one in pins_keep(pins_of(schedule), pin, cadence.window)]
        schedule.save(update_fields=["pins"])
        Schedule.objects.filter(pk=schedule.pk).update(
            next_due_at=Least(F("next_due_at"), Value(pin.at + cadence.window))
        )
        intent_finish(intent, {"pinned_at": pin.at.isoformat()}, now)


def schedule_record(audit: Audit, pin: Pin | None, waiting: Mapping[str, PinnedLane] | None) -> None:
    """What an audit leaves for the next: its frontier, pinned; what waits since when; and that it answers what was due.

    `pin` None: it read nothing that may be pinned; `waiting` None: nor does it say what waits. In the audit's transaction.
    """
    schedule = _locked(audit.pipeline, audit.record_read_at)
    pins = pins_of(schedule)
    if waiting is not None:
        before = {lane: Waiting.from_row(row) for lane, row in schedule.waiting.items()}
        settled = waiting_settle(before, waiting, pins, audit.record_read_at)
        schedule.waiting = {lane: one.as_row() for lane, one in settled.items()}
        schedule.waiting_since = min((one.since for one in settled.values()), default=None)
    if pin is not None:
        kept = pins_keep(pins, pin, _cadence(audit.pipeline).window)
        schedule.pins = [one.as_row() for one in kept]
    if schedule.due_at is not None and (audit.is_scheduled or audit.record_read_at >= schedule.due_at):
        schedule.due_at = None
    schedule.save(update_fields=["pins", "waiting", "waiting_since", "due_at"])


def schedule_forget(pipeline: Pipeline, now: datetime) -> None:
    """Forgets scheduled audits of before yesterday with their evidence: told nowhere, relied on by nothing, and followed by
    one that reaches as far. A period of minutes would fill any disk else.
    """
    _forget(Pipeline.objects.filter(pk=pipeline.pk), now, AT_ONCE)


def schedules_forget(now: datetime) -> None:
    """The same of every pipeline, also of those that nothing audits any more. Where more is left, the next sweep goes on."""
    _forget(Pipeline.objects.all(), now, FORGOTTEN_AT_ONCE)


def _forget(pipelines: QuerySet[Pipeline], now: datetime, most: int) -> None:
    before = now - KEPT
    mine = Audit.objects.filter(pipeline__in=pipelines, is_scheduled=True, is_standing=False, finished_at__lt=before)
    mine = audits_unneeded(mine)
    spent = Intent.objects.filter(pipeline__in=pipelines, action=IntentAction.AUDIT, arguments__is_scheduled=True)
    spent = spent.filter(finished_at__lt=before, audits__isnull=True).order_by("finished_at")
    try:
        with transaction.atomic():
            chosen = list(mine.order_by("finished_at").values_list("pk", "evidence_uri")[:most])
            audits_delete([pk for pk, _ in chosen])
            intents_delete(list(spent.values_list("pk", flat=True)[:most]))
            evidence_release([uri for _, uri in chosen], now)
    except IntegrityError:  # something began to rest on one of them meanwhile: a later sweep chooses again
        pass


def pins_of(schedule: Schedule) -> list[Pin]:
    return [Pin.from_row(row) for row in schedule.pins]


def _settle(now: datetime) -> None:
    """Says when those are due of which no row says it: by what was due last, else by when they were registered."""
    is_on = Q(options__is_scheduled__isnull=True) | Q(options__is_scheduled=True)
    unsaid = Q(schedule__isnull=True) | Q(schedule__next_due_at__isnull=True)
    for pipeline in Pipeline.objects.filter(is_on, unsaid, retired_at__isnull=True).select_related("schedule"):
        schedule: Schedule | None = getattr(pipeline, "schedule", None)
        last = (schedule.last_due_at if schedule else None) or pipeline.created_at
        due = due_next(min(last, now), now, str(pipeline.pk), _cadence(pipeline))
        if schedule is None:
            row = Schedule(pipeline=pipeline, next_due_at=due, next_full_at=due)
            Schedule.objects.bulk_create([row], ignore_conflicts=True)  # another sweep's says the same
        else:
            Schedule.objects.filter(pk=pipeline.pk, next_due_at__isnull=True).update(next_due_at=due)


def schedule_ask(schedule: Schedule, now: datetime) -> bool:
    """Whether an audit was asked for. False: another sweep did since `schedule` was read, the last audit is not over, or
    its schedule is off."""
    pipeline, due = schedule.pipeline, schedule.next_due_at
    assert due is not None
    cadence, mine = _cadence(pipeline), Schedule.objects.filter(pk=schedule.pk, next_due_at=due)
    if not cadence.is_on:
        mine.update(next_due_at=None, due_at=None)
        return False
    is_full = schedule.next_full_at <= now
    with transaction.atomic():
        following = due_next(due, now, str(pipeline.pk), cadence)
        unanswered = Coalesce(F("due_at"), Value(due))
        if not mine.update(next_due_at=following, last_due_at=due, due_at=unanswered):
            return False
        asked = Intent.objects.filter(pipeline=pipeline, action=IntentAction.AUDIT, state__in=LIVE_STATES)
        if asked.filter(arguments__is_scheduled=True).exists():
            return False
        if is_full:
            full_at = now + cadence.full_period
            Schedule.objects.filter(pk=schedule.pk).update(next_full_at=full_at)
        arguments = {"frontier": None, "is_full": is_full, "is_scheduled": True}
        intent_create(IntentAction.AUDIT, actor=ACTOR, now=now, pipeline=pipeline, arguments=arguments, wake=False)
    return True


def _locked(pipeline: Pipeline, at: datetime) -> Schedule:
    """The pipeline's row, held until the transaction ends; one that says nothing yet where there was none."""
    Schedule.objects.bulk_create([Schedule(pipeline=pipeline, next_full_at=at)], ignore_conflicts=True)
    return Schedule.objects.select_for_update(no_key=True).get(pk=pipeline.pk)


def _cadence(pipeline: Pipeline) -> Cadence:
    return cadence_of(pipeline_options_parse(pipeline.options))
