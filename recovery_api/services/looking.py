"""Filters that a person keeps, and when they last looked at something."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from recovery_api.domain.errors import BadInput, NotFound
from recovery_api.domain.saved_filters import MOST, filter_name_parse, filter_query_parse
from recovery_api.models import LastLook, Pipeline, SavedFilter
from recovery_api.selectors.looking import saved_filters

VISIT = timedelta(minutes=30)
"""Who looks again within so long is still at the same visit: what changed is counted from the visit before."""

_LOOK = """
INSERT INTO {looks} AS held (person_id, subject, seen_at) VALUES (%(person)s, %(subject)s, clock_timestamp())
ON CONFLICT (person_id, subject) DO UPDATE SET
    before_at = CASE WHEN excluded.seen_at - held.seen_at > %(visit)s THEN held.seen_at ELSE held.before_at END,
    seen_at = greatest(held.seen_at, excluded.seen_at)
RETURNING before_at
"""  # nosec B608 # the name of our own table, values are parameters


def look(person: Any, pipeline: Pipeline | None = None) -> datetime | None:
    """Writes down that `person` looks at `pipeline`, or at the overview, now; and when they last did, before this visit.

    None: this is their first visit. One statement: two pages that are opened at once are one visit.
    """
    subject = f"pipeline:{pipeline.pk}" if pipeline else "overview"
    given = {"person": person.pk, "subject": subject, "visit": VISIT}
    with connection.cursor() as cursor:
        cursor.execute(_LOOK.format(looks=connection.ops.quote_name(LastLook._meta.db_table)), given)
        (before_at,) = cursor.fetchone()
    moment: datetime | None = before_at
    return moment


def filter_save(person: Any, name: str, query: str, now: datetime) -> SavedFilter:
    """The filter, kept under `name`; one of that name is replaced. Raises: BadInput, where there are too many, too."""
    name, query = filter_name_parse(name), filter_query_parse(query)
    held = saved_filters(person)
    if not held.filter(name=name).exists() and held.count() >= MOST:
        raise BadInput("name", f"is one more than the {MOST} that can be kept", "Delete one of them first.")
    kept, _ = SavedFilter.objects.update_or_create(
        person=person, name=name, defaults={"query": query, "created_at": now}
    )
    return kept


def filter_delete(person: Any, filter_id: UUID | str) -> None:
    """Raises: NotFound where `person` has no such filter."""
    count, _ = saved_filters(person).filter(pk=filter_id).delete()
    if not count:
        raise NotFound(f"Filter {filter_id}", "your saved filters", "")
