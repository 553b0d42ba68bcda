"""How many queries each page takes: a committed table, the same for a few rows and for many."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from recovery_api.selectors.clock import now_get
from recovery_api.services.headroom import headroom_sweep
from recovery_api.services.tokens import token_create
from tests.integration.pages.fleet import audit_make, pipeline_make, plan_make

pytestmark = pytest.mark.django_db

BASELINE = {
    # address -> queries, six of them for the session, the person, their roles, the open alerts, and what was seen of the parts
    "/": 25,
    "/?status=owed": 25,
    "/?headroom=unknown": 26,
    "/tokens/": 9,
    "/tokens/everybody/": 8,
    "/timeline/": 8,
    "/timeline/?pipeline=p1&kind=pipeline+created&actor=root": 8,
    "/sources/": 8,
    "/sinks/": 8,
    "/sources/source%20p1/": 11,
    "/sinks/sink%20p1/": 13,
    "/pipelines/p1/": 38,
    "/pipelines/p1/timeline/": 10,
    "/add/pipeline/": 8,
    "/pipelines/p1/edit/": 9,
    "/sources/source%20p1/edit/": 9,
}


def test_pages_take_the_same_queries_for_few_rows_and_many(sign_in: Callable[..., Client]) -> None:
    client = sign_in("admin", "viewer")
    person = get_user_model().objects.get()
    for numbers in (range(3), range(3, 60)):
        now = timezone.now()
        for number in numbers:
            pipeline = pipeline_make(f"p{number}", now)
            audit_make(pipeline, "owed", now)
            token_create(person, f"t{number}", ["viewer"], held=["viewer"], actor="root", now=now)
            if number % 2:
                plan_make(pipeline, now)
        headroom_sweep(now_get())
        assert {address: count(client, address) for address in BASELINE} == BASELINE, f"with {numbers.stop} pipelines"


def count(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return len(queries)
