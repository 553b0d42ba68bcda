"""Idempotency keys: one request a key. The lock, the work and the answer are one transaction.

1. The key is locked until the transaction ends. Somebody else's lock: the first request is still at work.
2. A remembered answer of the same request is given again; of another request, it is refused.
3. Else the work is done, and its answer remembered, in the same transaction. A process that dies there leaves neither
   the work nor the answer, and no lock: the next request with the key begins anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from recovery_api.models import RememberedAnswer

KEPT_FOR = timedelta(hours=24)
PURGED_AT_ONCE = 100


@contextmanager
def key_locked(person_id: Any, key: str) -> Iterator[bool]:
    """A transaction in which the key is ours. False: another request holds it, and nothing may be done."""
    name = hashlib.sha256(f"idempotency {person_id} {key}".encode()).digest()[:8]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [int.from_bytes(name, "big", signed=True)])
        yield bool(cursor.fetchone()[0])


def answer_find(person_id: Any, key: str, now: datetime) -> RememberedAnswer | None:
    """What was answered to this key, if its time is not over. Call it with the key locked."""
    return RememberedAnswer.objects.filter(person_id=person_id, key=key, expires_at__gt=now).first()


def answer_remember(person_id: Any, key: str, *, now: datetime, **fields: Any) -> None:
    """Remembers the answer and forgets some whose time is over. Call it with the key locked."""
    RememberedAnswer.objects.filter(person_id=person_id, key=key, expires_at__lte=now).delete()
    RememberedAnswer.objects.create(person_id=person_id, key=key, created_at=now, expires_at=now + KEPT_FOR, **fields)
    over = RememberedAnswer.objects.filter(expires_at__lte=now).order_by("expires_at")
    gone = over.select_for_update(skip_locked=True).values_list("pk", flat=True)[:PURGED_AT_ONCE]
    RememberedAnswer.objects.filter(pk__in=list(gone)).delete()
