"""`manage.py sink_install` against a real sink's database."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from psycopg.conninfo import conninfo_to_dict

from tests.contract.sink_engines import kit_make
from workers.connectors.sinks.kit import KIT_VERSION, kit_sql
from workers.connectors.sinks.kit.releases import releases


@pytest.fixture
def sink(database_factory: Callable[[str], str]) -> str:
    return database_factory("install")


@pytest.fixture
def connection(sink: str, tmp_path: Path) -> str:
    """A reference to the sink's administrator."""
    (tmp_path / "admin").write_text(sink, encoding="utf-8")
    return f"connection=file:{tmp_path / 'admin'}"


def run(*words: str) -> tuple[int, dict[str, Any]]:
    printed, code = io.StringIO(), 0
    try:
        call_command("sink_install", *words, "--json", stdout=printed, stderr=io.StringIO())
    except SystemExit as ended:
        code = int(ended.code or 0)
    answer: dict[str, Any] = json.loads(printed.getvalue())
    return code, answer


def query(dsn: str, statement: str) -> list[Any]:
    with psycopg.connect(dsn, autocommit=True) as reader:
        return reader.execute(statement).fetchall()  # type: ignore[arg-type]


def test_it_installs_once_and_leaves_the_same_kit_as_it_is(sink: str, connection: str) -> None:
    code, first = run("--option", connection)
    assert (code, first["installed"]) == (0, True)
    identity = query(sink, "SELECT identity FROM fencepost.standing")
    code, second = run("--option", connection)
    assert (code, second["installed"]) == (0, False)
    assert query(sink, "SELECT identity FROM fencepost.standing") == identity


def older_install(dsn: str) -> str:
    """The newest of the earlier texts, with an event; its version."""
    release = [release for release in releases() if release.version < KIT_VERSION][-1]
    with psycopg.connect(dsn, autocommit=True) as administrator, administrator.transaction():
        administrator.execute(kit_sql(kit_make(), administrator.info.dbname, release.text).encode())
        administrator.execute("SELECT fencepost.deliver(0, '0', 1, 0, 'event 1', 'insert', 'key 1', '{}')")
    return str(release.version)


def test_r7_it_upgrades_an_older_kit_in_place_and_only_when_asked(sink: str, connection: str) -> None:
    version = older_install(sink)
    code, refused = run("--option", connection)
    assert code == 2
    says = f"version {version} of the sink kit is installed; this Fencepost writes version {KIT_VERSION}"
    assert says in refused["error"]["text"]
    assert "--schema fencepost --upgrade" in refused["error"]["text"]
    code, answer = run("--option", connection, "--upgrade")
    assert (code, answer["upgraded"], str(answer["from_version"])) == (0, True, version)
    assert query(sink, "SELECT position FROM fencepost.accepted") == [(1,)]
    code, again = run("--option", connection, "--upgrade")
    assert (code, again["upgraded"], again["installed"]) == (0, False, False)


def test_r7_it_upgrades_nothing_where_no_kit_is_and_shows_no_upgrade(sink: str, connection: str) -> None:
    code, refused = run("--option", connection, "--upgrade")
    assert code == 2
    assert "without --upgrade" in refused["error"]["text"]
    code, refused = run("--option", connection, "--upgrade", "--print")
    assert code == 2
    assert "shows no upgrade" in refused["error"]["text"]


def test_what_it_prints_installs_the_same_kit_and_printing_changes_nothing(sink: str, connection: str) -> None:
    code, printed = run("--option", connection, "--print")
    assert code == 0
    assert query(sink, "SELECT FROM pg_namespace WHERE nspname = 'fencepost'") == []
    with psycopg.connect(sink, autocommit=True) as administrator:
        administrator.execute(printed["sql"].encode())
    code, answer = run("--option", connection)
    assert (code, answer["installed"]) == (0, False)


def test_it_makes_a_login_one_of_the_kits_groups(sink: str, connection: str) -> None:
    login = f"{conninfo_to_dict(sink)['dbname']}_letters"
    with psycopg.connect(sink, autocommit=True) as administrator:
        administrator.execute(f"CREATE ROLE {login}".encode())
    code, answer = run("--option", connection, "--grant", f"relay={login}")
    assert (code, answer["granted"]) == (0, {login: "relay"})
    roles = answer["roles"]
    for trade, is_member in (("relay", True), ("recoverer", False), ("auditor", False)):
        assert query(sink, f"SELECT pg_has_role('{login}', '{roles[trade]}', 'MEMBER')") == [(is_member,)]


def test_a_login_that_does_not_exist_leaves_nothing_installed(sink: str, connection: str) -> None:
    code, answer = run("--option", connection, "--grant", "relay=nobody_of_that_name")
    assert code == 2
    assert "nobody_of_that_name" in answer["error"]["text"]
    assert query(sink, "SELECT FROM pg_namespace WHERE nspname = 'fencepost'") == []


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--option", "shcema=x"), "shcema"),
        (("--grant", "driver=x"), "driver=x"),
        (("--file", "nothing.json"), "nothing.json"),
        (("--option", "target=letters"), "target_key"),
    ],
)
def test_what_it_cannot_use_is_named_and_changes_nothing(
    sink: str, connection: str, words: tuple[str, str], names: str
) -> None:
    given = words if words[0] == "--file" else ("--option", connection, *words)
    code, answer = run(*given)
    assert code == 2
    assert names in answer["error"]["text"]
    assert query(sink, "SELECT FROM pg_namespace WHERE nspname = 'fencepost'") == []
