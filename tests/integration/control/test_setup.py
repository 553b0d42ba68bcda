"""`manage.py setup`: from an empty database to somebody who can sign in, at a terminal and without one."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from recovery_api.domain.access import Role
from recovery_api.selectors.people import roles_of
from tests.conftest import database_url
from tests.integration.control.test_commands import run

ROOT = Path(__file__).parents[3]
SETUP = (sys.executable, "manage.py", "setup")


@pytest.fixture(autouse=True)
def no_password_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FENCEPOST_SETUP_PASSWORD", raising=False)


def test_u13_migrate_makes_the_roles(db: None) -> None:
    assert set(Group.objects.values_list("name", flat=True)) >= {role.value for role in Role}


def test_u13_setup_makes_the_roles_again_where_they_went(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    Group.objects.all().delete()
    monkeypatch.setenv("FENCEPOST_SETUP_PASSWORD", "correct horse battery")
    assert run("setup", "--name", "ada").code == 0
    assert set(Group.objects.values_list("name", flat=True)) == {role.value for role in Role}


def test_a_command_before_setup_says_what_to_run(database_factory: Callable[[str], str]) -> None:
    """A newcomer's first command may well be another one: one line and no traceback."""
    found = subprocess.run(
        [sys.executable, "manage.py", "pipelines", "list"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url(database_factory("bare"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 3
    assert "./fencepost setup" in found.stderr and "Traceback" not in found.stderr


def test_first_run_at_a_terminal_ends_with_somebody_who_can_sign_in(database_factory: Callable[[str], str]) -> None:
    """A database without any table; the name and, unseen, the password are typed."""
    dsn = database_factory("setup")
    ours, theirs = pty.openpty()

    def terminal_take() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        SETUP,
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url(dsn)},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=terminal_take,
    )
    os.close(theirs)
    said = ""
    typed = iter(
        [("Name: ", "ada\n"), ("Password: ", "correct horse battery\n"), ("again: ", "correct horse battery\n")]
    )
    awaited, answer = next(typed)
    with process, os.fdopen(ours, "r+b", buffering=0) as terminal:
        while chunk := _read(terminal):
            said += chunk
            if awaited and awaited in said:
                terminal.write(answer.encode())
                awaited, answer = next(typed, ("", ""))
    assert process.returncode == 0, said
    assert "correct horse" not in said
    assert [number in said for number in ("1. make worker", "2. make web", "3. Register")] == [True] * 3
    assert "sign in there as ada" in said
    with psycopg.connect(dsn) as control:
        assert control.execute("SELECT username, is_superuser FROM auth_user").fetchall() == [("ada", True)]
        assert control.execute("SELECT count(*) FROM auth_group").fetchone() == (4,)


def _read(terminal: object) -> str:
    try:
        return terminal.read(4096).decode(errors="replace")  # type: ignore[attr-defined]
    except OSError:  # the other side is closed
        return ""


def test_setup_without_a_terminal_says_what_to_give(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    missing = run("setup", "--json")
    assert (missing.code, missing.body["error"]["code"]) == (2, "bad_input")
    assert "--name" in missing.err and "FENCEPOST_SETUP_PASSWORD" in missing.err
    assert run("setup", "--name", "ada").code == 2
    assert not get_user_model().objects.exists()


def test_setup_takes_name_roles_and_password_from_automation(db: None, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("correct horse battery\n", encoding="utf-8")
    words = ("--role", "operator", "--role", "viewer", "--password-file", secret)
    assert run("setup", "--name", "olga", *words, "--json").body["person"] == "olga"
    olga = get_user_model().objects.get(username="olga")
    assert olga.check_password("correct horse battery") and not olga.is_superuser
    assert roles_of(olga) == {"operator", "viewer"}
    secret.write_text("another one entirely", encoding="utf-8")
    again = run("setup", "--name", "olga", *words)
    assert again.code == 0 and "not changed" in again.out
    olga.refresh_from_db()
    assert olga.check_password("correct horse battery")
    assert run("setup").code == 0  # somebody is there: nothing is asked


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--name", "ada", "--role", "boss"], "'boss' is no role"),
        (["--name", "a b/c"], "name"),
        (["--name", "ada", "--password-file", "/nowhere"], "cannot be read"),
    ],
)
def test_setup_refuses_what_cannot_be_used(
    db: None, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.setenv("FENCEPOST_SETUP_PASSWORD", "correct horse battery")
    refused = run("setup", *words)
    assert refused.code == 2 and says in refused.err
    assert not get_user_model().objects.exists()


def test_setup_refuses_a_weak_password(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEPOST_SETUP_PASSWORD", "password")
    assert "too common" in run("setup", "--name", "ada").err
    assert json.loads(run("setup", "--name", "ada", "--json").out)["error"]["code"] == "bad_input"
