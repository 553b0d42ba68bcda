"""Servers come from the environment (`make test` starts them); a test that needs one says so by its fixture."""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

hypothesis.settings.register_profile("fencepost", deadline=None)  # a busy machine is not a failure
hypothesis.settings.load_profile("fencepost")

NEEDS = {
    "DATABASE_URL": {
        "postgres_admin_dsn",
        "database_factory",
        "lasting_database_factory",
        "db",
        "transactional_db",
        "migrated_database",
        "live_server",
    },
    "REDIS_URL": {"redis_url"},
    "SPARK_REMOTE": {"spark", "spark_remote"},
}


@pytest.hookimpl(trylast=True)  # after -m and -k have taken their tests out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One clear line instead of many errors where a server is missing."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        for variable, names in NEEDS.items():
            is_needed = fixtures & names or (variable == "SPARK_REMOTE" and item.get_closest_marker("spark"))
            if is_needed and not os.environ.get(variable):
                raise pytest.UsageError(
                    f"{item.nodeid} needs {variable}. Run `make test ARGS=…`, or "
                    f"`python -m workers.embedded --temporary -- python -m pytest …`, which start what is missing."
                )


def pytest_configure() -> None:
    """People of the tests sign in with a digest of microseconds; the programs that tests start keep the product's."""
    from django.conf import settings

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: the collector need not walk it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # most of what a test makes goes without the collector
    gc.enable()


@pytest.fixture(scope="session")
def postgres_admin_dsn() -> str:
    """A superuser's address of the run's PostgreSQL."""
    return os.environ["DATABASE_URL"]


@pytest.fixture(scope="session")
def redis_url() -> str:
    return os.environ["REDIS_URL"]


@pytest.fixture(scope="session")
def spark_remote() -> str:
    return os.environ["SPARK_REMOTE"]


@pytest.fixture
def database_factory(postgres_admin_dsn: str) -> Iterator[Callable[[str], str]]:
    """`database_factory(name_hint) -> dsn` of a fresh database; it and the roles named after it go with the test."""
    with _databases(postgres_admin_dsn) as make:
        yield make


@pytest.fixture(scope="session")
def lasting_database_factory(postgres_admin_dsn: str) -> Iterator[Callable[[str], str]]:
    """The same, of databases that go at the end."""
    with _databases(postgres_admin_dsn) as make:
        yield make


@contextlib.contextmanager
def _databases(admin_dsn: str) -> Iterator[Callable[..., str]]:
    names: list[str] = []

    def make(name_hint: str, template: str = "template1") -> str:
        name = f"t_{name_hint}_{secrets.token_hex(4)}".lower()
        with psycopg.connect(admin_dsn, autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
            )
        names.append(name)
        return make_conninfo(admin_dsn, dbname=name)

    yield make
    for name in reversed(names):  # a copy may hold what belongs to an earlier one's roles
        _database_drop(admin_dsn, name)


def _database_drop(admin_dsn: str, name: str) -> None:
    with psycopg.connect(admin_dsn, autocommit=True) as connection:
        prepared = connection.execute("SELECT gid FROM pg_prepared_xacts WHERE database = %s", [name]).fetchall()
        if prepared:
            with psycopg.connect(make_conninfo(admin_dsn, dbname=name), autocommit=True) as inside:
                for (gid,) in prepared:
                    inside.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))
        connection.execute(
            "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots "
            "WHERE database = %s AND active_pid IS NOT NULL",
            [name],
        )
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s", [name]
        )
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        for (role,) in connection.execute("SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)", [name]):
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


@pytest.fixture
def migrated_database(django_db_setup: None, database_factory: Callable[..., str]) -> Callable[[str], str]:
    """`migrated_database(name_hint) -> dsn` of a control database as migrations leave it."""
    return lambda name_hint: database_factory(name_hint, _as_migrated())


def _as_migrated() -> str:
    """The name of this process's template of control databases: nobody connects to it."""
    from django.db import connection

    return f"{connection.settings_dict['NAME']}_as_migrated"


@pytest.fixture(scope="session")
def _spark_session() -> Iterator[None]:
    from workers.spark.session import session_drop

    yield
    session_drop()


@pytest.fixture
def spark(_spark_session: None) -> Any:
    """This process's session at the run's Spark Connect server; another one where an earlier test made it drop that."""
    from workers.spark.session import session_get

    return session_get()


@pytest.fixture(autouse=True)
def _engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test marked `spark` has its work done there, however small; processes that it starts are told so, too."""
    if request.node.get_closest_marker("spark"):
        from django.conf import settings

        monkeypatch.setattr(settings, "FENCEPOST_IN_PROCESS_ROWS", 0)
        monkeypatch.setenv("FENCEPOST_IN_PROCESS_ROWS", "0")


def database_url(dsn: str) -> str:
    """A psycopg dsn as the URL that DATABASE_URL takes."""
    part = conninfo_to_dict(dsn)
    return f"postgresql://{part['user']}:{part['password']}@{part['host']}:{part['port']}/{part['dbname']}"


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """The timeline refuses TRUNCATE; Django's flush after some transactional tests needs it, in test databases only."""
    from django.db import connection

    from tests.emptying import emptying_begin

    with django_db_blocker.unblock():
        connection.close()  # nobody may look at what is copied
        names = map(sql.Identifier, (_as_migrated(), str(connection.settings_dict["NAME"])))
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(_as_migrated())))
            admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE recovery_api_event DISABLE TRIGGER events_are_never_truncated")
        emptying_begin()
