"""The page of a plan: who may approve it, what applying needs, the batch as a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.dead_letters import export_read
from recovery_api.models import (
    LedgerItem,
    Pipeline,
    Plan,
    PlanState,
    Recovery,
)
from recovery_api.services.plans import plan_approve
from tests.integration.pages import fleet
from tests.integration.pages.incident import plan_make

pytestmark = pytest.mark.django_db


def test_plan_says_who_may_approve_and_bars_its_author(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    plan = plan_make(pipeline, author="ada")
    address = reverse("plan", args=[plan.id])
    assert "another approver has to look at it" in sign_in("approver", name="ada").get(address).content.decode()
    for_grace = sign_in("approver", name="grace").get(address).content.decode()
    assert "Any approver except ada, who made this plan." in for_grace
    assert "Approve 3 events" in for_grace and "secret" not in for_grace
    assert "Needs the role approver; you are viewer." in sign_in("viewer").get(address).content.decode()


def test_approval_of_an_older_digest_is_refused_and_the_page_shows_the_plan_as_it_is(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    plan = plan_make(pipeline)
    client = sign_in("approver", name="grace")
    refused = client.post(reverse("plan-approve", args=[plan.id]), {"digest": "d0"})
    assert refused.status_code == 409
    assert "its digest is d1, not d0" in refused.content.decode() and "Nothing was done." in refused.content.decode()
    assert client.post(reverse("plan-approve", args=[plan.id]), {"digest": "d1"}).status_code == 302
    plan.refresh_from_db()
    assert plan.state == PlanState.APPROVED


def test_applying_needs_a_reason_and_the_name_and_twice_is_once(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    plan = plan_make(pipeline)
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    client, address = sign_in("approver", name="grace"), reverse("plan-apply", args=[plan.id])
    wrong = client.post(address, {"reason": "it died", "confirm": "orders"})
    assert wrong.status_code == 422 and "it died" in wrong.content.decode()
    assert "is missing" in client.post(address, {"reason": " ", "confirm": pipeline.name}).content.decode()
    given = {"reason": "it died", "confirm": pipeline.name}
    answers = {sign_in("approver", name=name).post(address, given)["Location"] for name in ("grace", "hedy", "grace")}
    assert answers == {reverse("recovery", args=[Recovery.objects.get().id])}
    assert sign_in("operator").post(address, given).status_code == 403


def test_u5_what_applying_lacks_is_said_at_its_field(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    plan = plan_make(pipeline)
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    client, address = sign_in("approver", name="grace"), reverse("plan-apply", args=[plan.id])
    for name, given in (
        ("confirm", {"reason": "it died", "confirm": "orders"}),
        ("reason", {"reason": " ", "confirm": pipeline.name}),
    ):
        page = client.post(address, given).content.decode()
        field = page[page.index('<div class="field has-error">') :]
        field = field[: field.index("</div>")]
        assert f'id="{name}"' in field and 'aria-invalid="true"' in field and "Nothing was sent." in field
        assert f"{name}:" not in field.lower()
        assert f'href="#{name}"' in page[: page.index('id="apply"')]


def test_the_batch_is_a_file_with_names_and_no_formula_that_is_read_again_as_it_was(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    plan = plan_make(pipeline)
    held, seen = {"pipeline": pipeline, "lane": "0", "epoch": "e"}, timezone.now()
    audit = fleet.audit_make(pipeline, "owed", seen)
    about = {"first_audit": audit, "first_seen_at": seen, "last_audit": audit, "last_seen_at": seen}
    names = {"key": "@SUM(1)", "event_id": "=HYPERLINK(1)", "committed_at": seen}
    LedgerItem.objects.create(**held, **about, **names, position=9007199254740993, word="lost", digest=b"\x01" * 32)
    answer = sign_in("viewer").get(reverse("plan-events", args=[plan.id]))
    text = b"".join(answer.streaming_content).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["coordinate"] for row in rows] == ["9007199254740993", "9223372036854775807"]
    assert [row["key"] for row in rows] == ["'@SUM(1)", ""] and rows[0]["committed at"] == seen.isoformat()
    assert rows[0]["event id"] == "'=HYPERLINK(1)" and rows[0]["payload digest"] == "01" * 32
    read = export_read(text, Spelling.BIGINT)
    assert [(one.coordinate.position, one.event_id) for one in read.named if one.coordinate] == [
        (9007199254740993, "=HYPERLINK(1)"),
        (2**63 - 1, ""),
    ]
    assert export_read("event_id\n'=x\n", Spelling.BIGINT).named[0].event_id == "'=x", "a name of somebody else's"


def test_what_must_be_attested_is_asked_with_since_when_and_by_whom(
    pipeline: Pipeline, sign_in: Callable[..., Client]
) -> None:
    plan = plan_make(pipeline)
    pins = plan.pins | {"strategy": "attested", "attestations": ["relay-drained", "only-recoverer"]}
    Plan.objects.filter(id=plan.id).update(pins=pins)
    plan_approve(plan.id, plan.digest, "grace", timezone.now())
    client, address = sign_in("approver", name="grace"), reverse("plan-apply", args=[plan.id])
    page = client.get(reverse("plan", args=[plan.id])).content.decode()
    for says in ("The relay is stopped", 'name="since"', 'name="by"', "It stops no relay", "only-recoverer"):
        assert says in page, says
    given = {"reason": "it died", "confirm": pipeline.name, "attest": ["relay-drained", "only-recoverer"]}
    nobody = client.post(address, given | {"attest": ["only-recoverer"]})
    assert nobody.status_code == 409 and "nobody attested" in nobody.content.decode()
    later = client.post(address, given | {"since": "2999-01-01T00:00:00", "by": "ada"})
    assert later.status_code == 422 and "has not come yet" in later.content.decode()
    assert not Recovery.objects.exists()
    applied = client.post(address, given | {"since": "2026-11-01T10:30", "by": "ada"})
    recovery = Recovery.objects.get()
    assert applied["Location"] == reverse("recovery", args=[recovery.id])
    assert recovery.attestations == ["relay-drained since 2026-11-01T10:30:00+00:00 by ada", "only-recoverer"]
    shown = client.get(applied["Location"]).content.decode()
    assert "that the relay was stopped at 2026-11-01 10:30:00 UTC by ada" in shown and "> generation" not in shown
    assert "that this was the only recoverer" in shown
    assert "recoverer, by grace" in shown and "by ada" in shown and ">Append " in shown and ">Claim " not in shown
