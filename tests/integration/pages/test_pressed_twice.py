"""RC-47: retry pressed twice, from two tabs and by two people: one recovery, whose pages say so, and whose age is the first press's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from recovery_api.models import EventKind, Intent, Pipeline, Recovery
from recovery_api.services.intents import intent_progress, intent_take
from recovery_api.services.plans import plan_approve
from tests.integration.pages.incident import plan_make

pytestmark = pytest.mark.django_db

DISABLED = '<button type="button" class="button primary" disabled>Plan recovery</button>'


def test_rc47_the_second_press_starts_nothing_and_every_tab_shows_the_one_that_runs(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    plan = plan_make(pipeline)
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    grace, here = sign_in("approver", name="grace"), reverse("plan", args=[plan.id])
    assert "Send 3 events" in grace.get(here).content.decode(), "what both tabs show before the first press"
    form = {"reason": "the relay died", "confirm": pipeline.name}
    first = grace.post(reverse("plan-apply", args=[plan.id]), form)["Location"]
    recovery = Recovery.objects.get()
    Recovery.objects.update(created_at=recovery.created_at - timedelta(minutes=7))
    intent = Intent.objects.get(recovery=recovery)
    taken = intent_take(intent.id, "worker", timezone.now())
    assert taken is not None
    assert intent_progress(taken, {"step": "staging", "done": 1, "total": 3, "unit": "events"}, timezone.now())

    for person in (grace, sign_in("approver", name="heidi")):
        assert person.post(reverse("plan-apply", args=[plan.id]), form)["Location"] == first
    intent.refresh_from_db()
    assert (Intent.objects.filter(recovery=recovery).count(), intent.attempts) == (1, 1), "nothing was started"
    told = recovery.events.filter(kind=EventKind.RECOVERY_REQUESTED).values_list("actor", flat=True)
    assert list(told) == ["grace", "grace", "heidi"]

    another = sign_in("approver", name="grace")
    of_plan = another.get(here).content.decode()
    assert "Send 3 events" not in of_plan and f'href="{first}"' in of_plan
    of_pipeline = " ".join(another.get(reverse("pipeline", args=[pipeline.name])).content.decode().split())
    assert DISABLED in of_pipeline and "A recovery is unfinished: let it end, or settle it." in of_pipeline
    shown = another.get(first).content.decode()
    assert "1 of 3 events" in shown and "hx-get=" in shown, "its progress, which goes on by itself"
    assert "7 min ago" in shown, "since the first press"
