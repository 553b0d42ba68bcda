"""The timeline's table refuses TRUNCATE; Django's flush between transactional tests needs it, in test databases only."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):  # type: ignore[no-untyped-def]
    from django.db import connection

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE recovery_api_event DISABLE TRIGGER events_are_never_truncated")
