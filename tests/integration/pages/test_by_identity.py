"""What a person sees of a pipeline whose record knows only message ids: complete by identity, never green, never exactly once."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from recovery_api.domain.identity import MARK
from recovery_api.models import Audit, Pipeline
from recovery_api.services.plans import plan_refuse, plan_request, plan_start
from tests.integration.pages.fleet import audit_make, pipeline_make

pytestmark = pytest.mark.django_db
WORDS = "complete by identity at f; contents and premature entries not judged"


@pytest.fixture
def pipeline() -> Pipeline:
    return pipeline_make("orders-inbox", timezone.now())


@pytest.fixture
def audit(pipeline: Pipeline) -> Audit:
    return audit_make(
        pipeline,
        "complete_by_identity",
        timezone.now(),
        matching="by identity (uuid)",
        givens=["the owner's word that no event id is ever used again (ana)"],
        says="Complete by identity at 9007199254740993.",
    )


def test_every_page_says_what_was_not_judged(pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]) -> None:
    client = sign_in("viewer")
    for address in ("/", f"/pipelines/{pipeline.name}/", f"/audits/{audit.id}/"):
        page = client.get(address).content.decode()
        assert WORDS in page, address
    for address in (f"/pipelines/{pipeline.name}/", f"/audits/{audit.id}/"):
        assert "exactly once at" not in client.get(address).content.decode().split("<main", 1)[-1].lower(), address
    page = client.get(f"/audits/{audit.id}/").content.decode()
    assert "<strong>not judged:</strong> premature" in page
    page = client.get(f"/pipelines/{pipeline.name}/").content.decode()
    assert "contents and premature entries not judged" in page


def test_the_pipelines_page_says_how_long_the_record_remembers_and_claims_no_more_than_ids(
    pipeline: Pipeline, audit: Audit, sign_in: Callable[..., Client]
) -> None:
    for row in audit.lanes.values():
        row["identity"] = {"id_type": "uuid", "consumer": "", "lifetime_seconds": 1800, "margin_seconds": 60}
    audit.save()
    page = " ".join(unescape(sign_in("viewer").get(f"/pipelines/{pipeline.name}/").content.decode()).split())
    assert "The sink's record keeps a row for 30 min." in page and "No limit" not in page
    assert "No audit found every event's id yet." in page and "every event exactly once" not in page


def test_rest_tells_a_count_that_was_not_judged_as_none(audit: Audit, sign_in: Callable[..., Client]) -> None:
    found = sign_in("viewer").get(f"/api/v1/audits/{audit.id}").json()
    assert (found["status"], found["exit_code"], found["premature"]) == ("complete_by_identity", 4, None)


def test_a_plan_for_marks_says_that_they_are_no_effects(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    now = timezone.now()
    plan, _ = plan_request(pipeline, actor="ada", now=now, wake=False)
    asked = {"name": "effect", "asks": "Would a row in the record be the effect itself?", "holds": False}
    refused = [{**asked, "says": MARK, "remedy": "", "blocks": True, "warning": ""}]
    plan_refuse(plan_start(plan), conditions=refused, says=MARK, now=now, batch={"provably missing": "1"})
    page = sign_in("approver").get(f"/plans/{plan.id}/").content.decode()
    assert "mark of an effect, not the effect" in page and "What is owed, and is not sent" in page


def test_the_database_keeps_the_word_from_what_is_lost_or_doubled(pipeline: Pipeline) -> None:
    for wrong in ({"lost_count": 1}, {"duplicate_count": 1}, {"exit_code": 0}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Audit.objects.filter(pk=audit_make(pipeline, "complete_by_identity", timezone.now()).pk).update(**wrong)
