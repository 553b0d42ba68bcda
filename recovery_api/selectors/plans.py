"""Reads of plans."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from recovery_api.domain.attestations import LATER_EVENTS_CONFIRMED
from recovery_api.domain.errors import NotFound
from recovery_api.domain.estimates import Estimate, Landing, recovery_estimate
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import IntentAction, IntentState, Pipeline, Plan, Recovery


def is_id(text: str) -> bool:
    """Whether `text` is spelled like an id of this database, and so cannot be a name."""
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def plan_get(plan_id: UUID | str) -> Plan:
    """Raises: NotFound."""
    try:
        found = Plan.objects.select_related("pipeline__source", "pipeline__sink", "audit").filter(id=plan_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(f"Plan {plan_id}", "the control database", "List them: manage.py pipelines show NAME.")
    return found


def plan_attestations_asked(plan: Plan) -> list[str]:
    """What must be attested before the plan is applied, by name; one of an earlier version kept its later keys alone."""
    if "attestations" in plan.pins:
        return list(plan.pins["attestations"])
    later = plan.pins.get("later_keys") or {"count": "0"}
    return [LATER_EVENTS_CONFIRMED] if later["count"] != "0" else []


def plan_list(pipeline: Pipeline | None = None) -> QuerySet[Plan]:
    """Newest first; of every pipeline where none is named."""
    found = Plan.objects.select_related("pipeline__source").order_by("-created_at")
    return found.filter(pipeline=pipeline) if pipeline else found


def approval_until(plan: Plan) -> datetime | None:
    """Until when its approval holds; None: it has none."""
    seconds = pipeline_options_parse(plan.pipeline.options)["approval_seconds"]
    return plan.approved_at and plan.approved_at + timedelta(seconds=seconds)


def plan_estimate(plan: Plan) -> Estimate | None:
    """How long its recovery would take, from what its own reading took and how the pipeline's last recovery landed.

    None: it has no batch, or who computed it left no times.
    """
    done = plan.intents.filter(action=IntentAction.PLAN, state=IntentState.DONE).order_by("-finished_at").first()
    if not plan.batch_count or done is None or done.taken_at is None or done.finished_at is None:
        return None
    last = (
        Recovery.objects.filter(pipeline=plan.pipeline_id, claimed_at__isnull=False, fired_at__isnull=False)
        .order_by("-fired_at")
        .values_list("landed_count", "claimed_at", "fired_at")
        .first()
    )
    landing = Landing(last[0], (last[2] - last[1]).total_seconds()) if last else None
    return recovery_estimate(plan.batch_count, (done.finished_at - done.taken_at).total_seconds(), landing)


def approval_ends_at(plan: Plan) -> datetime | None:
    """When its approval lapses of age. None: it is not approved."""
    if plan.approved_at is None:
        return None
    seconds = pipeline_options_parse(plan.pipeline.options)["approval_seconds"]
    return plan.approved_at + timedelta(seconds=seconds)
