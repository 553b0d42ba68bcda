"""Worker processes of the crash tests: how they are started on the test's database, and how one waits for them."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from django.conf import settings
from django.db import connection


def environment(**more: str) -> dict[str, str]:
    """This process's environment, with the test's own database, no broker, and the test's evidence directory."""
    part = connection.settings_dict
    url = f"postgresql://{part['USER']}:{part['PASSWORD']}@{part['HOST']}:{part['PORT']}/{part['NAME']}"
    return {
        **os.environ,
        "DATABASE_URL": url,
        "REDIS_URL": "",
        "FENCEPOST_EVIDENCE_DIR": str(settings.FENCEPOST_EVIDENCE_DIR),
        **more,
    }


def reached(gate: Path, within_seconds: float = 120) -> None:
    """Wait until a process stands at the paused point of `gate`."""
    sign = gate.with_name(gate.name + ".reached")
    deadline = time.monotonic() + within_seconds
    waiting = threading.Event()
    while not sign.exists():
        assert time.monotonic() < deadline, f"nobody came to {gate.name}"
        waiting.wait(0.02)
