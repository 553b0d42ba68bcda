"""Reads of plans."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from recovery_api.domain.errors import NotFound
from recovery_api.models import Pipeline, Plan


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


def plan_list(pipeline: Pipeline | None = None) -> QuerySet[Plan]:
    """Newest first; of every pipeline where none is named."""
    found = Plan.objects.select_related("pipeline__source").order_by("-created_at")
    return found.filter(pipeline=pipeline) if pipeline else found
