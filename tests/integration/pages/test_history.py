"""The history on the pipeline's page, on the overview, by REST and by command: the same, with its holes."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from recovery_api.models import Audit, Observation, Pipeline
from tests.integration.pages.fleet import audit_make, pipeline_make

pytestmark = pytest.mark.django_db


def observed(pipeline: Pipeline, at: datetime, minutes: float, **more: Any) -> None:
    given = {"status": "exactly_once", "owed": 0, "lag_events": 0, "hazards": 0, "headroom": "ok", **more}
    Observation.objects.create(pipeline=pipeline, at=at, until=at + timedelta(minutes=minutes), **given)


@pytest.fixture
def mail() -> Pipeline:
    """Two hours ago well for an hour, then nobody looked for half of one, then owed for five minutes."""
    pipeline, now = pipeline_make("mail", timezone.now()), timezone.now()
    observed(pipeline, now - timedelta(minutes=120), 60, accepted_per_second=2.5)
    more = {"owed": 1234, "lag_events": 2345, "lag_seconds": 90, "oldest_owed_seconds": 7200, "headroom": "low"}
    observed(pipeline, now - timedelta(minutes=30), 5, status="owed", headroom_seconds=600, **more)
    return pipeline


def command(*words: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("history", "mail", *words, "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def shape(row: dict[str, Any]) -> list[tuple[str | None, int]]:
    """The strip, to the minute."""
    return [(one["status"], round(int(one["seconds"]) / 60)) for one in row["stretches"]]


@pytest.mark.parametrize(("span", "points", "minutes"), [("24h", 96, 1440), ("7d", 84, 10_080), ("30d", 90, 43_200)])
def test_strip_and_points_are_the_same_by_rest_and_by_command(
    mail: Pipeline, sign_in: Callable[..., Client], span: str, points: int, minutes: int
) -> None:
    by_rest = sign_in("viewer").get(f"/api/v1/pipelines/mail/history?span={span}").json()
    by_command = command("--span", span)
    expected = [(None, minutes - 120), ("exactly_once", 60), (None, 30), ("owed", 5), (None, 25)]
    assert shape(by_rest) == shape(by_command) == expected
    assert len(by_rest["points"]) == len(by_command["points"]) == points
    seen = [one for one in by_rest["points"] if one["status"] == "owed"]
    assert seen and {(one["owed"], one["lag_events"], one["headroom"], one["headroom_seconds"]) for one in seen} == {
        ("1234", "2345", "low", "600")
    }
    unseen = by_rest["points"][0]
    assert (unseen["status"], unseen["owed"], unseen["accepted_per_second"]) == (None, None, None)
    assert int(unseen["unobserved_seconds"]) == by_command["point_seconds"]


def test_page_draws_strip_and_chart_and_says_both_as_tables(mail: Pipeline, sign_in: Callable[..., Client]) -> None:
    page = sign_in("viewer").get("/pipelines/mail/").content.decode()
    says = re.search(r'role="img" aria-label="(Which status held when:[^"]*)"', page)
    assert says and "owed 5 min, exactly once at f 1 h, not observed 22 h 55 min." in says[1]
    assert page.count('<rect class="tone-gap"') == 3 and page.count('<rect class="tone-warn"') == 1
    figure = json.loads(re.search(r'<script id="history-chart" type="application/json">(.*?)</script>', page)[1])  # type: ignore[index]
    lines = {one["name"]: one["y"] for one in figure["data"]}
    assert max(value for value in lines["owed"] if value is not None) == 1234 and None in lines["owed"]
    assert "1,234" in page and "2,345" in page and "10 min" in page
    assert "Each point is the worst of 15 min." in page and '<td data-label="status">not observed</td>' in page


def test_longer_span_is_in_the_address_and_another_one_is_refused_with_those_there_are(
    mail: Pipeline, sign_in: Callable[..., Client]
) -> None:
    client = sign_in("viewer")
    page = client.get("/pipelines/mail/?history=30d").content.decode()
    assert '<a href="?history=30d#history" aria-current="true">30 days</a>' in page
    assert "history mail --span 30d" in page
    wrong = client.get("/pipelines/mail/?history=5d")
    assert wrong.status_code == 400 and "One of: 24h, 7d, 30d, 1y." in wrong.content.decode()
    assert client.get("/api/v1/pipelines/mail/history?span=5d").status_code == 400


def test_pipeline_that_nothing_observed_says_so_and_shows_no_zero(sign_in: Callable[..., Client]) -> None:
    pipeline_make("mail", timezone.now())
    page = sign_in("viewer").get("/pipelines/mail/").content.decode()
    assert "No audit covers any of this time." in page and "history-chart" not in page
    found = command()
    assert shape(found) == [(None, 1440)] and {one["owed"] for one in found["points"]} == {None}


def test_overview_shows_a_spark_line_in_words_too(mail: Pipeline, sign_in: Callable[..., Client]) -> None:
    pipeline_make("quiet", timezone.now())
    page = sign_in("viewer").get("/").content.decode()
    assert page.count('<svg class="spark"') == 1 and '<span class="quiet">not observed</span>' in page
    assert "<title>Last 24 hours: at worst owed, at most 2,345 not accepted, 22 h 5" in page


def test_audit_appears_in_the_history_at_once(sign_in: Callable[..., Client]) -> None:
    audit_make(pipeline_make("mail", timezone.now()), "hazard", timezone.now())
    assert sign_in("viewer").get("/api/v1/pipelines/mail/history").json()["stretches"][-1]["status"] == "hazard"


def test_who_may_not_see_is_refused_and_a_retired_or_unknown_pipeline_has_none(
    mail: Pipeline, sign_in: Callable[..., Client]
) -> None:
    for path in ("history", "retention"):
        assert sign_in().get(f"/api/v1/pipelines/mail/{path}").status_code == 403
        assert Client().get(f"/api/v1/pipelines/mail/{path}").status_code == 401
        assert sign_in("viewer").post(f"/api/v1/pipelines/mail/{path}").status_code == 405
        assert sign_in("viewer").get(f"/api/v1/pipelines/nobody/{path}").status_code == 404
        with pytest.raises(SystemExit) as ended:
            call_command(path, "nobody", stderr=io.StringIO())
        assert ended.value.code == 2
    Pipeline.objects.update(retired_at=timezone.now())
    assert sign_in("viewer").get("/api/v1/pipelines/mail/history").status_code == 404


def test_parts_that_are_gone_are_said_on_page_and_by_rest(audit: Audit, sign_in: Callable[..., Client]) -> None:
    client, name, now = sign_in("viewer"), audit.pipeline.name, timezone.now()
    parts = {"evidence_uri": "/evidence/1", "evidence_rows": 3, "groups": audit.groups}
    audit = audit_make(audit.pipeline, "owed", now, **parts)
    assert "Pinned: its pipeline has no newer audit." in client.get(f"/audits/{audit.id}/").content.decode()
    assert "its pipeline has no newer audit" in client.get(f"/pipelines/{name}/").content.decode()
    audit.evidence_gone_at = now
    audit.save()
    says = f"The parts are gone since {now:%Y-%m-%d %H:%M} UTC, by age. Figures and digest stay."
    assert says in client.get(f"/audits/{audit.id}/").content.decode()
    assert says in client.get(f"/audits/{audit.id}/findings/").content.decode()
    assert client.get(f"/api/v1/audits/{audit.id}").json()["evidence"]["gone_at"] is not None
    told = client.get(f"/api/v1/pipelines/{name}/retention").json()
    assert (told["kept"], told["gone"], told["pins"]) == ("1", "1", [])
