from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.cache import cache, caches
from django.test import Client

from tests.integration.pages.conftest import plain_http, sign_in  # noqa: F401  fixtures


@pytest.fixture(autouse=True)
def nothing_counted(settings: object) -> None:
    settings.FENCEPOST_API_RATES = {"person": None, "anonymous": None}  # type: ignore[attr-defined]
    cache.clear()
    caches["shared"].clear()


SignIn = Callable[..., Client]
