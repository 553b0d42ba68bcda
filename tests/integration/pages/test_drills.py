"""A sink's drills on its page: asked for, followed, and shown with their evidence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from recovery_api.domain.drills import DrillName, DrillResult, DrillVerdict
from recovery_api.models import Drill, Intent, Pipeline
from recovery_api.services.drills import drill_record
from recovery_api.services.intents import intent_take
from tests.integration.pages.fleet import audit_make, pipeline_make

pytestmark = pytest.mark.django_db


@pytest.fixture
def pipeline() -> Pipeline:
    pipeline = pipeline_make("p1", timezone.now())
    audit_make(pipeline, "owed", timezone.now())
    return pipeline


def ended(drill: Drill, *results: DrillResult) -> None:
    intent = intent_take(drill.intent_id, "worker", timezone.now())
    assert isinstance(intent, Intent)
    drill_record(drill, results, intent=intent, now=timezone.now() + timedelta(seconds=1))


def result(name: DrillName, verdict: DrillVerdict, says: str) -> DrillResult:
    return DrillResult(name, verdict, says, steps=({"step": "<b>late send</b>", "said": "fenced"},))


def test_an_operator_asks_for_drills_and_sees_them_wait_and_end(
    sign_in: Callable[..., Client], pipeline: Pipeline
) -> None:
    client = sign_in("operator")
    assert "The drills were never run here." in client.get("/sinks/sink%20p1/").content.decode()
    assert client.post("/sinks/sink%20p1/drill/").headers["Location"] == "/sinks/sink%20p1/#drills"
    drill = Drill.objects.get()
    assert drill.requested_by == "operator"
    waiting = client.get("/sinks/sink%20p1/drills/").content.decode()
    assert "hx-get" in waiting and "Waiting for a worker; nothing is lost." in waiting
    ended(drill, *(result(name, DrillVerdict.PASSED, "As the protocol says.") for name in DrillName))
    shown = client.get("/sinks/sink%20p1/drills/").content.decode()
    assert "hx-get" not in shown and "last passed" in shown
    assert "&lt;b&gt;late send" in shown and "<b>late" not in shown
    assert "The sink last passed every drill" in client.get("/pipelines/p1/").content.decode()


def test_a_failed_drill_shows_its_evidence_and_proves_nothing(
    sign_in: Callable[..., Client], pipeline: Pipeline
) -> None:
    client = sign_in("operator")
    client.post("/sinks/sink%20p1/drill/")
    ended(
        Drill.objects.get(), result(DrillName.IN_FLIGHT_STRAGGLER, DrillVerdict.FAILED, "A fenced send was accepted.")
    )
    shown = client.get("/sinks/sink%20p1/").content.decode()
    assert "A fenced send was accepted." in shown and "No run has passed every drill" in shown
    assert "No run has passed since" in client.get("/pipelines/p1/").content.decode()


def test_a_second_click_is_refused_and_says_what_runs(sign_in: Callable[..., Client], pipeline: Pipeline) -> None:
    client = sign_in("operator")
    client.post("/sinks/sink%20p1/drill/")
    again = client.post("/sinks/sink%20p1/drill/")
    assert again.status_code == 409
    assert Drill.objects.count() == 1


def test_a_viewer_sees_drills_and_may_not_ask_for_one(sign_in: Callable[..., Client], pipeline: Pipeline) -> None:
    client = sign_in("viewer")
    assert client.get("/sinks/sink%20p1/drills/").status_code == 200
    assert client.post("/sinks/sink%20p1/drill/").status_code == 403
    assert not Drill.objects.exists()
