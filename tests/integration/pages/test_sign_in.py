"""Signing in, being refused, and what every page carries."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import caches
from django.test import Client
from redis import Redis

from dashboard.sign_in_limit import TRIES_OF_A_NAME, TRIES_OF_AN_ADDRESS
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


def test_sign_in_page_says_what_to_run_while_there_is_nobody(client: Client) -> None:
    assert "manage.py setup" in client.get("/sign-in/").content.decode()
    get_user_model().objects.create_superuser("ada", password="correct horse")
    assert "manage.py setup" not in client.get("/sign-in/").content.decode()


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


def sign(client: Client, name: str, password: str = "wrong", path: str = "/sign-in/", **more: object) -> int:
    return client.post(path, {"username": name, "password": password}, **more).status_code  # type: ignore[arg-type]


def test_s3_there_is_one_sign_in_with_one_limit(client: Client) -> None:
    get_user_model().objects.create_superuser("ada", password="correct horse")
    for _ in range(12):
        answer = client.post("/admin/login/?next=/admin/", {"username": "ada", "password": "wrong"})
        assert (answer.status_code, answer["Location"]) == (302, "/sign-in/?next=/admin/")
    assert sign(client, "ada", "correct horse", "/admin/login/") == 302
    assert "_auth_user_id" not in client.session, "only the one sign-in signs in"
    assert client.get("/admin/")["Location"].startswith("/admin/login/")
    for _ in range(TRIES_OF_A_NAME):
        sign(client, "ada")
    assert sign(client, "ada", "correct horse") == 429
    assert client.get("/admin/login/?next=//evil.example/")["Location"] == "/sign-in/?next=/"


def test_s3_who_may_not_look_at_the_tables_is_told_so(sign_in: Callable[..., Client]) -> None:
    refused = sign_in("admin").get("/admin/", follow=True)
    assert refused.status_code == 403 and b"may look at the tables" in refused.content


def test_s5_a_name_respelled_is_the_same_name(client: Client) -> None:
    get_user_model().objects.create_superuser("ada", password="correct horse")
    for spelled in (" ada", "ada\u3000", "\uff41da", "a\u200bda", "ADA")[:TRIES_OF_A_NAME]:
        assert sign(client, spelled) == 200
    assert sign(client, "ada", "correct horse") == 429


def test_s4_each_client_behind_a_trusted_proxy_has_a_limit_of_its_own(client: Client, settings: object) -> None:
    settings.FENCEPOST_TRUSTED_PROXIES = ["10.0.0.0/8"]  # type: ignore[attr-defined]
    get_user_model().objects.create_superuser("ada", password="correct horse")
    proxy = {"REMOTE_ADDR": "10.0.0.5"}
    for number in range(TRIES_OF_AN_ADDRESS + 5):
        sign(client, f"guess {number}", HTTP_X_FORWARDED_FOR=f"198.51.100.{number}, 203.0.113.9", **proxy)
    assert sign(client, "ada", "correct horse", HTTP_X_FORWARDED_FOR="203.0.113.9", **proxy) == 429
    assert sign(client, "ada", "correct horse", HTTP_X_FORWARDED_FOR="203.0.113.10", **proxy) == 302


def test_s4_nobody_but_a_trusted_proxy_says_who_asks(client: Client, settings: object) -> None:
    settings.FENCEPOST_TRUSTED_PROXIES = ["10.0.0.5"]  # type: ignore[attr-defined]
    for number in range(TRIES_OF_AN_ADDRESS):
        sign(client, f"guess {number}", HTTP_X_FORWARDED_FOR=f"203.0.113.{number}", REMOTE_ADDR="198.51.100.7")
    forged = {"HTTP_X_FORWARDED_FOR": "192.0.2.1, 10.0.0.5", "REMOTE_ADDR": "198.51.100.7"}
    assert sign(client, "ada", **forged) == 429
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")  # type: ignore[attr-defined]
    seen = client.get("/sign-in/", HTTP_X_FORWARDED_PROTO="https", REMOTE_ADDR="198.51.100.7")
    assert not seen.wsgi_request.is_secure()
    seen = client.get(
        "/sign-in/", HTTP_X_FORWARDED_PROTO="https", HTTP_X_FORWARDED_FOR="192.0.2.1", REMOTE_ADDR="10.0.0.5"
    )
    assert seen.wsgi_request.is_secure()


def test_s4_an_ipv6_customer_is_one_address(client: Client) -> None:
    for number in range(TRIES_OF_AN_ADDRESS):
        sign(client, f"guess {number}", REMOTE_ADDR=f"2001:db8::{number:x}")
    assert sign(client, "ada", REMOTE_ADDR="2001:db8::ffff") == 429
    assert sign(client, "ada", REMOTE_ADDR="2001:db8:0:1::1") == 200


def test_a_session_before_signing_in_is_not_the_one_after(client: Client) -> None:
    get_user_model().objects.create_superuser("ada", password="correct horse")
    session = client.session
    session["planted"] = "by somebody else"
    session.save()
    before = session.session_key
    assert sign(client, "ada", "correct horse") == 302
    assert client.session.session_key != before


class Planted:
    """What would run, were it unpickled."""

    ran = False

    def __reduce__(self) -> tuple[object, ...]:
        return (_run_planted, ())


def _run_planted() -> int:
    Planted.ran = True
    return 0


def test_nothing_read_from_redis_is_run(redis_url: str, client: Client) -> None:
    broker = Redis.from_url(redis_url)
    sign(client, "ada")
    keys = list(broker.scan_iter("fencepost:*sign-in*"))
    assert keys, "the counts lie in Redis"
    for key in keys:
        broker.set(key, pickle.dumps(Planted()), ex=60)
    with contextlib.suppress(Exception):
        sign(client, "ada")
    for key in keys:
        with contextlib.suppress(ValueError):
            caches["shared"].get(key.decode().rpartition(":1:")[2])
    assert not Planted.ran
