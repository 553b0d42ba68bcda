"""Audits that nothing rests on are taken out of the tables, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connection

from recovery_api.models import Finding


def audits_delete(ids: Sequence[UUID]) -> None:
    """Deletes these audits with their listings, in the caller's transaction.

    The caller chose them by selectors.retention.audits_unneeded. What began to rest on one since then makes the database
    refuse the whole transaction, and a later sweep does the rest: nothing is left pointing to what is not there.
    """
    if not ids:
        return
    Finding.objects.filter(audit__in=ids).delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM recovery_api_audit WHERE id = ANY(%s)", [list(ids)])
