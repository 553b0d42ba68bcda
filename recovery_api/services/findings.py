"""The listing of an audit or a plan: copied from its evidence when it is recorded, in the same transaction."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from django.db import connection

from recovery_api.models import Audit, Finding, Pipeline, Plan

LISTED_AT_MOST = 100_000
"""Rows of one audit. What lies beyond is counted and grouped, and whole in the evidence."""
BATCH_LISTED_AT_MOST = 1_000_000
"""Rows of one plan: who approves may want all of them as a file."""
LISTINGS_KEPT = 3
"""So many of a pipeline's newest scheduled audits, of its newest other audits and of its newest plans keep their rows. The
evidence and the counts of older ones stay."""


class ListedFinding(NamedTuple):
    """One finding as it is copied: coordinates as held, digests as 32 bytes."""

    finding: str
    cause: str
    evidence_class: str
    lane: str
    position: int
    ordinal: int
    entry: int | None
    accepted_count: int | None
    is_acknowledged: bool
    history_digest: bytes | None
    accepted_digest: bytes | None


def audit_listing_record(audit: Audit, rows: Iterable[ListedFinding]) -> None:
    """Copies `rows` as the audit's listing, and lets the listings of its pipeline's older audits of the same sort go: a
    schedule pushes out no listing that a person asked for."""
    audit.listed_count = _copy("audit_id", audit, islice(rows, LISTED_AT_MOST))
    Audit.objects.filter(id=audit.id).update(listed_count=audit.listed_count)
    same = Audit.objects.filter(pipeline=audit.pipeline_id, is_scheduled=audit.is_scheduled)
    old = same.filter(listed_count__gt=0).order_by("-finished_at")
    ids = list(old.values_list("id", flat=True)[LISTINGS_KEPT:])
    if ids:
        Finding.objects.filter(audit__in=ids).delete()
        Audit.objects.filter(id__in=ids).update(listed_count=0)


def plan_listing_record(plan: Plan, pipeline: Pipeline, rows: Iterable[ListedFinding]) -> None:
    """Copies `rows` as the plan's listing, and lets the listings of its pipeline's older plans go."""
    count = _copy("plan_id", plan, islice(rows, BATCH_LISTED_AT_MOST))
    Plan.objects.filter(id=plan.id).update(listed_count=count)
    old = Plan.objects.filter(pipeline=pipeline, listed_count__gt=0).order_by("-created_at")
    ids = list(old.values_list("id", flat=True)[LISTINGS_KEPT:])
    if ids:
        Finding.objects.filter(plan__in=ids).delete()
        Plan.objects.filter(id__in=ids).update(listed_count=0)


def _copy(owner: str, of: Audit | Plan, rows: Iterable[ListedFinding]) -> int:
    """How many rows were copied. COPY, for a hundred thousand INSERTs would take longer than the audit."""
    table = connection.ops.quote_name(Finding._meta.db_table)
    columns = ", ".join([owner, "number", *ListedFinding._fields])
    count = 0
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row((of.id, count, *row))
            count += 1
    return count
