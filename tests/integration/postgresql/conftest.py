from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.integration.postgresql.id_tables import OUTBOX, Inboxes
from tests.integration.postgresql.mapped_tables import Bench


@pytest.fixture(scope="session")
def bench_dsn(lasting_database_factory: Callable[[str], str]) -> str:
    return lasting_database_factory("tables")


@pytest.fixture
def bench(bench_dsn: str, tmp_path: Path) -> Iterator[Bench]:
    """A database with clients, emptied after the test (making one for each costs a checkpoint)."""
    bench = Bench(bench_dsn, tmp_path)
    yield bench
    bench.close()
    with psycopg.connect(bench_dsn, autocommit=True) as connection:
        _empty(connection)


@pytest.fixture
def inboxes(bench: Bench, tmp_path: Path) -> Inboxes:
    """An outbox whose events have ids, and records of ids beside it."""
    bench.run.execute(OUTBOX)
    return Inboxes(bench, tmp_path)


def _empty(connection: psycopg.Connection) -> None:
    for (gid,) in connection.execute(
        "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
    ).fetchall():
        connection.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))
    for kind, names in (
        (
            "SUBSCRIPTION",
            "SELECT subname FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())",
        ),
        ("PUBLICATION", "SELECT pubname FROM pg_publication"),
        ("SCHEMA", "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"),
    ):
        for (name,) in connection.execute(names).fetchall():
            tail = sql.SQL("" if kind != "SCHEMA" else "CASCADE")
            connection.execute(sql.SQL("DROP {} {} {}").format(sql.SQL(kind), sql.Identifier(name), tail))
    connection.execute("CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC")
    role = connection.info.dbname
    for (name,) in connection.execute("SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)", [role]).fetchall():
        connection.execute(sql.SQL("DROP OWNED BY {}; DROP ROLE {}").format(sql.Identifier(name), sql.Identifier(name)))
