"""Pipelines, a clock that tests move by hand, and a receiver that is a real HTTP server."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache

from recovery_api.models import Alert, Delivery, Destination
from recovery_api.services.alerts import Evaluated, alerts_evaluate
from recovery_api.services.destinations import destination_add
from tests.integration.pages.fleet import audit_make
from tests.integration.recovery.world import World, world_make

NOW = dt.datetime(2026, 3, 1, 3, 0, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def _alone(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No broker and no engine is named; the receiver listens at a private address that an administrator named."""
    settings.REDIS_URL = settings.SPARK_REMOTE = settings.FENCEPOST_HEARTBEAT_URL = ""
    settings.FENCEPOST_ALERT_PRIVATE_ADDRESSES = ["127.0.0.1"]
    settings.FENCEPOST_URL = "https://fencepost.example"
    monkeypatch.setenv("FENCEPOST_END_HOOK_SECRET", "whsec_c2VjcmV0")


@pytest.fixture
def later() -> Callable[..., dt.datetime]:
    return lambda **by: NOW + dt.timedelta(**by)


def evaluate(at: dt.datetime, **more: Any) -> Evaluated:
    found = alerts_evaluate({}, at=at, **more)
    assert found is not None
    return found


def judged(pipeline: Any, status: str, at: dt.datetime, **more: Any) -> Any:
    """An audit whose record was read at that time."""
    return audit_make(pipeline, status, at, record_read_at=at, **more)


def open_causes() -> list[str]:
    return sorted(Alert.objects.filter(resolved_at__isnull=True).values_list("cause", flat=True))


def sent(destination: Destination | None = None) -> list[tuple[str, str, int]]:
    """The messages that were made: kind, state and how many alerts each tells of."""
    rows = Delivery.objects.order_by("number")
    rows = rows.filter(destination=destination) if destination else rows
    return [(row.kind, row.state, row.message["count"]) for row in rows]


@dataclass
class Receiver:
    """What came in, and what is answered."""

    url: str
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hangs: threading.Event | None = None
    hangs_at: str = ""
    """The path that hangs; empty: every one."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found: Receiver

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found.requests.append((self.path, {name.lower(): text for name, text in self.headers.items()}, body))
            if found.hangs is not None and found.hangs_at in ("", self.path):
                found.hangs.wait(30)
            self.send_response(found.status)
            for name, text in found.headers.items():
                self.send_header(name, text)
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield found
    if found.hangs is not None:
        found.hangs.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def hook(db: None) -> Destination:
    """A JSON webhook that takes everything."""
    return destination_add(
        "hook",
        "json",
        address="https://hooks.example/fencepost",
        secret="env:FENCEPOST_END_HOOK_SECRET",
        actor="root",
        now=NOW,
    )


@pytest.fixture
def world(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, settings: Any) -> World:
    """A real pipeline whose relay is about to die; over HTTP."""
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path / "evidence"
    settings.SECURE_SSL_REDIRECT = False
    settings.FENCEPOST_API_RATES = {"person": None, "anonymous": None}
    cache.clear()
    return world_make(database_factory, tmp_path, is_scheduled=False)
