"""A process whose wall clock is wrong: libfaketime, preloaded. Its monotonic clock stays right, as on a real machine."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.programs import program_missing

MARGIN_SECONDS = 600.0


def clock_shifted(hours: float) -> dict[str, str]:
    """The environment that shifts a process's clock; the test is skipped where this machine cannot do it."""
    spec = importlib.util.find_spec("libfaketime")
    assert spec is not None and spec.origin is not None
    library = Path(spec.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"
    env = {"FAKETIME": f"{hours:+}h", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "LD_PRELOAD": str(library)}
    ask = [sys.executable, "-c", "import time; print(time.time())"]
    told = subprocess.run(ask, env=os.environ | env, capture_output=True, text=True)
    if abs(float(told.stdout) - time.time() - hours * 3600) > MARGIN_SECONDS:
        program_missing(
            "libfaketime shifts no clock here: run these tests on Linux on x86-64, for which its wheel is built"
        )
    return env
