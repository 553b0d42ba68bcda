"""A scrape: every series that the page lists, what is not known left out, and closed to whoever has neither token nor address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from recovery_api.models import Pipeline, Recovery, Schedule
from recovery_api.selectors.clock import now_get
from recovery_api.services.audits import audit_request
from recovery_api.services.freezes import freeze_set
from recovery_api.services.headroom import headroom_sweep
from recovery_api.services.intents import intent_finish, intent_take
from recovery_api.services.workers import worker_say_present
from tests.integration.pages.fleet import audit_make, pipeline_make, plan_make

pytestmark = pytest.mark.django_db
TOKEN = {"Authorization": "Bearer s3cret"}


@pytest.fixture(autouse=True)
def token(settings: Any) -> None:
    settings.FENCEPOST_METRICS_TOKEN = "s3cret"


def scraped(client: Client) -> dict[tuple[str, ...], float]:
    answer = client.get("/metrics", headers=TOKEN)
    assert answer.status_code == 200
    samples = [one for family in text_string_to_metric_families(answer.content.decode()) for one in family.samples]
    return {(one.name, *one.labels.values()): one.value for one in samples}


def test_a_scrape_says_what_pages_say_and_nothing_of_what_is_not_known(client: Client) -> None:
    now = timezone.now()
    mail, never = pipeline_make('ma"il', now), pipeline_make("never", now)
    audit_make(mail, "owed", now)
    audit_make(pipeline_make("dark", now), "unknown", now)
    Schedule.objects.update_or_create(
        pipeline=mail, defaults={"waiting_since": now, "next_due_at": now, "due_at": None}
    )
    plan = plan_make(mail, now)
    Recovery.objects.create(
        plan=plan, pipeline=mail, frontier={}, reason="r", requested_by="ada", created_at=now, claimed_at=now
    )
    freeze_set(never, "a bad deploy", actor="ada", now=now)
    worker_say_present("w", ["spark"], now_get(), is_stopping=False)
    intent = intent_take(audit_request(never, actor="x", now=now, wake=False).id, "w", now_get())
    assert intent is not None
    intent_finish(intent, {}, now_get())
    found = scraped(client)
    assert found["fencepost_owed_events", 'ma"il'] == 3 and found["fencepost_hazards", 'ma"il'] == 0
    assert ("fencepost_owed_events", "never") not in found, "nobody looked: no number"
    assert ("fencepost_audit_age_seconds", "dark") in found
    assert not {("fencepost_owed_events", "dark"), ("fencepost_hazards", "dark")} & set(found), "it could not tell"
    assert found["fencepost_pipeline_status", "never", "unknown"] == 1
    assert found["fencepost_pipeline_status", 'ma"il', "running"] == 1
    assert found["fencepost_headroom", "unknown", "never"] == 1
    assert found["fencepost_frozen", "never"] == 1 and found["fencepost_frozen_everything",] == 0
    assert found["fencepost_workers", "spark"] == 1 and found["fencepost_workers", "default"] == 0
    assert found["fencepost_work", "spark", "queued"] == 1, "the plan"
    assert found["fencepost_work_ended_last_hour", "audit", "done"] == 1
    assert ("fencepost_recovery_step_seconds", 'ma"il', "claim") in found
    page = (Path(__file__).parents[3] / "docs" / "metrics" / "README.md").read_text(encoding="utf-8")
    families = client.get("/metrics", headers=TOKEN).content.decode()
    given = set(re.findall(r"^# HELP (fencepost_\w+)", families, re.MULTILINE))
    assert given == set(re.findall(r"`(fencepost_\w+?)(?:\{[^}]*\})?`", page)) - {"fencepost_token"}


def test_it_is_closed_without_the_token_or_an_address(client: Client, settings: Any) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer s3cre"},
        {"Authorization": "Basic s3cret"},
        {"Authorization": "Bearer "},
    ):
        assert client.get("/metrics", headers=headers).status_code == 401
    settings.FENCEPOST_METRICS_FROM = ["10.0.0.0/8"]
    assert client.get("/metrics", REMOTE_ADDR="11.0.0.1").status_code == 401
    assert client.get("/metrics", REMOTE_ADDR="10.1.2.3").status_code == 200
    settings.FENCEPOST_METRICS_TOKEN = ""
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 401


def test_a_scrape_takes_the_same_queries_for_few_pipelines_and_many(client: Client) -> None:
    counts = []
    for numbers in (range(2), range(2, 30)):
        for number in numbers:
            audit_make(pipeline_make(f"p{number}", timezone.now()), "owed", timezone.now())
        headroom_sweep(now_get())
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/metrics", headers=TOKEN).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] < 20 and Pipeline.objects.count() == 30
