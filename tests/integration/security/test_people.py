"""Tokens, passwords, refusals, odd addresses, characters that act, and one pipeline's things under another's name."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from recovery_api.domain.visible import ACTING
from recovery_api.models import (
    AcknowledgedOmission,
    Event,
    EventKind,
    Intent,
    Pipeline,
    RefusalCount,
    Sink,
    Source,
    Token,
)
from recovery_api.services.tokens import token_create
from tests.integration.security.conftest import SignIn

pytestmark = pytest.mark.django_db

OLD, NEW = "correct horse battery", "staple 4 the horse"


def bearer(text: str) -> dict[str, str]:
    return {"HTTP_AUTHORIZATION": f"Bearer {text}"}


def test_s10_a_token_may_have_any_role_below_its_persons(sign_in: SignIn, client: Client) -> None:
    approver = sign_in("approver", name="anna")
    for role in ("viewer", "operator", "approver"):
        made = approver.post("/api/v1/tokens", {"name": role, "roles": [role]}, content_type="application/json")
        assert made.status_code == 201, made.content
        me = client.get("/api/v1/me", **bearer(made.json()["token"])).json()
        assert me["roles"] == [role]
    page = approver.get("/tokens/").content.decode()
    assert 'value="viewer"' in page and 'value="operator"' in page and 'value="admin"' not in page
    for asker, roles in ((approver, ["admin"]), (sign_in("admin"), ["operator"]), (sign_in("viewer"), ["operator"])):
        refused = asker.post("/api/v1/tokens", {"name": "x", "roles": roles}, content_type="application/json")
        assert refused.status_code == 422, refused.content


def test_s10_a_token_loses_what_its_person_loses(sign_in: SignIn, client: Client) -> None:
    sign_in("approver", name="anna")
    anna = get_user_model().objects.get(username="anna")
    _, text = token_create(anna, "t", ["operator"], held=["approver"], actor="anna", now=timezone.now())
    assert client.get("/api/v1/sources", **bearer(text)).status_code == 200
    anna.groups.clear()
    assert client.get("/api/v1/sources", **bearer(text)).status_code == 403


def test_s11_a_new_password_ends_sessions_and_says_that_tokens_stand(client: Client, sign_in: SignIn) -> None:
    sign_in("operator", name="olga")
    olga = get_user_model().objects.get(username="olga")
    olga.set_password(OLD)
    olga.save()
    _, text = token_create(olga, "pager", ["operator"], held=["operator"], actor="olga", now=timezone.now())
    other = Client()
    for one in (client, other):
        one.post("/sign-in/", {"username": "olga", "password": OLD})
    form = {"old_password": OLD, "new_password1": NEW, "new_password2": NEW}
    assert client.post("/password/", {**form, "old_password": "wrong"}).status_code == 400
    assert client.get("/admin/password_change/")["Location"] == "/password/", "there is one page for it"
    for _ in range(7):
        assert client.post("/password/", {**form, "new_password1": "1", "new_password2": "1"}).status_code == 400
    after = client.post("/password/", form, follow=True).content.decode()
    assert "1 API token of yours still stand" in after and "A new password does not end tokens" in after
    assert other.get("/").status_code == 302, "the other session ended with the password"
    assert client.get("/api/v1/me", **bearer(text)).status_code == 200
    ended = client.post("/tokens/end-all/", follow=True).content.decode()
    assert "1 token ended" in ended and "End all" not in ended
    assert client.get("/api/v1/me", **bearer(text)).status_code == 401
    assert Event.objects.filter(kind=EventKind.TOKEN_CHANGED, says__contains="revoked").count() == 1


def test_s11_all_tokens_end_by_rest_and_by_command_and_nobody_elses(sign_in: SignIn) -> None:
    now = timezone.now()
    clients = {name: sign_in("operator", name=name) for name in ("olga", "omar")}
    for name in clients:
        user = get_user_model().objects.get(username=name)
        for number in range(2):
            token_create(user, f"t{number}", ["operator"], held=["operator"], actor=name, now=now)
    assert clients["olga"].delete("/api/v1/tokens").json() == {"ended": "2"}
    assert {token.user.username for token in Token.objects.filter(revoked_at__isnull=True)} == {"omar"}
    omar = get_user_model().objects.get(username="omar")
    _, weak = token_create(omar, "weak", ["viewer"], held=["operator"], actor="omar", now=now)
    assert Client().delete("/api/v1/tokens", **bearer(weak)).json() == {"ended": "1"}, "itself, and nothing stronger"
    out = StringIO()
    call_command("tokens", "revoke", "--all-of", "omar", "--json", stdout=out)
    assert json.loads(out.getvalue())["ended"] == 2


def test_s13_refusals_are_one_event_an_hour_and_person(sign_in: SignIn) -> None:
    robot = sign_in("viewer", name="robot")
    for _ in range(5):
        assert robot.post("/sources/x/test/").status_code == 403
        assert robot.post("/api/v1/audits", {}, content_type="application/json").status_code == 403
    assert sign_in("viewer", name="vera").post("/api/v1/audits", {}, content_type="application/json").status_code == 403
    assert Event.objects.filter(kind=EventKind.ACCESS_DENIED).count() == 2
    counted = RefusalCount.objects.get(actor="robot")
    assert (counted.count, counted.event.actor) == (10, "robot")
    assert "10 refusals in that hour" in robot.get("/timeline/").content.decode()
    event = robot.get("/api/v1/events?actor=robot").json()["items"][0]
    assert int(event["data"]["refused_count"]) == 10


ODD = [
    "%00",
    "a%00b",
    "%0A",
    "%1B[2J",
    "%ED%A0%80",
    "%FF",
    "..%2F..",
    "x" * 3000,
    "%F0%9F%A7%BE",
    "'",
    "%25s",
    "{{7*7}}",
]


@pytest.mark.parametrize("text", ODD)
def test_s9_an_odd_name_is_not_there(text: str, sign_in: SignIn) -> None:
    client = sign_in("admin", "approver", name="ada")
    for place in ("/pipelines/{}/", "/sources/{}/", "/sinks/{}/edit/", "/pipelines/{}/timeline/"):
        assert client.get(place.format(text)).status_code == 404, place
    for place in ("/api/v1/pipelines/{}", "/api/v1/sinks/{}", "/api/v1/intents/{}"):
        assert client.get(place.format(text)).status_code == 404, place


@pytest.mark.parametrize(
    "text", ["%00", "a%00", "%FF", "-1", "9" * 40, "%F0%9F%A7%BE", "1e9", "%0D%0ASet-Cookie:%20a=b"]
)
def test_s9_an_odd_filter_is_answered(text: str, sign_in: SignIn) -> None:
    client = sign_in("admin", "approver", name="ada")
    for place in (
        "/timeline/?actor={}",
        "/timeline/?before={}",
        "/tokens/?page={}",
        "/sources/?q={}",
        "/event/?lane={}&at=1",
        "/event/?plan={}&at={}&lane=0",
        "/add/source/?from={}",
        "/tokens/everybody/?q={}",
        "/?q={}",
        "/sign-in/?next={}",
    ):
        answer = client.get(place.replace("{}", text))
        assert answer.status_code < 500, place
        assert "Set-Cookie: a" not in str(answer.headers)
    for place in (
        "/api/v1/events?actor={}",
        "/api/v1/events?after={}",
        "/api/v1/audits?pipeline={}",
        "/api/v1/sources?cursor={}",
    ):
        assert client.get(place.replace("{}", text)).status_code < 500, place
    for place in ("/add/source/", "/add/pipeline/", "/tokens/", "/event/read/", "/password/"):
        for field in ("name", "kind", "key", "lane", "at", "old_password", "option_connection"):
            assert client.post(place, {field: "a\x00b"}).status_code < 500, (place, field)


ESC, RLO = "\x1b[2J", "\u202e"


def make_end(name: str) -> Source:
    now = timezone.now()
    report: dict[str, Any] = {
        "is_usable": False,
        "facts": {"role": f"{RLO}role{ESC}"},
        "problems": [f"{ESC}cleared"],
        "weaknesses": [f"{RLO}w"],
    }
    by = {"created_at": now, "created_by": f"{RLO}root"}
    return Source.objects.create(
        name=name, kind="postgresql_outbox", options={"table": f"t{RLO}{ESC}"}, report=report, tested_at=now, **by
    )


def test_s12_characters_that_act_are_shown_on_pages_and_terminal(sign_in: SignIn) -> None:
    make_end("orders")
    client = sign_in("admin", name="ada")
    for place in ("/sources/", "/sources/orders/"):
        answer = client.get(place)
        assert not ACTING.search(answer.content.decode()), place
    assert "\\u202erole\\x1b[2J" in client.get("/sources/orders/").content.decode()
    answer = client.get("/api/v1/sources/orders")
    assert not ACTING.search(answer.content.decode()) and answer.json()["options"]["table"] == f"t{RLO}{ESC}"
    edit = client.get("/sources/orders/edit/").content.decode()
    assert f"t{RLO}" in edit, "what a form gives back is as it was"
    out = StringIO()
    call_command("sources", "show", "orders", stdout=out)
    assert not ACTING.search(out.getvalue()) and "\\x1b[2J" in out.getvalue()
    out = StringIO()
    call_command("sources", "show", "orders", "--json", stdout=out)
    assert not ACTING.search(out.getvalue())
    assert json.loads(out.getvalue())["options"]["table"] == f"t{RLO}{ESC}", "JSON stays JSON"
    err = StringIO()
    with pytest.raises(SystemExit):
        call_command("sources", "show", f"no{ESC}such", stdout=StringIO(), stderr=err)
    assert not ACTING.search(err.getvalue())


def test_s12_a_new_name_holds_none(sign_in: SignIn) -> None:
    options = {"connection": "env:FENCEPOST_END_ORDERS", "table": "outbox", "coordinate": ["id"]}
    client = sign_in("admin")
    for name, status in ((f"or{RLO}ders", 422), (f"or{ESC}ders", 422), ("orders", 201)):
        body = {"name": name, "kind": "postgresql_outbox", "options": options}
        answer = client.post("/api/v1/sources", body, content_type="application/json")
        assert answer.status_code == status, answer.content


def test_every_answer_carries_the_headers_that_protect(sign_in: SignIn, settings: Any) -> None:
    client = sign_in("viewer")
    for place in ("/", "/sign-in/", "/nowhere/", "/api/v1/sources", "/admin/login/"):
        answer = client.get(place)
        assert answer["X-Content-Type-Options"] == "nosniff" and answer["X-Frame-Options"] == "DENY", place
        policy = answer["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, place
    assert settings.SESSION_COOKIE_HTTPONLY and settings.SESSION_COOKIE_SAMESITE == "Lax"


def test_every_post_of_a_page_needs_the_csrf_token(sign_in: SignIn) -> None:
    from recovery_api.domain.access import PAGES
    from tests.integration.security.test_role_matrix import address_of

    signed = sign_in("admin", "approver", name="ada")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = signed.cookies
    for route, method in PAGES:
        if method == "POST":
            answer = strict.post(address_of(route), {})
            assert answer.status_code == 403 and b"CSRF" in answer.content.upper(), route


def test_one_pipelines_things_are_not_reached_under_anothers_name(sign_in: SignIn) -> None:
    """Roles are not per pipeline; an address still means what it says."""
    now = timezone.now()
    by = {"created_at": now, "created_by": "root"}
    client = sign_in("admin", "approver", name="ada")
    mine, theirs = (
        Pipeline.objects.create(
            name=name,
            source=Source.objects.create(name=f"s-{name}", kind="postgresql_outbox", options={}, **by),
            sink=Sink.objects.create(name=f"k-{name}", kind="postgresql_kit", options={}, **by),
            **by,
        )
        for name in ("mine", "theirs")
    )
    AcknowledgedOmission.objects.create(
        pipeline=theirs, lane="0", position=7, ordinal=0, reason="x", acknowledged_by="root", acknowledged_at=now
    )
    given = {"coordinate": "7"}
    path = "/api/v1/pipelines/{}/omissions/withdraw"
    assert client.post(path.format("mine"), given, content_type="application/json").status_code in (404, 409, 422)
    assert AcknowledgedOmission.objects.get().withdrawn_at is None
    theirs_work = Intent.objects.create(action="audit", pipeline=theirs, **by)
    listed = client.get("/api/v1/intents?pipeline=mine").json()["items"]
    assert str(theirs_work.id) not in str(listed)
    for place in ("/add/source/found/{}/", "/add/sink/found/{}/", "/contents/{}/", "/tests/{}/contents/"):
        for method in (client.get, client.post):
            answer = method(place.format(theirs_work.id))
            assert answer.status_code in (403, 404, 405), (place, answer.status_code)
    assert mine.name == "mine"
