"""The page of API tokens: shown once, limited, revoked; one's own, and everybody's for whoever configures."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from recovery_api.models import Event, RememberedAnswer, Token
from recovery_api.services.tokens import token_create

pytestmark = pytest.mark.django_db

SignIn = Callable[..., Client]


@pytest.fixture(autouse=True)
def _no_rates(settings: Any) -> None:
    settings.FENCEPOST_API_RATES = {"person": None, "anonymous": None}
    cache.clear()


def form_of(client: Client, **fields: Any) -> dict[str, Any]:
    """What the page's form would send."""
    page = client.get("/tokens/").content.decode()
    key = re.search(r'name="key" value="([^"]+)"', page)
    assert key is not None
    return {"key": key[1], "name": "runbook", "days": "7", "roles": ["viewer"], **fields}


def curl_of(page: Any) -> list[str]:
    found = re.search(r"<code[^>]*>(curl .*?)</code>", page.content.decode())
    assert found is not None
    return shlex.split(html.unescape(found[1]))


def made_for(name: str, *roles: str, by: str = "") -> Token:
    person = get_user_model().objects.get(username=name)
    row, _ = token_create(person, f"{name}'s", roles, held=roles, actor=by or name, now=timezone.now())
    return row


def test_token_is_shown_once_and_its_curl_example_works(sign_in: SignIn) -> None:
    client = sign_in("operator", "viewer", name="olga")
    made = client.post("/tokens/", form_of(client))
    assert made.status_code == 200 and "no-store" in made["Cache-Control"]
    command = curl_of(made)
    header, _, address = command[3].partition(": ")[2], *command[4:], command[-1]
    assert command[:3] == ["curl", "-sS", "-H"] and address == "http://testserver/api/v1/me"
    me = Client().get(address.removeprefix("http://testserver"), headers={"Authorization": header}).json()
    assert (me["name"], me["roles"], me["token"]["name"]) == ("olga", ["viewer"], "runbook")
    secret = header.removeprefix("Bearer ")
    assert f'value="{secret}"' in made.content.decode()
    again = client.get("/tokens/").content.decode()
    assert secret not in again and secret[:8] in again and "just now" in again  # last used
    assert not RememberedAnswer.objects.filter(body__contains=secret).exists()
    event = Event.objects.get(kind="token changed")
    assert event.says == "olga made token runbook for olga: viewer, 7 days." and event.actor == "olga"


def test_form_that_is_sent_twice_makes_one_token_and_says_so(sign_in: SignIn) -> None:
    client = sign_in("viewer")
    form = form_of(client)
    client.post("/tokens/", form)
    again = client.post("/tokens/", form)
    assert Token.objects.count() == 1 and b"This form was sent already" in again.content
    assert b'id="secret"' not in again.content


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"roles": ["approver"]}, "approver is not one of the available choices"),
        ({"roles": []}, "This field is required"),
        ({"name": " "}, "This field is required"),
        ({"name": "x" * 201}, "at most 200 characters"),
        ({"days": "0"}, "greater than or equal to 1"),
        ({"days": "366"}, "less than or equal to 365"),
        ({"days": "7.5"}, "Enter a whole number"),
        ({"key": "no key"}, "No token was made"),
    ],
)
def test_token_that_may_not_be_made_is_refused_at_its_field(sign_in: SignIn, fields: dict[str, Any], says: str) -> None:
    client = sign_in("viewer")
    refused = client.post("/tokens/", form_of(client, **fields))
    assert refused.status_code == 400 and says in refused.content.decode()
    assert not Token.objects.exists()


def test_name_is_shown_escaped(sign_in: SignIn) -> None:
    client = sign_in("viewer")
    made = client.post("/tokens/", form_of(client, name="<script>alert(1)</script>"))
    assert b"<script>alert" not in made.content and b"&lt;script&gt;alert" in made.content


def test_person_without_a_role_is_offered_no_form(sign_in: SignIn) -> None:
    page = sign_in(name="newcomer").get("/tokens/")
    assert page.status_code == 200 and b"You have no role" in page.content and b"Make it" not in page.content


def test_one_sees_and_revokes_ones_own_only(sign_in: SignIn) -> None:
    olga, vera = sign_in("operator", name="olga"), sign_in("viewer", name="vera")
    token = made_for("olga", "operator")
    assert b"olga&#x27;s" in olga.get("/tokens/").content
    assert b"olga" not in vera.get("/tokens/").content
    assert vera.post(f"/tokens/{token.id}/revoke/").status_code == 404
    assert b"from the next request on" in olga.get(f"/tokens/{token.id}/revoke/").content
    token.refresh_from_db()
    assert token.revoked_at is None  # to look is not to revoke
    done = olga.post(f"/tokens/{token.id}/revoke/", follow=True)
    assert b"is revoked" in done.content and b"by <bdi>olga</bdi>" in done.content
    assert olga.post(f"/tokens/{token.id}/revoke/").status_code == 302
    assert Event.objects.filter(kind="token changed", says__contains="revoked").count() == 1


def test_who_configures_sees_and_revokes_everybodys(sign_in: SignIn) -> None:
    adam, olga = sign_in("admin", name="adam"), sign_in("operator", name="olga")
    token = made_for("olga", "operator", by="root")
    assert b"Everybody" in adam.get("/tokens/").content and b"Everybody" not in olga.get("/tokens/").content
    everybody = adam.get("/tokens/everybody/?q=olga&state=standing").content
    assert b"olga" in everybody and b"by <bdi>root</bdi>" in everybody
    assert b"None is like this" in adam.get("/tokens/everybody/?state=expired").content
    assert adam.get("/tokens/everybody/?state=gone").status_code == 400
    assert adam.post(f"/tokens/{token.id}/revoke/")["Location"] == "/tokens/everybody/"
    token.refresh_from_db()
    assert token.revoked_by == "adam"


def test_state_of_a_token_filters_the_list(sign_in: SignIn) -> None:
    client = sign_in("viewer", name="vera")
    token = made_for("vera", "viewer")
    Token.objects.filter(pk=token.pk).update(expiry=timezone.now() - timedelta(hours=1))
    assert b"None is like this" in client.get("/tokens/?state=standing").content
    assert b"vera&#x27;s" in client.get("/tokens/?state=expired").content


def test_demoted_person_still_revokes_the_token_of_more_by_rest(sign_in: SignIn) -> None:
    client = sign_in("viewer", "approver", name="vera")
    token = made_for("vera", "approver")
    get_user_model().objects.get(username="vera").groups.remove(Group.objects.get(name="approver"))
    assert client.delete(f"/api/v1/tokens/{token.id}").status_code == 200
