"""Intents: created in the transaction of their cause, taken by conditional update, ended by their holder."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When

from recovery_api.domain.actors import by, process_says, subject
from recovery_api.domain.errors import Frozen, Refused, TransientError, UnknownOption
from recovery_api.domain.work import QUEUES, Urgency
from recovery_api.models import (
    Drill,
    DrillState,
    EventKind,
    Freeze,
    Intent,
    IntentAction,
    IntentState,
    Pipeline,
    Plan,
    PlanState,
    Recovery,
    RecoveryState,
    Sink,
    Source,
)
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.events import event_append
from recovery_api.services.wakeups import intent_wake, intent_wake_after_commit, wakeups_waiting

HEARTBEAT_LIMIT = timedelta(seconds=30)
BACKOFF_LIMIT = timedelta(seconds=60)


def intent_create(
    action: str,
    *,
    actor: str,
    now: datetime,
    pipeline: Pipeline | None = None,
    source: Source | None = None,
    sink: Sink | None = None,
    plan: Plan | None = None,
    recovery: Recovery | None = None,
    arguments: Mapping[str, Any] | None = None,
    wake: bool = True,
) -> Intent:
    """A queued intent; a worker is woken after commit unless `wake` is False (the caller runs it itself).

    Raises: UnknownOption for an argument the action does not have; Refused where a live one is in the way.
    """
    known = IntentAction(action).arguments
    for name in arguments or {}:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {nearest[0]!r}?" if nearest else ""
            raise UnknownOption(f"{action}.{name}", ", ".join(sorted(known)) or "none", hint)
    with constraints_mapped(f"{action}"), transaction.atomic():
        intent = Intent.objects.create(
            action=action,
            pipeline=pipeline,
            source=source,
            sink=sink,
            plan=plan,
            recovery=recovery,
            arguments=dict(arguments or {}),
            created_at=now,
            created_by=actor,
            woken_at=now if wake else None,
        )
        if wake:
            intent_wake_after_commit(intent)
    return intent


def intent_take(intent_id: UUID | str, taken_by: str, now: datetime) -> Intent | None:
    """The intent, now held by `taken_by`. None: another got there first, it is finished, or it is not due yet."""
    with transaction.atomic():
        return _take(intent_id, taken_by, now)


def intent_take_next(queue: str, taken_by: str, now: datetime) -> Intent | None:
    """The most urgent due intent of `queue`, now held by `taken_by`. None: nothing of it waits.

    A row that another taker holds at this moment is passed over: two takers get two rows, without waiting.
    """
    actions = [action.value for action in IntentAction if action.queue == queue]
    urgency = Case(
        When(arguments__is_scheduled=True, then=Value(int(Urgency.BY_ITSELF))),
        *(When(action=action.value, then=Value(int(action.urgency))) for action in IntentAction),
        default=Value(len(Urgency)),
    )
    with transaction.atomic():
        most_urgent = (
            Intent.objects.select_for_update(skip_locked=True)
            .filter(_is_due(now), state=IntentState.QUEUED, action__in=actions)
            .order_by(urgency, "created_at")
            .values_list("id", flat=True)
            .first()
        )
        return None if most_urgent is None else _take(most_urgent, taken_by, now)


def _take(intent_id: UUID | str, taken_by: str, now: datetime) -> Intent | None:
    taken = (
        Intent.objects.filter(id=intent_id, state=IntentState.QUEUED)
        .filter(_is_due(now))
        .update(state=IntentState.TAKEN, taken_by=taken_by, taken_at=now, heartbeat_at=now, attempts=F("attempts") + 1)
    )
    if not taken:
        return None
    return Intent.objects.select_related(
        "pipeline__source", "pipeline__sink", "source", "sink", "plan", "recovery__plan"
    ).get(id=intent_id)


def intent_heartbeat(intent: Intent, now: datetime) -> bool:
    """Whether the intent is still ours. False: it was offered to someone else; stop at the next safe point."""
    return _held(intent).update(heartbeat_at=now) == 1


def intent_progress(intent: Intent, progress: Mapping[str, Any], now: datetime) -> bool:
    """As `intent_heartbeat`, and shows `progress` (step, done, total, rate_per_second, says)."""
    return _held(intent).update(progress=dict(progress), heartbeat_at=now) == 1


def intent_spark(intent: Intent, session_id: str, tag: str, now: datetime) -> None:
    """Writes where the Spark job will run, before it runs. Raises: Refused where the intent is no longer ours."""
    if not _held(intent).update(spark_session_id=session_id, spark_tag=tag, heartbeat_at=now):
        raise _lost(intent)
    intent.spark_session_id, intent.spark_tag = session_id, tag


def intent_hold(intent: Intent) -> None:
    """Keeps the intent ours until the surrounding transaction ends. Raises: Refused where it is no longer."""
    if not list(_held(intent).select_for_update().values_list("id")):
        raise _lost(intent)


def intent_finish(intent: Intent, result: Mapping[str, Any], now: datetime) -> None:
    """Done, with its result. Raises: Refused where the intent is no longer ours."""
    if not _held(intent).update(
        state=IntentState.DONE, result=dict(result), error=None, finished_at=now, heartbeat_at=now
    ):
        raise _lost(intent)


def intent_fail(intent: Intent, error_row: Mapping[str, Any], now: datetime) -> None:
    """Failed for good. What it was for learns why in the same transaction. Raises: Refused where no longer ours."""
    with transaction.atomic():
        if not _held(intent).update(state=IntentState.FAILED, error=dict(error_row), finished_at=now):
            raise _lost(intent)
        _tell_what_it_was_for(intent, error_row, now, actor=intent.taken_by)


def intent_release(intent: Intent, error_row: Mapping[str, Any], now: datetime) -> Intent:
    """Back to the queue after a transient failure, later each time; failed once its attempts are used up.

    Raises: Refused where the intent is no longer ours.
    """
    if is_last_attempt(intent):
        intent_fail(intent, error_row, now)
    else:
        wait = min(timedelta(seconds=2**intent.attempts), BACKOFF_LIMIT)
        if not _held(intent).update(state=IntentState.QUEUED, error=dict(error_row), not_before=now + wait):
            raise _lost(intent)
    intent.refresh_from_db()
    return intent


def is_last_attempt(intent: Intent) -> bool:
    """Whether a failure of this attempt, even one that may pass, ends the intent."""
    return intent.attempts >= IntentAction(intent.action).attempts


def intent_give_back(intent: Intent, error_row: Mapping[str, Any] | None, now: datetime) -> bool:
    """Whether it is queued again, for anybody, at once. False: it was no longer ours.

    Its taker was told to stop, or its work stood still: neither ends the work. `error_row` None leaves the last problem
    as it was.
    """
    fields: dict[str, Any] = {"state": IntentState.QUEUED, "not_before": None, "woken_at": None}
    if error_row is not None:
        fields["error"] = dict(error_row)
    return _held(intent).update(**fields) == 1


def intent_cancel(intent: Intent, *, actor: str, now: datetime) -> bool:
    """Whether it was still queued and is now cancelled. False: somebody took it, or it is over."""
    with transaction.atomic():
        cancelled = Intent.objects.filter(id=intent.id, state=IntentState.QUEUED).update(
            state=IntentState.CANCELLED, finished_at=now, result={"cancelled_by": actor}
        )
        if cancelled and intent.action == IntentAction.DRILL:
            Drill.objects.filter(intent=intent, state=DrillState.REQUESTED).update(
                state=DrillState.UNKNOWN, says=f"Cancelled {by(actor)}.", finished_at=now
            )
    return cancelled == 1


def intent_withdraw(intent: Intent, *, actor: str, now: datetime) -> None:
    """Cancels work that nobody has taken yet; a plan it was for is refused with that.

    Raises: Refused where somebody took it, it is over, or it is a recovery's, which is stopped or settled instead.
    """
    if IntentAction(intent.action).is_of_a_recovery:
        raise Refused(
            f"withdrawing {intent}", "it belongs to a recovery, or settles one", "Ask the recovery itself to stop."
        )
    with transaction.atomic():
        if not intent_cancel(intent, actor=actor, now=now):
            raise Refused(
                f"withdrawing {intent}", "a worker has taken it, or it is over", "It only reads; let it end, then look."
            )
        says = f"{subject(actor)} withdrew it before a worker took it."
        _tell_what_it_was_for(intent, {"code": "cancelled", "text": says}, now, actor=actor)


@dataclass(frozen=True, slots=True)
class SweepReport:
    """How many intents a sweep offered again, gave up, and woke a worker for."""

    offered_count: int
    given_up_count: int
    woken_count: int


def intents_sweep(now: datetime, heartbeat_limit: timedelta = HEARTBEAT_LIMIT) -> SweepReport:
    """Offers again what has had no heartbeat, gives up what its takers keep dying of, wakes workers for what is due.

    Several sweeps at once are harmless: each row is locked, and a locked one is left to the other sweep. A heartbeat from
    the future is one from before the clock went back: no sign of life, either.
    """
    offered = given_up = 0
    with transaction.atomic():
        dead = Intent.objects.select_for_update(skip_locked=True, of=("self",)).filter(
            ~Q(heartbeat_at__range=(now - heartbeat_limit, now + heartbeat_limit)), state=IntentState.TAKEN
        )
        for intent in dead:
            if intent.attempts < IntentAction(intent.action).attempts:
                offered += _held(intent).update(state=IntentState.QUEUED, not_before=None, woken_at=None)
                continue
            problem = f"{intent.attempts} workers took this and none ended it; the last was {process_says(intent.taken_by) or intent.taken_by}"
            error_row = TransientError(problem=problem).as_row()
            _held(intent).update(state=IntentState.FAILED, error=error_row, finished_at=now)
            _tell_what_it_was_for(intent, error_row, now, actor="sweep")
            given_up += 1
    return SweepReport(offered, given_up, intents_wake(now))


def intents_wake(now: datetime) -> int:
    """Tops the broker's wake-ups up to the number of rows that are due. Those it has already are not sent again."""
    woken = 0
    due = Intent.objects.filter(_is_due(now), state=IntentState.QUEUED)
    for queue in QUEUES:
        mine = due.filter(action__in=[action.value for action in IntentAction if action.queue == queue])
        if not (count := mine.count()):
            continue
        waiting = wakeups_waiting(queue)
        if waiting is None:
            return woken  # the broker is away: do not wait a second for each of the rest
        for intent in mine.order_by(F("woken_at").asc(nulls_first=True), "created_at")[: max(0, count - waiting)]:
            if not intent_wake(str(intent.id), intent.action):
                return woken
            woken += Intent.objects.filter(id=intent.id, state=IntentState.QUEUED).update(woken_at=now)
    return woken


def _is_due(now: datetime) -> Q:
    """Nothing is put off for longer than BACKOFF_LIMIT: what seems to be was put off before the clock went back.

    What holds because its pipeline is frozen waits for the freeze to be lifted, and occupies no worker meanwhile.
    """
    standing = Freeze.objects.filter(
        Q(pipeline__isnull=True) | Q(pipeline=OuterRef("pipeline")), lifted_at__isnull=True
    )
    may_go_on = Q(error__isnull=True) | ~Q(error__code=Frozen.code) | ~Exists(standing)
    return (Q(not_before__isnull=True) | Q(not_before__lte=now) | Q(not_before__gt=now + BACKOFF_LIMIT)) & may_go_on


def _held(intent: Intent) -> QuerySet[Intent]:
    return Intent.objects.filter(
        id=intent.id, state=IntentState.TAKEN, taken_by=intent.taken_by, attempts=intent.attempts
    )


def _lost(intent: Intent) -> Refused:
    return Refused(f"ending {intent}", "another worker holds it now, or it is over", "Nothing was written; stop here.")


def _tell_what_it_was_for(intent: Intent, error_row: Mapping[str, Any], now: datetime, actor: str) -> None:
    """A failed plan intent refuses its plan, a failed drill is unknown, a failed recovery waits to be settled."""
    says = str(error_row.get("text") or error_row.get("code") or "failed")
    data = {"error": dict(error_row), "intent": str(intent.id)}
    if intent.plan is not None and intent.action == IntentAction.PLAN:
        condition = {"name": "evidence", "holds": None, "says": says, "remedy": "Put it right, then plan again."}
        if Plan.objects.filter(id=intent.plan_id, state__in=[PlanState.DRAFT, PlanState.COMPUTING]).update(
            state=PlanState.REFUSED, says=says, conditions=[condition], computed_at=now
        ):
            event_append(EventKind.PLAN_REFUSED, actor=actor, now=now, says=says, plan=intent.plan, data=data)
    elif intent.action == IntentAction.DRILL:
        Drill.objects.filter(intent=intent, state=DrillState.REQUESTED).update(
            state=DrillState.UNKNOWN, says=f"It could not be run to its end: {says}", finished_at=now
        )
        event_append(EventKind.WORK_FAILED, actor=actor, now=now, says=says, pipeline=intent.pipeline, data=data)
    elif intent.recovery is not None:
        if (
            Recovery.objects.filter(id=intent.recovery_id)
            .exclude(state=RecoveryState.FINISHED)
            .update(problem=dict(error_row), revision=F("revision") + 1)
        ):
            event_append(
                EventKind.RECOVERY_TROUBLED, actor=actor, now=now, says=says, recovery=intent.recovery, data=data
            )
    elif intent.pipeline is not None and not _failed_before(intent, error_row):
        event_append(EventKind.WORK_FAILED, actor=actor, now=now, says=says, pipeline=intent.pipeline, data=data)


def _failed_before(intent: Intent, error_row: Mapping[str, Any]) -> bool:
    """Whether a schedule asks again and again, and the last time ended the same: the timeline has it already."""
    if not intent.arguments.get("is_scheduled"):
        return False
    ended = Intent.objects.filter(pipeline=intent.pipeline, action=intent.action, arguments__is_scheduled=True)
    before = ended.filter(finished_at__isnull=False).exclude(pk=intent.pk).order_by("-finished_at").first()
    return before is not None and (before.error or {}).get("code") == error_row.get("code")
