"""Plans: inert until somebody approves their digest, and applied once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from recovery_api.domain.actors import actor_name, by, is_by_command
from recovery_api.domain.commands import command_line
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import (
    WAITING_STATES,
    EventKind,
    Intent,
    IntentAction,
    Pipeline,
    Plan,
    PlanState,
)
from recovery_api.selectors.plans import approval_until, plan_get
from recovery_api.services.constraints import constraints_mapped
from recovery_api.services.events import event_append
from recovery_api.services.findings import ListedFinding, plan_listing_record
from recovery_api.services.frontiers import frontier_check
from recovery_api.services.intents import intent_create, intent_finish

UNFINISHED = (PlanState.DRAFT, PlanState.COMPUTING)
CHANGED_MEANWHILE = "Plan lapsed: its pipeline, or one of its ends, was changed while it was computed."


def plan_again(pipeline: Pipeline) -> str:
    """What lifts most refusals of a plan."""
    return f"Plan again: {command_line('plan', pipeline.name)}."


def plan_request(
    pipeline: Pipeline, *, actor: str, now: datetime, frontier: str | None = None, wake: bool = True
) -> tuple[Plan, Intent]:
    """A draft and the intent that computes it. Raises: BadCoordinate, BadInput; changes nothing at either end."""
    row = frontier_check(pipeline, frontier)
    with transaction.atomic():
        plan = Plan.objects.create(pipeline=pipeline, frontier=row, author=actor, created_at=now)
        says = f"Plan at {frontier or 'the safe frontier'} asked for."
        event_append(EventKind.PLAN_REQUESTED, actor=actor, now=now, says=says, plan=plan)
        intent = intent_create(
            IntentAction.PLAN,
            actor=actor,
            now=now,
            pipeline=pipeline,
            plan=plan,
            arguments={"frontier": row},
            wake=wake,
        )
    return plan, intent


def plan_start(plan: Plan) -> Plan:
    """The plan, computing. Raises: Refused where it is already computed or refused."""
    if not Plan.objects.filter(id=plan.id, state__in=UNFINISHED).update(state=PlanState.COMPUTING):
        raise Refused(f"computing {plan}", "it is over", plan_again(plan.pipeline))
    plan.refresh_from_db()
    return plan


def plan_record(
    plan: Plan,
    *,
    digest: str,
    frontier: Mapping[str, Any],
    conditions: Sequence[Mapping[str, Any]],
    batch: Mapping[str, Any],
    batch_count: int,
    says: str,
    now: datetime,
    intent: Intent | None = None,
    listing: Iterable[ListedFinding] = (),
    **fields: Any,
) -> Plan:
    """The computed plan: ready where something is to be sent, else nothing owed; its intent ends with it.

    An earlier plan still waiting lapses; where a newer one is already waiting, or the pipeline or one of its ends was
    changed while this one was computed, this one is recorded as lapsed.
    `fields` are further columns of Plan; `listing`: its findings in the order of lane and coordinate.
    Raises: Refused where the plan or its intent is no longer ours.
    """
    if not digest:
        raise BadInput("plan.digest", "is empty", "A plan without a digest cannot be approved.")
    state = PlanState.READY if batch_count else PlanState.NOTHING_OWED
    actor = intent.taken_by if intent else plan.author
    with constraints_mapped("recording the plan"), transaction.atomic():
        whole = Pipeline.objects.select_related("source", "sink", "delivery")
        pipeline = whole.select_for_update(no_key=True, of=("self",)).get(id=plan.pipeline_id)
        is_changed = _read_as(pipeline) != _read_as(plan.pipeline)
        newer = Plan.objects.filter(
            pipeline=pipeline, created_at__gt=plan.created_at, state__in=[*WAITING_STATES, PlanState.NOTHING_OWED]
        ).exists()
        if newer or is_changed:
            state = PlanState.LAPSED
        else:
            plans_lapse(pipeline, because=f"Plan {plan.id} supersedes it.", actor=actor, now=now, but=plan)
        _write(
            plan,
            state=state,
            digest=digest,
            frontier=dict(frontier),
            conditions=[dict(condition) for condition in conditions],
            batch=dict(batch),
            batch_count=batch_count,
            says=says,
            computed_at=now,
            **fields,
        )
        plan_listing_record(plan, pipeline, listing)
        data = {"digest": digest, "batch_count": str(batch_count), "state": state}
        event_append(EventKind.PLAN_RECORDED, actor=actor, now=now, says=says, plan=plan, data=data)
        if is_changed:
            event_append(EventKind.PLAN_LAPSED, actor=actor, now=now, says=CHANGED_MEANWHILE, plan=plan)
        if intent is not None:
            intent_finish(intent, {"plan": str(plan.id), "state": state, "digest": digest}, now)
    plan.refresh_from_db()
    return plan


def plan_refuse(
    plan: Plan,
    *,
    conditions: Sequence[Mapping[str, Any]],
    says: str,
    now: datetime,
    intent: Intent | None = None,
    **fields: Any,
) -> Plan:
    """The plan, refused by its conditions; its intent ends with it. Raises: Refused where no longer ours."""
    actor = intent.taken_by if intent else plan.author
    with transaction.atomic():
        _write(
            plan,
            state=PlanState.REFUSED,
            conditions=[dict(condition) for condition in conditions],
            says=says,
            computed_at=now,
            **fields,
        )
        event_append(EventKind.PLAN_REFUSED, actor=actor, now=now, says=says, plan=plan)
        if intent is not None:
            intent_finish(intent, {"plan": str(plan.id), "state": PlanState.REFUSED}, now)
    plan.refresh_from_db()
    return plan


def plan_approve(plan_id: UUID | str, digest: str, actor: str, now: datetime) -> Plan:
    """The plan, approved by its digest. Approving it twice is one approval.

    Raises: NotFound; Refused where the digest is another, the plan is not ready, or its author may not.
    """
    plan = plan_get(plan_id)
    action = f"approving {plan}"
    again = plan_again(plan.pipeline)
    if plan.state not in WAITING_STATES:
        raise Refused(action, f"it is {PlanState(plan.state).label.lower()}, not ready", again)
    if plan.digest != digest:
        raise Refused(
            action, f"its digest is {plan.digest}, not {digest}", "Look at the plan again, then approve that."
        )
    if plan.pipeline.requires_other_approver:
        _check_other_approver(plan, actor, action)
    with transaction.atomic():
        approved = Plan.objects.filter(id=plan.id, state=PlanState.READY, digest=digest).update(
            state=PlanState.APPROVED, approved_by=actor, approved_at=now, approved_digest=digest
        )
        plan.refresh_from_db()
        if approved:
            says = f"{plan.batch_count:,} events approved {by(actor)}, by digest {digest}."
            event_append(EventKind.PLAN_APPROVED, actor=actor, now=now, says=says, plan=plan, data={"digest": digest})
    if plan.state != PlanState.APPROVED:
        raise Refused(action, f"it is {PlanState(plan.state).label.lower()} by now", again)
    return plan


def _check_other_approver(plan: Plan, actor: str, action: str) -> None:
    """Four eyes are two people. A typed name is none, unless the pipeline takes it for one. Raises: Refused."""
    is_typed_allowed = pipeline_options_parse(plan.pipeline.options)["approval_by_command"]
    if is_by_command(actor) and not is_typed_allowed:
        raise Refused(
            action,
            f"{actor_name(actor)} is a typed name, not a person who signed in, and this pipeline asks for a second person",
            f"Approve it on its page, /plans/{plan.id}/, or by REST with a token; or let this pipeline take typed names: "
            f"manage.py pipelines edit {plan.pipeline.name} --option approval_by_command=true.",
        )
    if actor_name(actor) == actor_name(plan.author):
        raise Refused(
            action, f"{actor_name(actor)} is its author", "Ask another person, or register the pipeline to allow it."
        )


def plan_lapse(plan: Plan, *, because: str, actor: str, now: datetime) -> bool:
    """Whether the plan was waiting and has now lapsed."""
    with transaction.atomic():
        lapsed = Plan.objects.filter(id=plan.id, state__in=WAITING_STATES).update(state=PlanState.LAPSED) == 1
        if lapsed:
            event_append(EventKind.PLAN_LAPSED, actor=actor, now=now, says=f"Plan lapsed: {because}", plan=plan)
    return lapsed


def plans_lapse(pipeline: Pipeline, *, because: str, actor: str, now: datetime, but: Plan | None = None) -> int:
    """How many waiting plans of the pipeline lapsed."""
    waiting = Plan.objects.filter(pipeline=pipeline, state__in=WAITING_STATES).exclude(id=but.id if but else None)
    return sum(plan_lapse(plan, because=because, actor=actor, now=now) for plan in waiting)


def plans_sweep(now: datetime) -> int:
    """How many approvals lapsed of age."""
    approved = Plan.objects.filter(state=PlanState.APPROVED).select_related("pipeline")
    return sum(
        plan_lapse(plan, because="Its approval grew too old.", actor="sweep", now=now)
        for plan in approved
        if approval_is_old(plan, now)
    )


def approval_is_old(plan: Plan, now: datetime) -> bool:
    """Whether the approval is older than its pipeline lets it be."""
    until = approval_until(plan)
    return until is not None and now > until


def _read_as(pipeline: Pipeline) -> list[Any]:
    """What a plan of the pipeline rests on beside what its ends hold."""
    ends = (pipeline.source, pipeline.sink, pipeline.delivery)
    return [pipeline.scope, pipeline.options, *(None if end is None else (end.pk, end.options) for end in ends)]


def _write(plan: Plan, **fields: Any) -> None:
    if not Plan.objects.filter(id=plan.id, state__in=UNFINISHED).update(**fields):
        raise Refused(f"recording {plan}", "it is already computed, or refused", "Nothing was written; stop here.")
