"""Reads of recoveries and the timeline."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet

from recovery_api.domain.attestations import attestations_stored
from recovery_api.domain.errors import NotFound
from recovery_api.domain.steering import Steering, steering_of
from recovery_api.domain.strategies import strategy_named
from recovery_api.domain.strategies.base import Fact, Strategy
from recovery_api.domain.strategies.fenced import FENCED
from recovery_api.domain.strategies.steps import Step, steps_of
from recovery_api.models import LIVE_STATES, Audit, Event, Intent, Pipeline, Plan, Recovery


def recovery_get(id_or_pipeline: UUID | str) -> Recovery:
    """A recovery by its id, or the newest of the pipeline so named. Raises: NotFound."""
    found = Recovery.objects.select_related("pipeline__source", "pipeline__sink", "plan")
    try:
        recovery = found.filter(id=UUID(str(id_or_pipeline))).first()
    except ValueError:
        recovery = found.filter(pipeline__name=id_or_pipeline).order_by("-created_at").first()
    if recovery is None:
        raise NotFound(f"A recovery {id_or_pipeline}", "the control database", "Name a recovery's id or a pipeline.")
    return recovery


def recovery_by_id(recovery_id: UUID | str) -> Recovery:
    """Raises: NotFound."""
    try:
        return recovery_list().get(id=UUID(str(recovery_id)))
    except (ValueError, Recovery.DoesNotExist) as error:
        raise NotFound(f"Recovery {recovery_id}", "the control database", "") from error


def recovery_list(pipeline: Pipeline | None = None) -> QuerySet[Recovery]:
    """Newest first."""
    found = Recovery.objects.select_related("pipeline__source", "pipeline__sink", "plan").order_by("-created_at")
    return found.filter(pipeline=pipeline) if pipeline else found


def with_live_work(found: QuerySet[Recovery]) -> QuerySet[Recovery]:
    """The same rows, each with `live_work`: its live intent in a list, or none. One query more, whatever their number."""
    live = Intent.objects.filter(state__in=LIVE_STATES).select_related("pipeline")
    return found.prefetch_related(Prefetch("intents", live, to_attr="live_work"))


def timeline(pipeline: Pipeline | None = None, recovery: Recovery | None = None, after_id: int = 0) -> QuerySet[Event]:
    """Events in the order they were appended; of a recovery, those of its plan too."""
    found = Event.objects.select_related("pipeline").filter(id__gt=after_id).order_by("id")
    if recovery is not None:
        found = found.filter(Q(recovery=recovery) | Q(plan=recovery.plan_id))
    if pipeline is not None:
        found = found.filter(pipeline=pipeline)
    return found


def recovery_intent(recovery: Recovery) -> Intent | None:
    """Who is at it, or will be. None: nobody; where it is unfinished it waits to be settled."""
    return Intent.objects.filter(recovery=recovery, state__in=LIVE_STATES).first()


def recovery_verification(recovery: Recovery) -> Audit | None:
    """The newest audit made after its fire."""
    return recovery.audits.order_by("-finished_at").first()


def recovery_steps(recovery: Recovery, verification: Audit | None) -> list[Step]:
    """Its numbered steps, as far as its row remembers what the sink said."""
    shown = {
        Fact.CLAIMED: recovery.claimed_at is not None,
        Fact.ARMED: recovery.armed_count is not None,
        Fact.FIRED: recovery.fired_at is not None,
        Fact.VERIFIED: verification is not None,
        Fact.HANDED_OVER: recovery.start is not None,
    }
    return steps_of(plan_strategy(recovery.plan), recovery.state, {fact for fact, holds in shown.items() if holds})


def recovery_attested(recovery: Recovery) -> list[dict[str, str | None]]:
    """What was attested for it: what, since when and by whom where that was asked, who recorded it and when."""
    return [
        {
            "name": one.name,
            "text": one.text(),
            "given": one.given(),
            "since": one.since.isoformat() if one.since else None,
            "by": one.by or None,
            "attested_by": recovery.requested_by,
            "attested_at": recovery.created_at.isoformat(),
        }
        for one in attestations_stored(recovery.attestations)
    ]


def plan_strategy(plan: Plan) -> Strategy:
    """The strategy that the plan was made for. One of before strategies had names is fenced: there was no other."""
    return strategy_named(plan.pins.get("strategy") or FENCED.name)


def recovery_of_plan(plan_id: UUID | str) -> Recovery | None:
    """The recovery a plan was applied as: there is at most one."""
    return Recovery.objects.filter(plan=plan_id).first()


def recovery_steering(recovery: Recovery) -> Steering:
    """What was asked of a recovery, and what is so."""
    holds = recovery.progress or {}
    has_part_left = recovery.batch_index < recovery.batches
    return steering_of(
        plan_strategy(recovery.plan),
        recovery.state,
        recovery.wanted,
        recovery.wanted_by,
        holds.get("holds_before"),
        has_part_left,
        holds.get("because", ""),
    )
