"""Every infrastructure fault of `make chaos` once, on servers of its own: the round ends exactly once, by the oracle."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.chaos.faults import INFRASTRUCTURE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
]

OWN = ("DATABASE_URL", "REDIS_URL", "SPARK_REMOTE", "FENCEPOST_CRASH", "FENCEPOST_PAUSE", "DJANGO_SETTINGS_MODULE")


@pytest.fixture(scope="module")
def rounds() -> dict[str, dict[str, Any]]:
    """What each fault's round said. One run for all of them: its servers take longer to start than a round."""
    env = {name: value for name, value in os.environ.items() if name not in OWN}
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--each", "--seed", "1"], env=env, capture_output=True, text=True
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"round"')]
    assert rows, done.stderr
    return {row["fault"]: row for row in rows}


@pytest.mark.parametrize("fault", INFRASTRUCTURE)
def test_a_recovery_ends_exactly_once_whatever_server_or_worker_fails(
    rounds: dict[str, dict[str, Any]], fault: str
) -> None:
    assert rounds[fault]["held"], rounds[fault]["says"]
    assert rounds[fault]["outcome"] == "exactly_once"


def test_a_worker_that_slept_past_everything_reads_by_whom_and_when_it_was_superseded(
    rounds: dict[str, dict[str, Any]],
) -> None:
    says = rounds["worker_paused_past_everything"]["says"]
    assert (
        "was refused. Superseded by generation" in says and "taken by recovery" in says and "worker successor" in says
    )


@pytest.mark.parametrize("fault", ["task_speculated", "task_speculated_past_the_fire"])
def test_spark_tells_of_a_speculative_attempt_beside_the_first(rounds: dict[str, dict[str, Any]], fault: str) -> None:
    assert re.match(r"[1-9][0-9]* speculative attempt", rounds[fault]["says"]), rounds[fault]["says"]
