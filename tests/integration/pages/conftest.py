"""People with roles, signed in, and something to look at."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from recovery_api.domain.access import Role
from tests.integration.pages.incident import audit, pipeline  # noqa: F401  fixtures


class Reader(Client):
    """Reads a page as a browser does, where white space of any length is one space: lines of a template may end anywhere."""

    def request(self, **request: Any) -> Any:
        response = super().request(**request)
        if not response.streaming and response.get("Content-Type", "").startswith("text/html"):
            response.content = re.sub(rb"\s+", b" ", response.content)
        return response


@pytest.fixture(autouse=True)
def plain_http(settings: object) -> None:
    """The test client speaks HTTP; the redirect to HTTPS is tests/unit/test_settings.py's."""
    settings.SECURE_SSL_REDIRECT = False  # type: ignore[attr-defined]


@pytest.fixture
def sign_in(db: None) -> Callable[..., Client]:
    """`sign_in("operator", name="ada")`: a client signed in as a person with these roles."""

    def make(*roles: str, name: str = "") -> Client:
        person, _ = get_user_model().objects.get_or_create(username=name or "-".join(roles) or "nobody")
        for role in roles:
            assert role in {one.value for one in Role}
            person.groups.add(Group.objects.get_or_create(name=role)[0])
        client = Reader()
        client.force_login(person)
        return client

    return make
