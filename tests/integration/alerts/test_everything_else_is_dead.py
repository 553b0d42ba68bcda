"""Worker, engine and broker are gone: the pager is a process that needs the control database, and the page goes out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from recovery_api.domain.alerts.signatures import is_signed
from recovery_api.models import Delivery
from recovery_api.selectors.clock import now_get
from recovery_api.services.destinations import destination_add
from tests.integration.alerts.conftest import Receiver, judged
from tests.integration.pages.fleet import pipeline_make

PROJECT = Path(__file__).parents[3]
NOBODY = "127.0.0.1:1"
"""Where nothing listens."""


def environment(receiver: Receiver) -> dict[str, str]:
    """Broker and engine are named, and are not there."""
    own = settings.DATABASES["default"]
    address = (
        f"postgresql://{own['USER']}:{own['PASSWORD']}@{own['HOST']}:{own['PORT']}/{connection.settings_dict['NAME']}"
    )
    return {
        **os.environ,
        "DATABASE_URL": address,
        "REDIS_URL": f"redis://{NOBODY}/0",
        "SPARK_REMOTE": f"sc://{NOBODY}",
        "FENCEPOST_END_HOOK_SECRET": "whsec_c2VjcmV0",
        "FENCEPOST_ALERT_PRIVATE_ADDRESSES": "127.0.0.1",
        "FENCEPOST_HEARTBEAT_URL": f"{receiver.url}/beat",
    }


@pytest.mark.django_db(transaction=True)
def test_worker_engine_and_broker_are_dead_and_the_page_goes_out(receiver: Receiver) -> None:
    now = now_get()
    pipeline = pipeline_make("orders", now, options={"stale_after_seconds": 86_400})
    destination_add("hook", "json", address=receiver.url, secret="env:FENCEPOST_END_HOOK_SECRET", actor="root", now=now)
    judged(pipeline, "owed", now)
    command = [sys.executable, "manage.py", "pager"]
    process = subprocess.Popen(command, cwd=PROJECT, env=environment(receiver), stderr=subprocess.PIPE, text=True)
    try:
        causes = wait_for(receiver, 4)
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert causes == {"owed", "no_worker", "no_engine", "no_broker"}
    for path, headers, body in receiver.requests:
        if path != "/beat":
            id_, stamp, signature = (headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
            assert is_signed("whsec_c2VjcmV0", id_, stamp, signature, body, now_get())
    assert set(Delivery.objects.values_list("state", flat=True)) <= {"sent", "sending"}
    once = subprocess.run(
        [*command, "--once", "--json"],
        cwd=PROJECT,
        env=environment(receiver),
        capture_output=True,
        text=True,
        timeout=120,
    )
    said_once = json.loads(once.stdout)
    assert said_once["open"] == 4 and said_once["heartbeat_was_sent"], once.stderr
    assert receiver.requests[-1][0] == "/beat"


def wait_for(receiver: Receiver, count: int) -> set[str]:
    """The causes of the pages that came in, once so many are there."""
    for _ in range(600):
        pages = [json.loads(body) for path, _, body in list(receiver.requests) if path != "/beat"]
        if len(pages) >= count:
            return {page["cause"] for page in pages}
        threading.Event().wait(0.1)
    raise AssertionError(f"only {len(receiver.requests)} requests came in")
