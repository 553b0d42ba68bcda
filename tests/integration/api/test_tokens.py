"""Tokens: hashed, ending, limited, revocable; by REST and by command."""

from __future__ import annotations

import datetime as dt

import pytest

from recovery_api.models import Event, Token
from recovery_api.selectors.tokens import token_state
from tests.integration.api.conftest import Api, make_api, make_person
from tests.integration.control.test_commands import run

HOUR = dt.timedelta(hours=1)


def test_token_is_shown_once_and_kept_as_a_hash(operator):
    made = operator.post("/tokens", {"name": "runbook", "roles": ["operator"], "days": 7})
    text = made.body["token"]
    assert made.status_code == 201 and text.startswith("fp_") and made.body["begins_with"] == text[:8]
    row = Token.objects.get(id=made.body["token_id"])
    assert text not in str(vars(row)) and len(row.digest) == 128
    shown = operator.get(made.headers["Location"].removeprefix("/api/v1")).body
    assert "token" not in shown and shown["state"] == "standing"
    mine = Api(text).get("/me").body
    assert (mine["name"], mine["roles"], mine["token"]["name"]) == ("olga", ["operator"], "runbook")
    assert "approve" not in mine["permissions"]
    event = Event.objects.filter(kind="token changed").last()
    assert text not in str(event.data) and event.says == "olga made token runbook for olga: operator, 7 days."


def test_token_ends_and_its_row_stays(operator, now):
    token = Token.objects.get(name="test")
    Token.objects.update(expiry=now - HOUR)
    assert operator.get("/me").status_code == 401
    assert Token.objects.get(pk=token.pk).expiry == now - HOUR


def test_last_use_is_kept_to_a_minute(operator, now):
    assert operator.get("/me").body["token"]["last_used_at"] is None
    seen = operator.get("/me").body["token"]["last_used_at"]
    assert seen is not None and operator.get("/me").body["token"]["last_used_at"] == seen
    Token.objects.update(last_used_at=now - HOUR)
    operator.get("/me")
    assert Token.objects.get().last_used_at >= now


def test_revoked_token_stands_no_more(operator, viewer):
    token_id = operator.get("/me").body["token"]["token_id"]
    assert viewer.call("DELETE", f"/tokens/{token_id}").status_code == 404
    answer = operator.call("DELETE", f"/tokens/{token_id}")
    assert (answer.status_code, answer.body["state"], answer.body["revoked_by"]) == (200, "revoked", "olga")
    assert operator.get("/me").status_code == 401
    assert Event.objects.filter(kind="token changed", says__contains="revoked").count() == 1


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"name": "x", "roles": ["approver"]}, 422, "roles"),
        ({"name": "x", "roles": []}, 422, "roles"),
        ({"name": "x"}, 400, "roles"),
        ({"name": "x", "roles": ["root"]}, 400, "roles.0"),
        ({"name": " ", "roles": ["operator"]}, 422, "name"),
        ({"name": "x", "roles": ["operator"], "days": 0}, 400, "days"),
        ({"name": "x", "roles": ["operator"], "days": 366}, 400, "days"),
        ({"name": "x", "roles": ["operator"], "days": "7"}, 400, "days"),
        ({"name": "x", "roles": ["operator"], "days": 7.0}, 400, "days"),
        ({"name": "x", "roles": "operator"}, 400, "roles"),
        ({"name": "x", "roles": ["operator"], "expires": "never"}, 400, "expires"),
    ],
)
def test_token_that_may_not_be_made_is_refused(operator, body, status, field):
    answer = operator.post("/tokens", body)
    assert (answer.status_code, answer.body["field"]) == (status, field)
    assert Token.objects.count() == 1


def test_limited_token_makes_and_revokes_nothing_greater(db):
    user = make_person("boss", "viewer", "approver")
    whole, limited = make_api(user), make_api(user, "viewer")
    assert limited.post("/tokens", {"name": "x", "roles": ["approver"]}).status_code == 422
    token_id = whole.get("/me").body["token"]["token_id"]
    assert limited.call("DELETE", f"/tokens/{token_id}").status_code == 403
    assert whole.get("/me").status_code == 200
    mine = limited.get("/me").body["token"]["token_id"]
    assert whole.call("DELETE", f"/tokens/{mine}").status_code == 200


def test_who_configures_sees_and_revokes_everybodys(admin, operator):
    assert {row["person"] for row in admin.get("/tokens").body["items"]} == {"adam"}
    assert {row["person"] for row in admin.get("/tokens?is_everybody=true").body["items"]} == {"adam", "olga"}
    assert [row["person"] for row in admin.get("/tokens?person=olga").body["items"]] == ["olga"]
    assert operator.get("/tokens?is_everybody=true").status_code == 403
    assert operator.get("/tokens?person=adam").status_code == 403
    assert operator.get("/tokens?person=olga").status_code == 200
    token_id = operator.get("/me").body["token"]["token_id"]
    assert admin.call("DELETE", f"/tokens/{token_id}").status_code == 200
    assert operator.get("/me").status_code == 401


def test_tokens_by_command(db):
    make_person("olga", "operator", "viewer")
    added = run("tokens", "add", "olga", "--name", "runbook", "--role", "viewer", "--json", "--actor", "owner")
    assert added.code == 0 and Api(added.body["token"]).get("/me").body["roles"] == ["viewer"]
    assert "runbook" in run("tokens", "list", "olga").out and added.body["token"] not in run("tokens", "list").out
    assert run("tokens", "add", "olga", "--name", "x", "--role", "approver").code == 2
    assert run("tokens", "add", "nobody", "--name", "x").code == 2
    assert run("tokens", "revoke", added.body["token_id"]).code == 0
    assert Api(added.body["token"]).get("/me").status_code == 401
    assert run("tokens", "revoke", "no-such").code == 2


def test_a_clock_that_jumps_ends_a_token_early_or_late_and_never_revives_a_revoked_one(operator, now):
    token = Token.objects.get(name="test")
    assert [token_state(token, now + jump * HOUR) for jump in (-24, 0, 24 * 400)] == ["standing", "standing", "expired"]
    operator.call("DELETE", f"/tokens/{operator.get('/me').body['token']['token_id']}")
    token.refresh_from_db()
    assert [token_state(token, now + jump * HOUR) for jump in (-24, 24 * 400)] == ["revoked", "revoked"]
