"""Every route, every method, every role: the table is the authority, and nothing is reachable beside it."""

from __future__ import annotations

import itertools
import uuid

import pytest
from django.urls import URLPattern, reverse

from recovery_api import urls
from recovery_api.domain.access import API, WITHDRAWING, Permission, Role, is_allowed, who_may
from recovery_api.models import Event, IntentAction
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import connection_test_request
from tests.integration.api.conftest import Api, make_api, make_person

pytestmark = pytest.mark.slow

ROUTES: list[URLPattern] = urls.urlpatterns
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
NAMES = {route.name: route for route in ROUTES}


def methods_of(route: URLPattern) -> set[str]:
    view = route.callback.cls
    return {name.upper() for name in view.http_method_names if name != "head" and hasattr(view, name)}


def path_of(name: str) -> str:
    if name == "api-unknown":
        return "/no/such/address"
    arguments = {one: "no such" if one == "name" else uuid.uuid4() for one in NAMES[name].pattern.converters}
    return reverse(name, kwargs=arguments).removeprefix("/api/v1")


def test_no_route_of_the_api_is_missing_in_the_table_and_none_is_left_over():
    assert {(route.name, method) for route in ROUTES for method in methods_of(route)} == set(API)
    assert len(NAMES) == len(ROUTES) and all(name.startswith("api-") for name in NAMES)


def test_every_post_takes_an_idempotency_key():
    posts = [route.callback.cls.post for route in ROUTES if "POST" in methods_of(route) and route.name != "api-unknown"]
    assert posts and all(getattr(post, "is_idempotent", False) for post in posts)


@pytest.mark.parametrize("held", [None, (), *[(role.value,) for role in Role], ("viewer", "admin")])
def test_every_route_and_method_answers_each_role_as_the_table_says(db, held):
    api = Api() if held is None else make_session(make_person("someone", *held))
    for name, method in itertools.product(NAMES, METHODS):
        answer = api.call(method, path_of(name), {} if method == "POST" else None)
        if (name, method) not in API:
            assert answer.status_code == 405, (name, method)
        elif is_allowed(name, method, held):
            assert answer.status_code not in (401, 403, 405, 500), (name, method, answer.content)
        elif held is None:
            assert (answer.status_code, answer.body["code"]) == (401, "not_authenticated"), (name, method)
        else:
            assert (answer.status_code, answer.body["code"]) == (403, "not_permitted"), (name, method)
            assert answer.body["roles"] == [role.value for role in who_may(API[name, method])]


def make_session(user) -> Api:
    """Somebody who signed in to the pages; the test client sends no CSRF token and is not asked for one."""
    api = Api()
    api.client.force_login(user)
    return api


@pytest.mark.parametrize("limit", [role.value for role in Role])
def test_token_gives_no_more_than_its_roles_whatever_its_person_is(db, limit):
    boss = make_person("boss", *Role)
    for name, method in API:
        api = make_api(boss, limit)  # one of them ends all of its person's tokens
        answer = api.call(method, path_of(name), {} if method == "POST" else None)
        assert (answer.status_code == 403) is not is_allowed(name, method, [limit]), (name, method)


def test_token_gives_no_more_than_its_person_is_now(db):
    user = make_person("olga", "operator")
    api = make_api(user)
    assert api.post("/audits", {}).status_code == 400
    user.groups.clear()
    assert api.post("/audits", {}).status_code == 403
    user.is_active = False
    user.save()
    assert api.get("/me").status_code == 401


def test_refusal_names_who_may_and_stands_in_the_timeline(viewer):
    answer = viewer.post("/recoveries", {"reason": "x"})
    assert answer.body["detail"] == "Needs the role approver; you are viewer with this token."
    event = Event.objects.get(kind="access denied")
    assert event.actor == "vera" and "POST api-recoveries" in event.says
    assert event.data == {"route": "api-recoveries", "method": "POST", "path": "/api/v1/recoveries"}


def test_session_without_a_csrf_token_changes_nothing(db):
    from django.test import Client

    api = Api(client=Client(enforce_csrf_checks=True, raise_request_exception=False))
    api.client.force_login(make_person("adam", "admin"))
    assert api.get("/sources").status_code == 200
    answer = api.post("/sources", {"name": "x", "kind": "paper_source", "options": {"path": "p"}})
    assert (answer.status_code, answer.body["code"]) == (403, "csrf_failed")
    api.client.get("/api/v1/docs")
    token = api.client.cookies["csrftoken"].value
    answer = api.post("/sources", {"name": "x", "kind": "paper_source", "options": {"path": "p"}}, X_CSRFToken=token)
    assert answer.status_code == 201


def test_work_is_withdrawn_by_who_may_ask_for_it(pipeline, now, viewer, operator, admin):
    assert set(WITHDRAWING) == set(IntentAction)
    audit = audit_request(pipeline, actor="x", now=now)
    tested = connection_test_request(actor="x", now=now, source=pipeline.source)
    assert viewer.post(f"/intents/{audit.id}/cancel").body["roles"] == ["operator", "approver"]
    assert operator.post(f"/intents/{tested.id}/cancel").body["roles"] == ["admin"]
    assert operator.post(f"/intents/{audit.id}/cancel").body["state"] == "cancelled"
    assert admin.post(f"/intents/{tested.id}/cancel").body["state"] == "cancelled"
    again = operator.post(f"/intents/{audit.id}/cancel")
    assert (again.status_code, again.body["code"]) == (409, "refused")


def test_everybody_may_see_the_document_and_the_page_to_try_it(db):
    assert Api().get("/schema").body["openapi"].startswith("3.1")
    assert API["api-docs", "GET"] == Permission.ANYONE
