"""People with roles, signed in, and something to look at."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from recovery_api.domain.access import Role


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
        client = Client()
        client.force_login(person)
        return client

    return make
