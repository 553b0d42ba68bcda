"""The page of a recovery and its certificate: what is said while it runs, what may be settled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from recovery_api.models import (
    IntentAction,
    Pipeline,
    Recovery,
    RecoveryOutcome,
)
from recovery_api.services.plans import plan_approve
from recovery_api.services.recoveries import recovery_hold, recovery_request, recovery_want
from tests.integration.pages.incident import finished, plan_make

pytestmark = pytest.mark.django_db


def test_t13_the_page_rest_and_commands_say_paused_only_of_what_holds(
    pipeline: Pipeline, sign_in: Callable[..., Client], capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_make(pipeline)
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    recovery = recovery_request(plan.id, "why", pipeline.name, "grace", now=timezone.now(), wake=False)
    recovery_want(recovery, "pause", actor="ada", now=timezone.now(), reason="look first", wake=False)
    client, address = sign_in("approver", name="grace"), reverse("recovery", args=[recovery.id])

    def shown() -> tuple[str, str, str]:
        with suppress(SystemExit):
            call_command("recovery", str(recovery.id))
        row = client.get(f"/api/v1/recoveries/{recovery.id}").json()
        return (
            client.get(address).content.decode(),
            f"{row['steering']}: {row['steering_says']}",
            capsys.readouterr().out,
        )

    asked = "ada asked it to pause. It will hold before the claim."
    page, rest, command = shown()
    assert asked in page and asked in command and rest == f"pause asked: {asked}"
    assert ">paused<" not in page.replace(" ", "").replace("\n", "")
    recovery_hold(recovery, "the claim", actor="worker", now=timezone.now())
    page, rest, command = shown()
    assert "paused" in page and "It holds before the claim." in page and rest.startswith("paused: ")
    assert "It holds before the claim." in command
    assert "It holds before the claim." in [event.says for event in recovery.events.all()]


def test_polling_a_recovery_loads_the_page_again_only_when_its_controls_change(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    plan = plan_make(pipeline)
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    recovery = recovery_request(plan.id, "why", pipeline.name, "grace", now=timezone.now(), wake=False)
    client, address = sign_in("approver", name="grace"), reverse("recovery", args=[recovery.id])
    polled = client.get(address + "?phase=run", headers={"HX-Request": "true"})
    assert "HX-Refresh" not in polled and "<html" not in polled.content.decode()
    client.post(reverse("recovery-want", args=[recovery.id]), {"wanted": "pause", "reason": "wait"})
    assert client.get(address + "?phase=run", headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    assert "Resume" in client.get(address).content.decode()
    unsaid = client.post(reverse("recovery-want", args=[recovery.id]), {"wanted": "stop", "reason": ""}, follow=True)
    assert "Say why, in a sentence" in unsaid.content.decode()


def test_an_unknown_outcome_may_be_settled_and_a_known_one_may_not(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    unknown = finished(pipeline, RecoveryOutcome.UNKNOWN)
    client, settle = sign_in("approver"), reverse("recovery-settle", args=[unknown.id])
    assert settle in client.get(reverse("recovery", args=[unknown.id])).content.decode()
    assert sign_in("operator").post(settle).status_code == 403
    assert client.post(settle).status_code == 302
    unknown.refresh_from_db()
    assert unknown.outcome is None and unknown.intents.filter(action=IntentAction.SETTLE).exists()


def test_certificate_is_a_page_and_a_file_and_says_when_it_is_void_or_tampered_with(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    recovery = finished(pipeline)
    client = sign_in("viewer")
    page = client.get(reverse("recovery-certificate", args=[recovery.id])).content.decode()
    assert "does not match its digest" in page
    Recovery.objects.filter(id=recovery.id).update(certificate_void_since=timezone.now())
    assert (
        "This certificate is void." in client.get(reverse("recovery-certificate", args=[recovery.id])).content.decode()
    )
    body = client.get(reverse("recovery-certificate-json", args=[recovery.id])).json()
    assert body["digest"] == "x" and body["void_since"] and body["certificate"]["pipeline"] == pipeline.name
