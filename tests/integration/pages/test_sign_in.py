"""Signing in, being refused, and what every page carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import caches
from django.test import Client

from dashboard.sign_in_limit import TRIES_OF_A_NAME
from recovery_api.models import Event, EventKind

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_tries_counted() -> Iterator[None]:
    caches["shared"].clear()
    yield
    caches["shared"].clear()


def test_page_asks_for_a_sign_in_and_comes_back() -> None:
    get_user_model().objects.create_superuser("ada", password="correct horse")
    client = Client()
    refused = client.get("/timeline/?kind=audit")
    assert refused.status_code == 302
    assert refused["Location"] == "/sign-in/?next=/timeline/%3Fkind%3Daudit"
    signed_in = client.post(
        "/sign-in/", {"username": "ada", "password": "correct horse", "next": "/timeline/?kind=audit"}
    )
    assert signed_in["Location"] == "/timeline/?kind=audit"


def test_next_never_leads_to_another_site(client: Client) -> None:
    get_user_model().objects.create_superuser("ada", password="correct horse")
    for wanted in ("https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"):
        client.logout()
        done = client.post("/sign-in/", {"username": "ada", "password": "correct horse", "next": wanted})
        assert done["Location"] == "/", wanted


def test_wrong_tries_are_paused_for_that_name_only(client: Client) -> None:
    get_user_model().objects.create_superuser("ada", password="correct horse")
    get_user_model().objects.create_superuser("grace", password="correct horse")
    for _ in range(TRIES_OF_A_NAME):
        assert client.post("/sign-in/", {"username": "ada", "password": "wrong"}).status_code == 200
    paused = client.post("/sign-in/", {"username": "ada", "password": "correct horse"})
    assert paused.status_code == 429
    assert b"Too many wrong tries" in paused.content
    assert client.post("/sign-in/", {"username": "grace", "password": "correct horse"}).status_code == 302


def test_sign_out_needs_a_post(sign_in: Callable[..., Client]) -> None:
    client = sign_in("viewer")
    assert client.get("/sign-out/").status_code == 405
    assert client.post("/sign-out/")["Location"] == "/sign-in/"
    assert client.get("/").status_code == 302


def test_person_without_a_role_is_told_so_and_the_timeline_keeps_it(sign_in: Callable[..., Client]) -> None:
    refused = sign_in(name="newcomer").get("/")
    assert refused.status_code == 403
    assert b"you are without any role" in refused.content
    event = Event.objects.get(kind=EventKind.ACCESS_DENIED)
    assert event.actor == "newcomer"
    assert event.data["route"] == "overview"


def test_every_page_forbids_inline_script_and_style(sign_in: Callable[..., Client]) -> None:
    page = sign_in("viewer").get("/")
    policy = page["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert b"<style" not in page.content
    assert b" style=" not in page.content
    assert b"onclick" not in page.content
