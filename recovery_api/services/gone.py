"""Rows that nothing rests on are taken out of the tables, many at a time.

The caller chose them, in its transaction. What began to rest on one since then makes the database refuse the whole
transaction, and a later sweep does the rest: nothing is left pointing to what is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connection

from recovery_api.models import Finding


def audits_delete(ids: Sequence[UUID]) -> None:
    """Deletes these audits with their listings (chosen by selectors.retention.audits_unneeded)."""
    if ids:
        Finding.objects.filter(audit__in=ids).delete()
        _delete("recovery_api_audit", ids)


def intents_delete(ids: Sequence[UUID]) -> None:
    """Deletes these intents: finished, and of no audit, drill or content."""
    if ids:
        _delete("recovery_api_intent", ids)


def _delete(table: str, ids: Sequence[UUID]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table} WHERE id = ANY(%s)", [list(ids)])  # nosec B608 # a name of ours
