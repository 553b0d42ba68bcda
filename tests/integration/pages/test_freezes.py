"""The freeze switch on pages and by REST, and what probes of the machine are answered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone

from recovery_api.models import Freeze
from recovery_api.services.freezes import freeze_set
from recovery_api.services.plans import plan_approve
from tests.integration.pages.fleet import pipeline_make, plan_make

pytestmark = pytest.mark.django_db


def test_a_freeze_is_set_shown_and_lifted(sign_in: Callable[..., Client]) -> None:
    pipeline_make("mail", timezone.now())
    operator, approver = sign_in("operator", name="olga"), sign_in("approver", name="anna")
    assert operator.post("/pipelines/mail/freeze/", {"reason": " "}).status_code == 400
    assert operator.post("/pipelines/mail/freeze/", {"reason": "<b>bad</b> deploy"}).status_code == 302
    assert operator.post("/pipelines/mail/freeze/", {"reason": "again"}).status_code == 409
    for address in ("/pipelines/mail/", "/pipelines/mail/freeze/", "/freeze/"):
        page = operator.get(address).content.decode()
        assert "&lt;b&gt;bad&lt;/b&gt; deploy" in page and "by olga" in page, address
    assert "1 pipeline is frozen by itself" in operator.get("/").content.decode()
    assert operator.get("/").content.decode().count(">frozen</span>") == 1
    assert operator.post("/pipelines/mail/freeze/lift/", {"reason": "over"}).status_code == 403
    assert "Needs the role approver" in operator.get("/pipelines/mail/freeze/").content.decode()
    assert approver.post("/pipelines/mail/freeze/lift/", {"reason": "over"}).status_code == 302
    assert Freeze.objects.get().lifted_by == "anna"
    assert approver.post("/freeze/", {"reason": "everything burns"}).status_code == 302
    assert "Everything is frozen." in operator.get("/").content.decode()


def test_a_frozen_plan_is_not_sent_and_its_page_says_why(sign_in: Callable[..., Client]) -> None:
    now = timezone.now()
    pipeline = pipeline_make("mail", now)
    plan = plan_make(pipeline, now)
    plan_approve(plan.id, plan.digest, "anna", now)
    freeze_set(None, "a bad deploy", actor="olga", now=now)
    approver = sign_in("approver", name="bert")
    page = approver.get(f"/plans/{plan.id}/").content.decode()
    assert "disabled>Send 3 events</button>" in page and "Every pipeline is frozen by olga" in page
    refused = approver.post(f"/plans/{plan.id}/apply/", {"reason": "r", "confirm": "mail"})
    assert refused.status_code == 409 and not pipeline.recoveries.exists()


def test_probes_are_answered_without_a_sign_in_over_plain_http(client: Client, settings: object) -> None:
    settings.SECURE_SSL_REDIRECT = True  # type: ignore[attr-defined]
    assert client.get("/healthz").content == b"alive\n"
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"ready": True, "missing": []})


def test_readiness_names_what_is_missing(client: Client) -> None:
    newest = MigrationLoader(connection).graph.leaf_nodes("recovery_api")[0][1]
    MigrationRecorder(connection).record_unapplied("recovery_api", newest)
    ready = client.get("/readyz")
    assert ready.status_code == 503
    says = f"1 migrations are not applied, recovery_api.{newest} first: run manage.py migrate."
    assert ready.json()["missing"] == [says]
