"""`./fencepost`: manage.py on the project's services, with the command's own exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_STARTED = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "REDIS_URL": "redis://r",
    "SPARK_REMOTE": "sc://s",
}
"""Named, so that nothing is started; `judge` connects to none of them."""


def run(*command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **NOT_STARTED, "VENV": sys.prefix}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    """A history of two events; `all.jsonl` accepted both of them, `one.jsonl` the first."""
    lines = [json.dumps({"coordinate": at, "op": "insert", "key": "k", "value": at}) + "\n" for at in (1, 2)]
    for name, count in (("history", 2), ("all", 2), ("one", 1)):
        (tmp_path / f"{name}.jsonl").write_text("".join(lines[:count]), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("accepted", "code"), [("all", 0), ("one", 1), ("none", 2)])
def test_u1_the_script_ends_with_the_commands_own_exit_code(exports: Path, accepted: str, code: int) -> None:
    """From another directory, whose relative paths are the caller's."""
    words = ("judge", "--history", "history.jsonl", "--accepted", f"{accepted}.jsonl", "--frontier", "2")
    done = run(str(ROOT / "fencepost"), *words, directory=exports)
    assert done.returncode == code, done.stderr


def test_u1_make_manage_says_the_code_that_make_cannot_pass_on(exports: Path) -> None:
    words = f"judge --history {exports}/history.jsonl --accepted {exports}/one.jsonl --frontier 2"
    # As if the virtual environment were made already: `venv` is old, and nothing is installed.
    done = run("make", "--old-file=venv", "manage", f"VENV={sys.prefix}", f"ARGS={words}", directory=ROOT)
    assert done.returncode == 2
    assert "The command ended with 1." in done.stderr
    assert "./fencepost" in done.stderr


def test_u1_a_missing_virtual_environment_is_one_line_with_what_to_do(tmp_path: Path) -> None:
    shutil.copy(ROOT / "fencepost", tmp_path)
    done = subprocess.run(
        [tmp_path / "fencepost", "judge"], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True
    )
    [line] = done.stderr.splitlines()
    assert done.returncode == 3
    assert "make venv" in line
