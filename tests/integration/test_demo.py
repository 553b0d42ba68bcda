"""The demo as a user runs it: its own control database, a real worker, the run's Spark."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import database_url
from tests.demo_worlds import world_drop
from tests.integration.readme_story import normal, readme_story, readme_write, story_of
from workers.demo.narrator import PROGRESS

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
MANAGE = (sys.executable, "manage.py")
UP_SECONDS = 300
SABOTAGED = (sys.executable, "-m", "tests.integration.sabotaged_demo")

RunDemo = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def prefix(postgres_admin_dsn: str) -> Iterator[str]:
    """Before the names of the demo's databases and roles, which go with the test."""
    name = f"t_{secrets.token_hex(3)}_"
    yield name
    world_drop(postgres_admin_dsn, name)


@pytest.fixture
def run_demo(
    migrated_database: Callable[[str], str], redis_url: str, spark_remote: str, prefix: str, tmp_path: Path
) -> RunDemo:
    """`run_demo(*command)`: the demo, once, as JSON, over a migrated control database of its own."""
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(migrated_database("demo_control")),
        "FENCEPOST_VAR_DIR": str(tmp_path),
        "FENCEPOST_EVIDENCE_DIR": str(tmp_path / "evidence"),
        "COLUMNS": "110",
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)

    def once(*command: str) -> subprocess.CompletedProcess[str]:
        return run(*command, "--once", "--json", "--prefix", prefix)

    once.environment = environment  # type: ignore[attr-defined]
    return once


def answer_of(ended: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert ended.stdout.strip(), ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout.strip().splitlines()[-1])
    return answer


def test_the_demo_ends_exactly_once_and_a_second_one_starts_a_new_incident_cleanly(
    run_demo: RunDemo, prefix: str, tmp_path: Path
) -> None:
    """U3, W: its story is README's, no condition of it fails, and the audit says how far it is."""
    for incident in (1, 2):
        ended = run_demo(*MANAGE, "demo")
        assert ended.returncode == 0, ended.stderr
        answer = answer_of(ended)
        assert list(answer) == ["frontier", "before", "planned", "landed", "fenced_stragglers", "after", "seconds"]
        assert answer["frontier"] > 0
        assert answer["before"]["lost"] == answer["planned"] == answer["landed"] > 0
        assert answer["before"]["duplicates"] == answer["before"]["premature"] == 0
        assert answer["fenced_stragglers"] == 1
        assert answer["after"] == {"lost": 0, "duplicates": 0, "premature": 0, "exactly_once": True}
        assert f"Incident {incident}." in ended.stderr
        assert "[FAILS]" not in ended.stderr and "[unknown]" not in ended.stderr  # T17
        if incident == 1:
            told = story_of(ended.stderr, ended.stdout, prefix=prefix, directory=tmp_path)
            if os.environ.get("FENCEPOST_WRITE_README"):
                readme_write(told)
            assert normal(told) == normal(readme_story()), "README tells another story: make readme"
            assert any(line.startswith(PROGRESS) for line in step_of(ended.stderr, 6))


def step_of(told: str, number: int) -> list[str]:
    """The lines of one numbered step."""
    lines = told.splitlines()
    began = next(at for at, line in enumerate(lines) if line.startswith(f"{number:>2}. "))
    ended = next(at for at, line in enumerate(lines) if line.startswith(f"{number + 1:>2}. "))
    return lines[began:ended]


def test_the_demo_leaves_an_incident_with_the_pages_up_until_somebody_ends_it(
    run_demo: RunDemo, prefix: str, tmp_path: Path
) -> None:
    environment = {**os.environ, **run_demo.environment, "PYTHONFAULTHANDLER": "1"}  # type: ignore[attr-defined]
    demo = subprocess.Popen(
        [*MANAGE, "demo", "--prefix", prefix, "--port", str(free_port())],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env=environment,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    )
    assert demo.stdout is not None
    # What it waited for is told by its own stack and its processes', instead of by a limit that says nothing.
    watch = threading.Timer(UP_SECONDS, os.killpg, (demo.pid, signal.SIGABRT))
    watch.start()
    try:
        said = ""
        for line in demo.stdout:
            said += line
            if "Ctrl-C ends it all" in line:
                break
        watch.cancel()
        if "Ctrl-C ends it all" not in said:
            logs = "\n".join(file.read_text(errors="replace")[-20_000:] for file in tmp_path.rglob("*.log"))
            pytest.fail(f"the demo was not up within {UP_SECONDS} s:\n{said}\n{logs}", pytrace=False)
        assert demo.poll() is None, said
        address = re.search(r"http://127\.0\.0\.1:\d+/", said)
        assert address is not None, said
        with urllib.request.urlopen(f"{address[0]}sign-in/", timeout=60) as page:
            assert b"Sign in" in page.read()
        assert "sign in as  viewer, operator, approver, admin" in said
        shown = subprocess.run(
            [*MANAGE, "pipelines", "show", f"{prefix}orders-mail-2".replace("_", "-"), "--json"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
            check=False,
        )
        status = json.loads(shown.stdout)["status"]
        assert status["status"] == "owed", shown.stderr
        headroom = status[
            "headroom"
        ]  # every memory is declared; no recovery has shown a rate there, so only the start is a bound
        assert headroom["is_bound"] and headroom["left_seconds"] > 0, headroom
        assert re.fullmatch(r"\d.* left; decide by at most .+ UTC", headroom["short"]), headroom
        os.killpg(demo.pid, signal.SIGINT)
        demo.stdout.read()
        assert demo.wait() == 0
        with pytest.raises(OSError):
            urllib.request.urlopen(address[0], timeout=10)
    finally:
        watch.cancel()
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
            demo.wait()
        demo.stdout.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_demo_at_an_ordinary_table_ends_exactly_once_given_what_was_attested(run_demo: RunDemo) -> None:
    ended = run_demo(*MANAGE, "demo", "--with", "table")
    assert ended.returncode == 0, ended.stderr
    answer = answer_of(ended)
    assert list(answer) == [
        *("frontier", "before", "planned", "landed", "after", "seconds"),
        *("late_send", "outcome", "given"),
    ]
    assert answer["before"]["lost"] == answer["planned"] == answer["landed"] > 0
    assert answer["after"] == {"lost": 0, "duplicates": 0, "premature": 0, "exactly_once": True}
    assert (answer["late_send"], answer["outcome"]) == ("absorbed", "exactly_once_given")
    assert answer["given"] == ["that this was the only recoverer"]
    told = " ".join(ended.stderr.split())
    assert "--attest only-recoverer" in told
    assert f"Exactly once at f = {answer['frontier']}, given that this was the only recoverer." in told
    assert re.findall(r"\[FAILS\] .{11}", ended.stderr) == ["[FAILS] C1: Nothing"]  # a table checks nobody


def test_the_demo_fails_at_a_sink_without_a_fence(run_demo: RunDemo) -> None:
    ended = run_demo(*SABOTAGED)
    assert ended.returncode == 1, ended.stderr
    assert answer_of(ended)["fenced_stragglers"] == 0
    assert "[FAILS] the held-back send was fenced" in ended.stderr
