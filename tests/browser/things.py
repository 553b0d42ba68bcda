"""What there can be to look at on the pages: an omission, an image audit, an alert, an incident, each at its longest."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.utils import timezone

from recovery_api.domain.alerts.causes import Cause, Scope
from recovery_api.domain.alerts.evaluation import Observed, Subject
from recovery_api.domain.alerts.outbox import DeliveryState
from recovery_api.domain.images import ImageWord
from recovery_api.models import AcknowledgedOmission, Alert, ImageAudit, Incident
from recovery_api.services.alert_quiet import mute_add
from recovery_api.services.alerts import Evaluation
from recovery_api.services.destinations import destination_add, destination_test
from recovery_api.services.freezes import freeze_lift, freeze_set
from recovery_api.services.incidents import incident_note, incident_open
from tests.integration.recovery.world import World


class TriedEnd(NamedTuple):
    """An end as it is tested before it is registered."""

    word: str
    kind: str
    options: dict[str, Any]


def omission_make(world: World) -> None:
    """An acknowledged omission that says all that one can say, of a coordinate that nobody else looks at."""
    now = timezone.now()
    AcknowledgedOmission.objects.create(
        pipeline=world.pipeline,
        lane="0",
        position=0,
        reason="A test order that no consumer will ever take. " * 3,
        reference="https://tickets.example/browse/OPS-7-with-a-long-address-that-has-no-blank-in-it",
        until=now + timedelta(days=1),
        acknowledged_by="ada",
        acknowledged_at=now,
        accepted_seen_at=now,
    )


def image_make(world: World) -> None:
    """An image audit that found something of every word: the panel at its longest."""
    now = timezone.now()
    named = [{"word": word.value, "key": f"<b>{word.name}</b>", "position": "7", "ordinal": "1"} for word in ImageWord]
    named.append({"word": "extra", "key": "a-key-of-many-letters-" * 8, "position": None, "ordinal": None})
    ImageAudit.objects.create(
        pipeline=world.pipeline,
        status="mismatched",
        exit_code=1,
        says="At 7:1 3 of 1,200 keys differ: 1 mismatched, 1 missing, 1 extra. 3 keys are unknown.",
        frontier={"0": {"position": "7", "ordinal": "1"}},
        target="public.mail",
        keys_count=1200,
        counts={word.value: "1" for word in ImageWord},
        sample=named,
        gap="the oldest event kept is not the first one",
        started_at=now,
        finished_at=now,
    )


def alert_make(world: World) -> Alert:
    """An open alert with a long sentence, a mute, and a destination with a message of every state."""
    now = timezone.now()
    hook = destination_add(
        "on call", "json", address="https://hooks.example/", secret="env:FENCEPOST_END_X", actor="ada", now=now
    )
    mute_add("label", "team=payments", note="Moved tonight.", until=now + timedelta(days=1), actor="ada", now=now)
    seen = Observed(
        Cause.OWED,
        Subject(Scope.PIPELINE, world.pipeline.pk),
        True,
        now - timedelta(hours=3),
        f"44 events are owed. {'A-long-name-without-a-blank-' * 6}",
        number=44,
        evidence=f"audit:{world.audit().id}",
        end="db.example:5432",
    )
    with transaction.atomic():  # as the pager does
        Evaluation(now, now).run([seen])
    for state in DeliveryState:
        row = destination_test(hook, actor="ada", now=now)
        answers = [
            {"at": now.isoformat(), "attempt": 1, "status": 503, "problem": "answered 503", "excerpt": "<b>no</b>"}
        ]
        row.state, row.answers, row.is_late = state.value, [{**answers[0], "took_seconds": 0.1}], True
        row.save()
    return Alert.objects.get(cause=Cause.OWED)


def incident_made(world: World) -> Incident:
    """An incident with a note, and a freeze that was lifted: both pages at their longest."""
    now = timezone.now()
    made = incident_open(
        "Orders owed after the relay died", [world.pipeline], actor="ada", now=now, severity="critical"
    )
    incident_note(made, "The relay's certificate had expired. " * 5, actor="ada", now=now)
    freeze_set(world.pipeline, "A bad deploy sends every order twice.", actor="ada", now=now)
    freeze_lift(world.pipeline, "The deploy was taken back.", actor="ada", now=now)
    freeze_set(None, "The payment provider answers wrongly.", actor="ada", now=now)
    return made
