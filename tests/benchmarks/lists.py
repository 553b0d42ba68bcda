"""Server time of every list of the pages and of REST, with 1,000 pipelines and 100,000 findings: first page and deep page.

Django's test client calls the real views over a real database, in this process: no network, no gunicorn.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

from django.core.management import call_command
from django.utils import timezone

from tests.benchmarks.measure import databases, say

PIPELINES, FINDINGS = 1_000, 100_000


def run(count: int) -> None:
    with databases("control") as dsns:
        from tests.benchmarks.latency import use_database

        use_database(dsns["control"])
        os.environ.setdefault("FENCEPOST_HTTPS", "false")
        call_command("migrate", verbosity=0)
        say(f"making {PIPELINES:,} pipelines and {FINDINGS:,} findings …")
        audit = _make()
        addresses = _addresses(audit)
        print(f"\nEvery list with {PIPELINES:,} pipelines and {FINDINGS:,} findings: milliseconds of server time")
        print(f"{'address':<64} {'median':>7} {'most':>7}")
        get = _client()
        for address in addresses:
            get(address)
            taken = [get(address) for _ in range(count)]
            print(f"{address[:64]:<64} {statistics.median(taken):>7.0f} {max(taken):>7.0f}", flush=True)


def _make() -> str:
    """The id of the audit with the findings."""
    from recovery_api.services.findings import ListedFinding, audit_listing_record
    from tests.integration.pages.fleet import audit_make, pipeline_make, plan_make

    now = timezone.now()
    words = ("owed", "exactly_once", "hazard", "unknown")
    for number in range(PIPELINES):
        pipeline = pipeline_make(f"pipeline {number:04}", now)
        audit = audit_make(pipeline, words[number % 4], now - timedelta(seconds=number))
        if number % 5 == 0:
            plan_make(pipeline, now)
    rows = (
        ListedFinding("lost", "", "provably missing", "0", 3 * at, 0, at, None, False, b"\x01" * 32, None)
        for at in range(FINDINGS)
    )
    audit_listing_record(audit, rows)
    return str(audit.id)


def _addresses(audit: str) -> list[str]:
    name = quote(f"pipeline {PIPELINES - 1:04}")
    pages = [
        "/",
        "/?status=owed",
        "/?page=9",
        "/?q=pipeline+09",
        "/sources/",
        "/sinks/",
        "/timeline/",
        "/work/",
        f"/pipelines/{name}/",
        f"/audits/{audit}/",
        f"/audits/{audit}/findings/",
        f"/audits/{audit}/findings/?from={FINDINGS * 2}",
    ]
    rest = [
        "sources",
        "sinks",
        "pipelines?limit=200",
        "statuses?limit=200",
        "events?limit=200",
        f"audits/{audit}/findings?limit=200",
        f"audits/{audit}/findings?limit=200&low={FINDINGS * 2}",
    ]
    return [*pages, *(f"/api/v1/{path}" for path in rest)]


def _client() -> Callable[[str], float]:
    """`get(address)`: milliseconds of one answered request of a signed-in viewer."""
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group
    from django.test import Client

    settings.SECURE_SSL_REDIRECT = False
    person = get_user_model().objects.create(username="bench")
    person.groups.add(Group.objects.get_or_create(name="viewer")[0])
    client = Client(headers={"host": "localhost"})
    client.force_login(person)

    def get(address: str) -> float:
        began = time.perf_counter()
        answer = client.get(address)
        taken = time.perf_counter() - began
        assert answer.status_code == 200, (address, answer.status_code, answer.content[:300])
        return taken * 1000

    return get
