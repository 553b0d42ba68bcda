"""What every page of an incident does alike: escaping, work that waits, what is not there, how many queries."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from recovery_api.models import (
    Audit,
    Pipeline,
)
from recovery_api.services.audits import audit_record, audit_request
from recovery_api.services.intents import intent_take
from tests.integration.pages.incident import finished

pytestmark = pytest.mark.django_db


def test_script_in_names_keys_and_sentences_is_shown_as_text(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    recovery = finished(pipeline)
    client = sign_in("approver")
    for address in (
        reverse("audit", args=[audit.id]),
        reverse("findings", args=[audit.id]),
        reverse("plan", args=[recovery.plan_id]),
        reverse("recovery", args=[recovery.id]),
        reverse("recovery-certificate", args=[recovery.id]),
        reverse("work-list"),
    ):
        page = client.get(address)
        assert page.status_code == 200, address
        assert "<script>alert" not in page.content.decode(), address


def test_work_that_nobody_takes_is_said_and_may_be_withdrawn(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    intent = audit_request(pipeline, actor="ada", now=timezone.now() - timedelta(minutes=3), wake=False)
    client = sign_in("operator")
    listing = client.get(reverse("work-list")).content.decode()
    assert "No worker takes it." in listing and "make worker" in listing
    assert "Queued for 3 min; no worker has taken it." in client.get(reverse("work", args=[intent.id])).content.decode()
    assert sign_in("viewer").post(reverse("work-cancel", args=[intent.id])).status_code == 403
    client.post(reverse("work-cancel", args=[intent.id]))
    assert "Withdrawn before a worker took it." in client.get(reverse("work", args=[intent.id])).content.decode()
    again = client.post(reverse("work-cancel", args=[intent.id]), follow=True).content.decode()
    assert "a worker has taken it, or it is over" in again


def test_waiting_for_an_audit_leads_to_it(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    now = timezone.now()
    intent = intent_take(audit_request(pipeline, actor="ada", now=now, wake=False).id, "worker", now)
    client, address = sign_in("viewer"), reverse("work", args=[intent.id])  # type: ignore[union-attr]
    assert "HX-Redirect" not in client.get(address, headers={"HX-Request": "true"})
    made = audit_record(
        pipeline, status="owed", exit_code=1, now=now, started_at=now, is_full=True, says="Owed.", intent=intent
    )
    polled = client.get(address, headers={"HX-Request": "true"})
    assert polled["HX-Redirect"] == reverse("audit", args=[made.id])


@pytest.mark.parametrize("name", ["audit", "findings", "plan", "recovery", "recovery-certificate", "work"])
def test_what_is_not_there_is_a_page_that_says_so(sign_in: Callable[..., Client], name: str) -> None:
    answer = sign_in("viewer").get(reverse(name, args=[uuid.uuid4()]))
    assert answer.status_code == 404
    assert "is not here" in answer.content.decode()


def test_queries_of_each_page_stay_few(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client], django_assert_max_num_queries: Any
) -> None:
    recovery = finished(pipeline)
    client = sign_in("approver")
    for name, of, most in (
        ("audit", audit.id, 9),
        ("findings", audit.id, 10),
        ("plan", recovery.plan_id, 12),
        ("recovery", recovery.id, 12),
        ("recovery-certificate", recovery.id, 12),
    ):
        client.get(reverse(name, args=[of]))
        with django_assert_max_num_queries(most):
            assert client.get(reverse(name, args=[of])).status_code == 200
    with django_assert_max_num_queries(9):
        client.get(reverse("work-list"))
