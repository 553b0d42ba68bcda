"""Reads of audits and plans."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from recovery_api.domain.errors import NotFound
from recovery_api.models import Audit, Pipeline, Plan


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


def plan_list(pipeline: Pipeline) -> QuerySet[Plan]:
    """Newest first."""
    return Plan.objects.filter(pipeline=pipeline).order_by("-created_at")


def audit_get(audit_id: UUID | str) -> Audit:
    """Raises: NotFound."""
    try:
        found = Audit.objects.select_related("pipeline__source").filter(id=audit_id).first()
    except ValidationError:
        found = None
    if found is None:
        raise NotFound(f"Audit {audit_id}", "the control database", "Run one: manage.py audit PIPELINE.")
    return found


def audit_list(pipeline: Pipeline) -> QuerySet[Audit]:
    """Newest first."""
    return Audit.objects.filter(pipeline=pipeline).order_by("-finished_at")


def audit_latest(pipeline: Pipeline) -> Audit | None:
    """The newest audit that no restore of the sink made void. None: nothing is known."""
    return audit_list(pipeline).filter(void_since__isnull=True).first()


def audit_to_continue(pipeline: Pipeline) -> Audit | None:
    """The audit an incremental one may start from: the newest with a verified prefix, not void. None: audit in full."""
    return audit_list(pipeline).filter(void_since__isnull=True, verified__isnull=False).first()
