"""Nobody is lost: a session that is over, a form that is too old, an address that shows nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import caches
from django.test import Client
from django.utils import timezone

from recovery_api.models import Event, Intent
from tests.integration.pages.fleet import pipeline_make, plan_make

pytestmark = pytest.mark.django_db
HOST = "http://testserver"


@pytest.fixture
def strict() -> Client:
    """A browser whose forms must carry their token."""
    get_user_model().objects.create_superuser("ada", password="correct horse")
    caches["shared"].clear()
    return Client(enforce_csrf_checks=True)


def token_of(client: Client, address: str) -> str:
    """The token in a page's form."""
    [token, *_] = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', client.get(address).content.decode())
    return token


def next_of(answer: object) -> str:
    return parse_qs(urlsplit(answer["Location"]).query)["next"][0]  # type: ignore[index]


def test_u6_an_action_after_the_session_ended_leads_back_to_its_page_and_says_so(client: Client) -> None:
    pipeline_make("orders", timezone.now())
    page = f"{HOST}/pipelines/orders/?x=1"
    answer = client.post("/pipelines/orders/audit/", headers={"Referer": page})
    assert next_of(answer) == "/pipelines/orders/?x=1"
    said = client.get(answer["Location"]).content.decode()
    assert "Your session has ended, and nothing was done." in said
    assert "Your session has ended" not in client.get("/sign-in/").content.decode()  # said once
    assert not Intent.objects.exists()


@pytest.mark.parametrize(
    "referer", ["", "https://evil.example/pipelines/orders/", f"{HOST}/sign-in/", f"{HOST}/nowhere/"]
)
def test_u6_without_a_page_to_go_back_to_it_is_the_one_the_action_belongs_to(client: Client, referer: str) -> None:
    answer = client.post("/pipelines/orders/audit/", headers={"Referer": referer} if referer else {})
    assert next_of(answer) == "/pipelines/orders/"


def test_u6_a_page_that_polls_after_the_session_ended_comes_back_too(client: Client) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": f"{HOST}/work/"}
    answer = client.get("/work/", headers=headers)
    assert (answer.status_code, answer["HX-Redirect"]) == (401, "/sign-in/?next=%2Fwork%2F")
    assert "Your session has ended." in client.get(answer["HX-Redirect"]).content.decode()


@pytest.mark.parametrize("is_debugging", [False, True])
def test_u6_a_second_sign_in_tab_is_told_so_on_a_page_of_ours(strict: Client, settings, is_debugging: bool) -> None:
    settings.DEBUG = is_debugging
    old = token_of(strict, "/sign-in/")
    form = {"username": "ada", "password": "correct horse", "next": "/timeline/"}
    assert strict.post("/sign-in/", {**form, "csrfmiddlewaretoken": old}).status_code == 302
    second = strict.post("/sign-in/", {**form, "csrfmiddlewaretoken": old})
    page = second.content.decode()
    assert second.status_code == 403
    assert "You are signed in already" in page and 'href="/timeline/"' in page
    assert "CSRF" not in page


def test_u6_a_form_from_before_the_sign_in_leads_back_to_its_page(
    strict: Client, sign_in: Callable[..., Client]
) -> None:
    strict.cookies = sign_in("operator").cookies
    pipeline_make("orders", timezone.now())
    refused = strict.post(
        "/pipelines/orders/audit/",
        {"csrfmiddlewaretoken": "x" * 64},
        headers={"Referer": f"{HOST}/pipelines/orders/"},
    )
    page = refused.content.decode()
    assert refused.status_code == 403
    assert "Nothing was done." in page and 'href="/pipelines/orders/"' in page
    assert not Intent.objects.exists()


@pytest.mark.parametrize("next_given", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_u6_the_page_for_an_old_form_leads_to_this_site_only(strict: Client, next_given: str) -> None:
    page = strict.post("/sign-in/", {"username": "ada", "next": next_given}).content.decode()
    assert "evil" not in page and "javascript:" not in page


def test_u7_an_actions_address_asked_for_like_a_page_leads_to_its_page(sign_in: Callable[..., Client]) -> None:
    now = timezone.now()
    plan = plan_make(pipeline_make("orders", now), now)
    client = sign_in("viewer")
    for address, page in (
        (f"/plans/{plan.id}/approve/", f"/plans/{plan.id}/"),
        (f"/plans/{plan.id}/apply/", f"/plans/{plan.id}/"),
        ("/pipelines/orders/audit/", "/pipelines/orders/"),
        ("/event/read/", "/"),
        ("/sign-out/", "/"),
    ):
        answer = client.get(address)
        assert (answer.status_code, answer["Allow"]) == (405, "POST"), address
        assert f'<p><a href="{page}">' in answer.content.decode(), address
        assert "role" not in answer.content.decode().partition("<main")[2].replace('role="status"', ""), address
    assert not Event.objects.filter(kind="access denied").exists()


def test_u7_nobody_is_sent_back_to_an_address_that_shows_nothing(client: Client) -> None:
    assert next_of(client.get("/pipelines/orders/audit/")) == "/pipelines/orders/"
