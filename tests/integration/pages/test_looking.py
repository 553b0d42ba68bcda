"""What a person keeps for looking: filters by name, and what changed since they last looked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from dashboard.views.overview import FILTERS
from recovery_api.domain.saved_filters import MOST, NAMES
from recovery_api.models import Alert, LastLook, SavedFilter
from recovery_api.selectors.clock import now_get
from recovery_api.services.looking import VISIT, look
from tests.integration.pages.fleet import audit_make, pipeline_make
from tests.integration.pages.incident import SCRIPT

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    return now_get()


def test_what_may_be_saved_are_the_overviews_filters() -> None:
    assert set(NAMES) == set(FILTERS) - {"page"}


def test_a_filter_is_saved_opened_replaced_and_deleted_by_its_person_alone(
    now: datetime, sign_in: Callable[..., Client]
) -> None:
    pipeline_make("orders", now)
    ada, grace = sign_in("viewer", name="ada"), sign_in("viewer", name="grace")
    assert "Keep this filter as" not in ada.get("/").content.decode()
    assert "Keep this filter as" in ada.get("/?status=owed").content.decode()
    for query in ("owner=a&status=owed", "status=owed&owner=b"):
        answer = ada.post("/filters/save/", {"name": SCRIPT, "query": query})
    assert answer["Location"] == "/?status=owed&owner=b#filters"
    page = ada.get("/?owner=b&status=owed").content.decode()
    assert "&lt;script&gt;" in page and SCRIPT not in page and "Keep this filter as" not in page
    assert 'href="?status=owed&amp;owner=b" aria-current="true"' in page
    (kept,) = SavedFilter.objects.all()
    assert "&lt;script&gt;" not in grace.get("/").content.decode()
    assert grace.post(f"/filters/{kept.pk}/delete/").status_code == 404
    assert grace.delete(f"/api/v1/saved-filters/{kept.pk}").status_code == 404
    assert ada.post(f"/filters/{kept.pk}/delete/", {"query": "status=owed"})["Location"] == "/?status=owed#filters"
    assert not SavedFilter.objects.exists()


@pytest.mark.parametrize("query", ["", "colour=red", "status=owed&status=hazard", "q=" + "x" * 3000])
def test_what_is_no_filter_is_not_saved(sign_in: Callable[..., Client], query: str) -> None:
    client = sign_in("viewer")
    assert client.post("/filters/save/", {"name": "x", "query": query}).status_code == 400
    body = {"name": "x", "query": query}
    assert client.post("/api/v1/saved-filters", body, content_type="application/json").status_code in (400, 422)
    assert not SavedFilter.objects.exists()


def test_filters_by_rest_are_the_same_ones_and_not_without_end(now: datetime, sign_in: Callable[..., Client]) -> None:
    client = sign_in("viewer", name="ada")
    body = {"name": "ours", "query": "?owner=payments"}
    made = client.post("/api/v1/saved-filters", body, content_type="application/json").json()
    assert (made["name"], made["query"], made["url"]) == ("ours", "owner=payments", "/?owner=payments")
    assert [one["filter"] for one in client.get("/api/v1/saved-filters").json()["items"]] == [made["filter"]]
    person = get_user_model().objects.get()
    SavedFilter.objects.bulk_create(
        SavedFilter(person=person, name=f"f{number}", query="q=x", created_at=now) for number in range(MOST - 1)
    )
    assert client.post("/filters/save/", {"name": "one more", "query": "q=y"}).status_code == 400
    assert client.post("/filters/save/", {"name": "ours", "query": "q=y"}).status_code == 302
    assert client.delete(f"/api/v1/saved-filters/{made['filter']}").json() == {"removed": made["filter"]}


def test_what_changed_is_told_since_the_visit_before_and_not_since_the_last_reload(
    now: datetime, sign_in: Callable[..., Client]
) -> None:
    client = sign_in("viewer", name="ada")
    mail, other = pipeline_make("mail", now), pipeline_make("other", now)
    audit_make(mail, "exactly_once", now - timedelta(hours=20))
    audit_make(other, "owed", now - timedelta(hours=20))
    assert "Since you last looked" not in client.get("/").content.decode(), "the first visit"
    assert "Since you last looked" not in client.get("/").content.decode(), "still the first visit"
    LastLook.objects.update(seen_at=now - timedelta(hours=14))
    audit_make(mail, "owed", now - timedelta(hours=2))
    audit_make(other, "owed", now - timedelta(hours=2))
    alert_make("pipeline", mail.pk, now - timedelta(hours=2))
    for _ in range(2):  # a reload takes nothing away
        page = client.get("/").content.decode()
        assert "Since you last looked</strong>, <time" in page and "14 h ago" in page
        assert "1 verdict changed" in page and "<strong>owed</strong>, was exactly once at f" in page
        assert "1 alert opened, 0 resolved" in page
    mine = client.get("/pipelines/other/").content.decode()
    assert "Since you last looked" not in mine, "that page was never looked at"
    since = (now - timedelta(hours=14)).isoformat()
    told = client.get("/api/v1/changes", {"since": since}).json()
    assert told["verdicts"] == [{"pipeline": "mail", "was": "exactly_once", "now": "owed", "is_worse": True}]
    assert (told["alerts_opened"], told["alerts_resolved"]) == ("1", "0")
    assert client.get("/api/v1/changes", {"since": since, "pipeline": "other"}).json()["verdicts"] == []
    assert client.get("/api/v1/changes").status_code == 422


def test_a_visit_goes_on_while_somebody_looks(now: datetime, sign_in: Callable[..., Client]) -> None:
    sign_in("viewer", name="ada")
    ada = get_user_model().objects.get()
    assert look(ada) is None
    held = LastLook.objects.get()
    LastLook.objects.update(seen_at=held.seen_at - VISIT + timedelta(minutes=1))
    assert look(ada) is None, "within the visit"
    before = LastLook.objects.get().seen_at - VISIT - timedelta(minutes=1)
    LastLook.objects.update(seen_at=before)
    assert (look(ada), look(ada)) == (before, before)


def alert_make(scope: str, key: int, at: datetime) -> Alert:
    return Alert.objects.create(
        cause="owed",
        subject=f"{scope}:{key}",
        pipeline_id=key,
        severity="error",
        says="3 are owed.",
        since=at,
        opened_at=at,
        seen_at=at,
        observed_at=at,
        level_severity="error",
        first_opened_at=at,
        told_since=at,
    )
