"""The timeline is appended to, and nothing else, whoever asks."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from recovery_api.domain.errors import BadInput
from recovery_api.models import Event
from recovery_api.services.events import event_append


@pytest.fixture
def event(pipeline, now):
    return event_append("step", actor="worker", now=now, says="A step.", pipeline=pipeline)


@pytest.mark.parametrize(
    "statement",
    ["UPDATE recovery_api_event SET says = 'other'", "DELETE FROM recovery_api_event"],
)
@pytest.mark.parametrize("role", ["origin", "replica"])
def test_event_is_neither_changed_nor_deleted(event, statement, role):
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL session_replication_role = {role}")
        with pytest.raises(IntegrityError, match="the timeline is append-only"), transaction.atomic():
            cursor.execute(statement)
    event.refresh_from_db()
    assert event.says == "A step."


def test_timeline_is_not_truncated(event):
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        # Test databases switch this trigger off for Django's flush (tests/conftest.py).
        cursor.execute("ALTER TABLE recovery_api_event ENABLE ALWAYS TRIGGER events_are_never_truncated")
        with pytest.raises(IntegrityError, match="the timeline is append-only"), transaction.atomic():
            cursor.execute("TRUNCATE recovery_api_event")
    assert Event.objects.filter(id=event.id).exists()


def test_unknown_step_is_refused(pipeline, now):
    with pytest.raises(BadInput, match="'stept' is not a step"):
        event_append("stept", actor="worker", now=now, says="x", pipeline=pipeline)


def test_event_without_words_or_actor_is_refused_by_the_database(pipeline, now):
    with pytest.raises(IntegrityError, match="an_event_says_what_happened"), transaction.atomic():
        event_append("step", actor="worker", now=now, says="", pipeline=pipeline)
    with pytest.raises(IntegrityError, match="an_event_has_an_actor"), transaction.atomic():
        event_append("step", actor="", now=now, says="x", pipeline=pipeline)
