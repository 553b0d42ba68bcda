"""Settings come from the environment alone, start nothing, and are secure where nobody says otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]
SET_BY_US = ("DATABASE_URL", "REDIS_URL", "SPARK_REMOTE", "SECRET_KEY", "DEBUG", "FENCEPOST_HTTPS")
SHOW = """
import json, sys
from django.conf import settings
names = sys.argv[1:]
print(json.dumps({name: getattr(settings, name) for name in names}, default=str))
"""


def environment(var: Path, **given: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in SET_BY_US}
    return {**kept, "DJANGO_SETTINGS_MODULE": "dashboard.settings", "FENCEPOST_VAR_DIR": str(var), **given}


def show(var: Path, *names: str, **given: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", SHOW, *names], cwd=PROJECT, env=environment(var, **given), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def manage(var: Path, *arguments: str, **given: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=PROJECT, env=environment(var, **given), capture_output=True, text=True)


def test_defaults_are_secure(tmp_path: Path) -> None:
    names = ("DEBUG", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT", "TIME_ZONE", "USE_TZ")
    assert show(tmp_path, *names) == dict(zip(names, [False, True, True, True, "UTC", True], strict=True))


def test_generated_key_is_kept_and_private(tmp_path: Path) -> None:
    first, second = (show(tmp_path, "SECRET_KEY")["SECRET_KEY"] for _ in range(2))
    assert first == second
    assert len(first) > 50
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_given_key_and_addresses_are_used(tmp_path: Path) -> None:
    given = {"SECRET_KEY": "k", "DATABASE_URL": "postgresql://u:p%40w@db:5433/x", "REDIS_URL": "redis://r/1"}
    shown = show(tmp_path, "SECRET_KEY", "DATABASES", "CELERY_BROKER_URL", **given)
    database = shown["DATABASES"]["default"]
    assert (database["HOST"], database["PORT"], database["PASSWORD"]) == ("db", 5433, "p@w")
    assert (shown["SECRET_KEY"], shown["CELERY_BROKER_URL"]) == ("k", "redis://r/1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["no_such_command"], 2, "Unknown command: 'no_such_command'"),
        (["migrate", "--no-such-option"], 2, "unrecognized arguments"),
        (["dumpdata", "no_such_app"], 2, "No installed app with label 'no_such_app'"),
        (["showmigrations"], 3, "DATABASE_URL is not set"),
        (["check"], 0, ""),
    ],
)
def test_exit_codes_of_the_command_line(tmp_path: Path, arguments: list[str], code: int, says: str) -> None:
    done = manage(tmp_path, *arguments)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_unreachable_database_is_one_line(tmp_path: Path) -> None:
    done = manage(tmp_path, "showmigrations", DATABASE_URL="postgresql://u:secret@127.0.0.1:1/x")
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1
    assert "secret" not in done.stderr
