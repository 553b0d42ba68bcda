"""Installing: whole or not at all, once, and never over something else."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recovery_api.domain.errors import AccessDenied, NotFound, Unsuitable
from tests.contract.sink_engines import kit_make
from tests.integration.kit.kit_world import KitWorld
from workers.connectors.sinks.kit import KIT_VERSION, kit_sql
from workers.connectors.sinks.kit.install import kit_install
from workers.connectors.sinks.kit.releases import releases
from workers.connectors.sinks.kit.upgrade import kit_upgrade


@pytest.fixture
def admin(kit_dsn: str) -> Any:
    with psycopg.connect(kit_dsn, autocommit=True) as connection:
        yield connection


def test_installing_again_changes_nothing(world: KitWorld) -> None:
    world.deliver(world.connect(world.relay), 0, 1)
    assert kit_install(world.admin, world.kit)["installed"] is False
    assert world.record() == [(1, 0)]


def test_kit_of_another_version_is_named_and_not_touched(world: KitWorld) -> None:
    world.admin.execute(world.sql("UPDATE {schema}.standing SET kit_version = 7"))
    with pytest.raises(Unsuitable, match=f"version 7 .* this Fencepost writes version {KIT_VERSION}"):
        kit_install(world.admin, world.kit)
    assert "version 7" in " ".join(world.sink.test().problems)


def test_kit_with_another_effect_is_named_and_not_touched(world: KitWorld) -> None:
    other = kit_make(**{**world.options, "target": "t", "target_key": "k", "target_content": "c"})
    with pytest.raises(Unsuitable, match="installed with the effect"):
        kit_install(world.admin, other)


def test_schema_that_holds_something_else_is_left_alone(admin: psycopg.Connection[Any]) -> None:
    with pytest.raises(Unsuitable, match="is no sink kit"):
        kit_install(admin, kit_make(schema="public"))


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"target": "nowhere", "target_key": "k", "target_content": "c"}, NotFound, "nowhere"),
        ({"effect_function": "nothing", "effect_order": "guarded"}, NotFound, "nothing"),
        ({"target": "keyless", "target_key": "k", "target_content": "c"}, Unsuitable, "no unique index on k alone"),
        ({"target": "keyless", "target_key": "x", "target_content": "c"}, Unsuitable, "no unique index on x alone"),
    ],
)
def test_target_that_cannot_serve_is_named_and_nothing_is_installed(
    admin: psycopg.Connection[Any], options: dict[str, str], error: type[Exception], says: str
) -> None:
    admin.execute("CREATE TABLE IF NOT EXISTS keyless (k text, c jsonb)")
    kit = kit_make(schema="not there", prefix=admin.info.dbname, **options)
    with pytest.raises(error, match=says):
        kit_install(admin, kit)
    assert admin.execute("SELECT FROM pg_namespace WHERE nspname = 'not there'").fetchone() is None


def test_login_that_may_not_install_is_told_what_to_do(kit_dsn: str, admin: psycopg.Connection[Any]) -> None:
    login = _login(kit_dsn, admin, "nobody", "")
    with psycopg.connect(login) as connection, pytest.raises(AccessDenied, match="--print shows the SQL"):
        kit_install(connection, kit_make(schema="denied", prefix=f"{admin.info.dbname}_denied"))


def test_login_without_superuser_installs_and_does_not_stay_owner(kit_dsn: str, admin: psycopg.Connection[Any]) -> None:
    database = admin.info.dbname
    login = _login(kit_dsn, admin, "installer", "CREATEROLE")
    admin.execute(
        sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(*map(sql.Identifier, (database, f"{database}_installer")))
    )
    with psycopg.connect(login, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA mine CREATE TABLE doc (k text PRIMARY KEY, body jsonb)")
        kit = kit_make(
            schema="by installer",
            prefix=f"{database}_by",
            target_schema="mine",
            target="doc",
            target_key="k",
            target_content="body",
        )
        assert kit_install(connection, kit)["installed"] is True
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute('UPDATE "by installer".standing SET fence = 5')
    admin.execute("SELECT \"by installer\".deliver(0, '0', 1, 0, NULL, 'insert', 'x', '1')")
    assert admin.execute("SELECT k FROM mine.doc").fetchall() == [("x",)]


def test_r7_login_without_superuser_upgrades_and_does_not_stay_owner(
    kit_dsn: str, admin: psycopg.Connection[Any]
) -> None:
    database = admin.info.dbname
    login = _login(kit_dsn, admin, "upgrader", "CREATEROLE")
    grant = sql.SQL("GRANT CREATE ON DATABASE {} TO {}")
    admin.execute(grant.format(*map(sql.Identifier, (database, f"{database}_upgrader"))))
    kit = kit_make(schema="by upgrader", prefix=f"{database}_up")
    earlier = [release for release in releases() if release.version < KIT_VERSION][-1]
    with psycopg.connect(login, autocommit=True) as connection:
        with connection.transaction():
            connection.execute(kit_sql(kit, database, earlier.text))  # type: ignore[call-overload]
        assert kit_upgrade(connection, kit)["upgraded"] is True
        assert kit_upgrade(connection, kit)["upgraded"] is False
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute('UPDATE "by upgrader".standing SET fence = 5')
    assert admin.execute("SELECT \"by upgrader\".deliver(0, '0', 1, 0, NULL, 'insert', 'x', '1')").fetchone() == (
        "accepted",
    )


def test_printed_sql_is_what_is_installed(kit_dsn: str, admin: psycopg.Connection[Any]) -> None:
    out = StringIO()
    call_command("sink_install", "--print", "--schema", "printed", "--database", admin.info.dbname, stdout=out)
    script = out.getvalue()
    assert admin.execute("SELECT FROM pg_namespace WHERE nspname = 'printed'").fetchone() is None
    admin.execute(script)  # type: ignore[call-overload]
    assert kit_install(admin, kit_make(schema="printed"))["installed"] is False
    assert admin.execute("SELECT answer FROM printed.relay_start('me')").fetchone() == ("started",)


def test_command_installs_tells_whom_to_grant_and_names_what_stays_open(
    kit_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_END_KIT_ADMIN", kit_dsn)
    out = StringIO()
    flags = ("--connection", "env:FENCEPOST_END_KIT_ADMIN", "--schema", "by command", "--json")
    call_command("sink_install", *flags, stdout=out)
    said = json.loads(out.getvalue())
    assert (said["installed"], said["roles"]["relay"].endswith("_by command_relay")) == (True, True)
    assert {row["path"] for row in said["undisciplined_paths"]} == {"superuser"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "--connection: is missing"),
        (["--connection", "env:FENCEPOST_END_KIT_ADMIN", "--option", "shema=x"], "Did you mean 'schema'"),
        (["--connection", "postgresql://u:secret@h/d"], "is not a reference"),
        (["--connection", "env:FENCEPOST_END_NOT_SET"], "the environment variable is not set"),
    ],
)
def test_command_refuses_what_it_cannot_use(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        call_command("sink_install", *arguments)
    said = capsys.readouterr().err
    assert says in said
    assert "secret" not in said


def test_counter_jumps_above_a_memory_and_never_back(world: KitWorld) -> None:
    before = world.sink.state()
    assert world.sink.counter_raise(41) == 41
    assert world.sink.counter_raise(7) == 41
    assert world.sink.generation_allocate("recoverer", "test").data["generation"] == 42
    with pytest.raises(Exception, match="SQLSTATE 22023"):
        world.sink.counter_raise(2**63 - 1)
    assert world.sink.state().identity == before.identity


def _login(dsn: str, admin: psycopg.Connection[Any], name: str, attributes: str) -> str:
    login = f"{conninfo_to_dict(dsn)['dbname']}_{name}"
    create = "CREATE ROLE {} LOGIN " + attributes + " PASSWORD 'password'"
    admin.execute(sql.SQL(create).format(sql.Identifier(login)))  # type: ignore[arg-type]
    return make_conninfo(dsn, user=login, password="password")


def test_kit_digests_every_awkward_content_as_python_does(world: KitWorld) -> None:
    from tests.contract.sink_engines import ABSENT, content_digest, content_parse, payload_digest

    corpus = Path(__file__).parents[2] / "contract" / "canonical_corpus.json"
    cases = [case for case in json.loads(corpus.read_text(encoding="utf-8"))["cases"] if case["in_jsonb"]]
    for case in cases:
        query = "SELECT {schema}.payload_digest('update', %s, %s::jsonb)"
        found = world.one(world.admin, query, case["says"], case["json"])
        assert found == payload_digest("update", case["says"], content_digest(content_parse(case["json"]))), case
    for op in ("insert", "delete"):
        found = world.one(world.admin, "SELECT {schema}.payload_digest(%s, NULL, NULL)", op)
        assert found == payload_digest(op, None, content_digest(ABSENT, op))
