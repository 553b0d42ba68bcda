"""The overview: worst first, filtered in the address, and as cheap with a thousand pipelines as with three."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from recovery_api.models import Audit, Pipeline, Recovery, RecoveryOutcome, RecoveryState
from recovery_api.selectors.fleet import fleet_status
from recovery_api.selectors.fleet_pages import TROUBLE, fleet_entries, statuses_of
from recovery_api.services.plans import plan_approve
from recovery_api.services.recoveries import recovery_request
from recovery_api.services.workers import worker_say_present
from tests.integration.pages.fleet import audit_make, pipeline_make, plan_make

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def viewer(sign_in: Callable[..., Client]) -> Client:
    return sign_in("viewer")


def test_empty_overview_teaches_the_first_steps(viewer: Client, sign_in: Callable[..., Client]) -> None:
    page = viewer.get("/").content.decode()
    assert "make demo" in page
    assert "Needs the role admin; you are viewer." in page
    assert 'href="/add/source/"' in sign_in("admin").get("/").content.decode()


def test_a_line_says_what_is_wrong_since_when_whom_it_touches_and_what_next(viewer: Client, now: datetime) -> None:
    labels = {"team": "payments", "tier": "1"}
    mail = pipeline_make("mail", now, options={"owner": "team payments", "labels": labels})
    pipeline_make("other", now)
    audit_make(mail, "exactly_once", now - timedelta(hours=2))
    audit_make(mail, "owed", now)
    page = viewer.get("/").content.decode()
    assert "of <bdi>team payments</bdi>" in page and "team=payments, tier=1" in page
    assert "last clean" in page and "Plan a recovery." in page and "never</span>" in page
    assert "other</bdi></a>" not in viewer.get("/?owner=team payments").content.decode()
    assert "mail</bdi></a>" in viewer.get("/?label=tier%3D1").content.decode()
    assert "mail</bdi></a>" not in viewer.get("/?label=tier%3D2").content.decode()
    assert viewer.get("/?label=tier").status_code == 400


def test_u9_a_missing_worker_is_said_until_one_is_there(viewer: Client, now: datetime) -> None:
    pipeline_make("orders", now)
    worker_say_present("host/1", ["spark", "default"], now - timedelta(minutes=3))
    page = viewer.get("/").content.decode()
    assert "No worker is running" in page and "3 min ago" in page and "make worker" in page
    worker_say_present("host/2", ["spark", "default"], now)
    assert "No worker is running" not in viewer.get("/").content.decode()


def test_u9_who_may_not_test_an_end_is_told_who_may(sign_in: Callable[..., Client], now: datetime) -> None:
    pipeline_make("orders", now)
    page = sign_in("operator").get("/sources/source%20orders/").content.decode()
    assert "Test now</button>" in page and "Needs the role admin; you are operator." in page


def test_u9_the_page_to_try_the_api_leads_back(viewer: Client) -> None:
    assert '<a href="/">' in viewer.get("/api/v1/docs").content.decode()


def test_worst_comes_first_and_tiles_count(viewer: Client, now: datetime) -> None:
    for status in ("exactly_once", "exactly_once_given", "owed", "hazard", "acknowledged"):
        audit_make(pipeline_make(status.replace("_", " "), now), status, now)
    pipeline_make("never audited", now)
    response = viewer.get("/")
    names = [line.status.pipeline.name for line in response.context["lines"]]
    assert names == ["hazard", "owed", "never audited", "acknowledged", "exactly once given", "exactly once"]
    assert [tile["number"] for tile in response.context["tiles"]] == [1, 1, 1, 1, 0, 0]
    page = response.content.decode()
    assert page.count("status tone-good") == 1 and page.count("status tone-given") == 1


def test_filters_are_in_the_address(viewer: Client, now: datetime) -> None:
    audit_make(pipeline_make("orders", now), "owed", now)
    plan_make(pipeline_make("mail", now), now)

    def names(query: str) -> list[str]:
        return [line.status.pipeline.name for line in viewer.get(f"/?{query}").context["lines"]]

    assert names("status=owed") == ["orders"]
    assert names("q=MAI") == ["mail"]
    assert names("q=source+ord") == ["orders"]
    assert names("plan=waiting") == ["mail"]
    assert names("status=&q=&plan=") == ["mail", "orders"] or names("status=&q=&plan=") == ["orders", "mail"]
    assert b"No pipeline is like this." in viewer.get("/?status=hazard").content


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("statsu=owed", "Did you mean &#x27;status&#x27;?"),
        ("status=fine", "One of: hazard, owed"),
        ("status=owed&status=hazard", "is given twice"),
        ("page=0", "Pages count from 1."),
        ("page=-1", "Pages count from 1."),
        ("page=%C2%B2", "Pages count from 1."),
        ("q=%00", "cannot be looked for"),
        ("q=" + "x" * 301, "At most 300 characters"),
    ],
)
def test_filter_that_is_not_understood_is_refused_politely(viewer: Client, query: str, says: str) -> None:
    response = viewer.get(f"/?{query}")
    assert response.status_code == 400
    assert says in response.content.decode()


def test_page_past_the_last_shows_the_last(viewer: Client, now: datetime) -> None:
    pipeline_make("orders", now)
    assert viewer.get("/?page=99").context["page"].number == 1


def test_words_of_the_page_are_those_of_the_status(now: datetime) -> None:
    """Every combination of what decides the word: the database says what `status_of` says."""
    for number, (audited, recovery, restored) in enumerate(
        itertools.product(
            [
                "never",
                "void",
                "stale",
                "exactly_once",
                "exactly_once_given",
                "owed",
                "hazard",
                "acknowledged",
                "unknown",
            ],
            ["none", "running", "troubled", "unknown before", "unknown after", "exactly once after", "altered after"],
            [False, True],
        )
    ):
        _situation(pipeline_make(f"p{number}", now), audited, recovery, restored, now)
    expected = {status.pipeline.name: status.status for status in fleet_status(now)}
    found = fleet_entries(now)
    assert {one.name: one.word for one in found} == expected
    assert [TROUBLE.index(one.word) for one in found] == sorted(TROUBLE.index(one.word) for one in found)
    assert {one.pipeline.name: one.status for one in statuses_of(found, now)} == expected


def _situation(pipeline: Pipeline, audited: str, recovery: str, restored: bool, now: datetime) -> None:
    if audited != "never":
        status = "owed" if audited in ("void", "stale") else audited
        age = timedelta(hours=2) if audited == "stale" else timedelta(seconds=60)
        audit = audit_make(pipeline, status, now - age)
        if audited == "void":
            Audit.objects.filter(pk=audit.pk).update(void_since=now)
    if recovery != "none":
        plan = plan_approve(plan_make(pipeline, now).id, "d" * 64, "grace", now)
        made = recovery_request(plan.id, "why", pipeline.name, "ada", now=now, wake=False)
        if recovery == "troubled":
            Recovery.objects.filter(pk=made.pk).update(problem={"text": "the sink is away"})
        elif recovery != "running":
            outcome = RecoveryOutcome.EXACTLY_ONCE if "exactly" in recovery else RecoveryOutcome.UNKNOWN
            outcome = RecoveryOutcome.INCOMPLETE_ALTERED if "altered" in recovery else outcome
            at = now - timedelta(minutes=5) if "before" in recovery else now
            Recovery.objects.filter(pk=made.pk).update(state=RecoveryState.FINISHED, outcome=outcome, finished_at=at)
    if restored:
        sink = pipeline.sink
        sink.restored_at, sink.counter_floor = now, 1
        sink.save()
