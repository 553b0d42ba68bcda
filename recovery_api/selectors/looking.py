"""What a person keeps for looking, and what changed since they last did."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count, Q, QuerySet

from recovery_api.domain.outcomes import WORST_FIRST
from recovery_api.models import Alert, Observation, Pipeline, SavedFilter

NAMED = 10
"""So many pipelines whose verdict changed are named; all are counted."""
ORDER = {status.value: place for place, status in enumerate(WORST_FIRST)}

_CHANGED = """
SELECT p.id, p.name, was.status, newest.status FROM {pipelines} p
CROSS JOIN LATERAL (
    SELECT status, at FROM {observations} WHERE pipeline_id = p.id ORDER BY at DESC LIMIT 1
) newest
LEFT JOIN LATERAL (
    SELECT status FROM {observations} WHERE pipeline_id = p.id AND at <= %(since)s ORDER BY at DESC LIMIT 1
) was ON true
WHERE p.retired_at IS NULL AND newest.at > %(since)s AND newest.status IS DISTINCT FROM was.status {only}
ORDER BY p.name
"""  # nosec B608 # names of our own tables, values are parameters


@dataclass(frozen=True, slots=True)
class VerdictChanged:
    """What the newest audit of a pipeline says, and what the last one before the moment said; None: there was none."""

    name: str
    was: str | None
    now: str

    @property
    def is_worse(self) -> bool:
        return self.was is not None and ORDER[self.now] < ORDER[self.was]


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since `since`: of audits' verdicts, and of alerts that were opened or resolved after it."""

    since: datetime
    verdicts: list[VerdictChanged] = field(default_factory=list)
    opened: int = 0
    resolved: int = 0

    @property
    def named(self) -> list[VerdictChanged]:
        """Those that are named: the worse first."""
        return sorted(self.verdicts, key=lambda one: (not one.is_worse, ORDER[one.now], one.name))[:NAMED]

    @property
    def unnamed_count(self) -> int:
        return max(len(self.verdicts) - NAMED, 0)


def saved_filters(person: Any) -> QuerySet[SavedFilter]:
    """By name."""
    return SavedFilter.objects.filter(person=person).order_by("name")


def changes_since(since: datetime, pipeline: Pipeline | None = None) -> Changes:
    """What changed, of one pipeline or of all of them. Two queries, the first by two looks into an index a pipeline.

    A verdict that came and went in between is not among them: the timeline has it.
    """
    tables = {
        "pipelines": connection.ops.quote_name(Pipeline._meta.db_table),
        "observations": connection.ops.quote_name(Observation._meta.db_table),
        "only": "AND p.id = %(pipeline)s" if pipeline else "",
    }
    with connection.cursor() as cursor:
        cursor.execute(_CHANGED.format(**tables), {"since": since, "pipeline": pipeline.pk if pipeline else None})
        verdicts = [VerdictChanged(name, was, now) for _, name, was, now in cursor.fetchall()]
    touched = Alert.objects.filter(Q(resolved_at__isnull=True) | Q(resolved_at__gt=since))
    if pipeline is not None:
        touched = touched.filter(pipeline=pipeline)
    counted = touched.aggregate(
        opened=Count("pk", filter=Q(opened_at__gt=since)), resolved=Count("pk", filter=Q(resolved_at__gt=since))
    )
    return Changes(since, verdicts, counted["opened"], counted["resolved"])
