"""The REST API as a client sees it: people with roles, their tokens, and a registered pipeline."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from recovery_api.domain.access import Role
from recovery_api.services.tokens import token_create
from tests.integration.control.conftest import (  # noqa: F401  fixtures
    _no_broker,
    _paper_kinds,
    approved_plan,
    later,
    pipeline,
    ready_plan,
)

BASE = "/api/v1"


@dataclass
class Api:
    """A client with a token. `token` empty: nobody."""

    token: str = ""
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The answer, its JSON in `.body`. `body` bytes goes as it is; underscores of a header's name are dashes."""
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        given = sent.pop("Content-Type", "application/json")
        answer = self.client.generic(method, f"{BASE}{path}", data, content_type=given, headers=sent)
        is_json = "json" in answer.headers.get("Content-Type", "")
        answer.body = json.loads(answer.content) if is_json and answer.content else None
        return answer

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("POST", path, body, **headers)


def make_person(name: str, *roles: str) -> User:
    user = User.objects.create_user(name)
    user.groups.set([Group.objects.get_or_create(name=role)[0] for role in roles])
    return user


def make_api(user: User, *roles: str) -> Api:
    """Its client, with a token of these roles, or of all that may be asked for."""
    held = [role.value for role in Role] if user.is_superuser else [group.name for group in user.groups.all()]
    _, token = token_create(user, "test", roles or held, held=held, actor=user.username, now=timezone.now())
    return Api(token)


@pytest.fixture
def now() -> dt.datetime:
    """The real one: the API reads the clock."""
    return timezone.now()


@pytest.fixture(autouse=True)
def _plain_http(settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = False
    settings.FENCEPOST_API_RATES = {"person": None, "anonymous": None}
    cache.clear()


@pytest.fixture
def everyone(db: None) -> Api:
    """Somebody who may everything."""
    return make_api(User.objects.create_superuser("root"))


@pytest.fixture
def operator(db: None) -> Api:
    return make_api(make_person("olga", "operator"))


@pytest.fixture
def approver(db: None) -> Api:
    return make_api(make_person("anna", "approver"))


@pytest.fixture
def admin(db: None) -> Api:
    return make_api(make_person("adam", "admin"))


@pytest.fixture
def viewer(db: None) -> Api:
    return make_api(make_person("vera", "viewer"))
