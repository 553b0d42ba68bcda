"""The table of routes is the authority: every page is in it, and every role is tried on every one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.converters import StringConverter, UUIDConverter
from rest_framework.views import APIView

from recovery_api.domain.access import PAGES, PERMISSIONS_OF, Permission, Role
from recovery_api.models import Event, EventKind

pytestmark = pytest.mark.django_db

VALUES = {StringConverter: "nobody", UUIDConverter: uuid.UUID(int=7)}


def pages(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Route name and an address of every page; REST and Django's admin have their own rules."""
    for found in resolver.url_patterns:
        if isinstance(found, URLResolver):
            if found.app_name != "admin":
                yield from pages(found, prefix + str(found.pattern))
        elif isinstance(found, URLPattern) and not _is_rest(found.callback):
            address = prefix + str(found.pattern)
            for name, converter in found.pattern.converters.items():
                kind = next(
                    word
                    for word in ("end_name", "str", "uuid", "int", "path", "slug", "")
                    if f"<{word}:{name}>" in address
                )
                value = next((v for k, v in VALUES.items() if isinstance(converter, k)), 7)
                address = address.replace(f"<{kind}:{name}>", str(value))
            yield found.name or "", f"/{address}"


def _is_rest(view: Callable) -> bool:
    shown = getattr(view, "cls", None) or getattr(view, "view_class", None)
    return isinstance(shown, type) and issubclass(shown, APIView)


ADDRESSES = dict(pages(get_resolver()))
NEEDS_A_ROLE = [case for case, needed in PAGES.items() if needed not in (Permission.ANYONE, Permission.SIGNED_IN)]
NEEDS_SOMEBODY = [case for case, needed in PAGES.items() if needed != Permission.ANYONE]


def test_every_page_is_in_the_table_and_the_table_has_no_other() -> None:
    assert set(ADDRESSES) == {route for route, _ in PAGES}


@pytest.mark.parametrize(("route", "method"), NEEDS_A_ROLE)
def test_each_role_may_what_the_table_says(route: str, method: str, sign_in: Callable[..., Client]) -> None:
    needed = PAGES[route, method]
    for role in Role:
        response = sign_in(role.value).generic(method, ADDRESSES[route])
        is_allowed = needed in PERMISSIONS_OF[role]
        assert (response.status_code != 403) == is_allowed, (role, response.status_code)
        if not is_allowed:
            assert b"Needs the role" in response.content
            event = Event.objects.filter(kind=EventKind.ACCESS_DENIED).latest("id")
            assert (event.actor, event.data["route"]) == (role.value, route)


@pytest.mark.parametrize(("route", "method"), NEEDS_SOMEBODY)
def test_nobody_is_sent_to_the_sign_in_page(route: str, method: str, client: Client) -> None:
    response = client.generic(method, ADDRESSES[route])
    assert response.status_code == 302
    assert response["Location"].startswith("/sign-in/?next=")
    assert not Event.objects.exists()


@pytest.mark.parametrize("route", sorted(ADDRESSES))
def test_method_that_is_not_in_the_table_is_refused_to_everybody(route: str, sign_in: Callable[..., Client]) -> None:
    client = sign_in(*(role.value for role in Role), name="everything")
    known = {one for name, one in PAGES if name == route}
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH"} - known:
        refused = client.generic(method, ADDRESSES[route])
        assert (refused.status_code, set(refused["Allow"].split(", "))) == (405, known), method


def test_post_without_its_token_is_refused(sign_in: Callable[..., Client]) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = sign_in("admin").cookies
    assert strict.post("/add/source/", {"kind": "postgresql_outbox"}).status_code == 403
