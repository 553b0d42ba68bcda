"""What ends a statement at an end is told by its name, and what ours set is theirs alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recovery_api.domain.errors import CutShort, SinkBusy, TransientError
from workers.connectors.deadlines import Step
from workers.connectors.postgresql.answering import conninfo_kept_alive
from workers.connectors.postgresql.connection import Address, connection_open, snapshot_open, transaction_write

LONG = "SELECT pg_sleep(60)"


@pytest.fixture
def dsn(database_factory: Callable[[str], str]) -> str:
    return database_factory("limits")


@pytest.fixture
def address(dsn: str, tmp_path: Path) -> Callable[..., Address]:
    (tmp_path / "dsn").write_text(dsn)
    return lambda **more: Address(f"file:{tmp_path / 'dsn'}", **more)


def database_set(dsn: str, setting: str, value: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {conninfo_to_dict(dsn)['dbname']} SET {setting} = '{value}'".encode())


def test_l6_a_statement_timeout_is_named_with_who_set_it(dsn: str, address: Callable[..., Address]) -> None:
    database_set(dsn, "statement_timeout", "300ms")
    where = address()
    with (
        pytest.raises(CutShort, match=r"statement_timeout = 300 ms \(set for this database\).*the fire.*ALTER ROLE"),
        connection_open(where, step=Step("the fire")) as connection,
        transaction_write(connection, where),
    ):
        connection.execute(LONG)


def test_l6_a_readings_own_limit_is_named_as_the_option_it_is(dsn: str, address: Callable[..., Address]) -> None:
    database_set(dsn, "statement_timeout", "300ms")
    with (
        pytest.raises(CutShort, match="statement_timeout_seconds = 1 s"),
        snapshot_open(address(statement_timeout_seconds=1)) as connection,
    ):
        connection.execute(LONG)


def test_l6_a_cancelled_statement_is_not_taken_for_a_limits(dsn: str, address: Callable[..., Address]) -> None:
    database_set(dsn, "statement_timeout", "10min")
    with pytest.raises(TransientError), connection_open(address()) as connection:
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute(
                "CREATE FUNCTION cancelled() RETURNS void LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM pg_cancel_backend(pg_backend_pid()); PERFORM pg_sleep(60); END $$"
            )
        connection.execute("SELECT cancelled()")


def test_l4_a_transaction_timeout_is_lifted_in_ours_and_named_elsewhere(
    dsn: str, address: Callable[..., Address]
) -> None:
    database_set(dsn, "transaction_timeout", "300ms")
    where = address()
    with connection_open(where) as connection, transaction_write(connection, where):
        assert connection.execute("SHOW transaction_timeout").fetchone() == ("0",)
    with snapshot_open(where) as connection:
        assert connection.execute("SHOW transaction_timeout").fetchone() == ("0",)
    with pytest.raises(CutShort, match="transaction_timeout"), connection_open(where) as connection:
        connection.execute(LONG)


def test_l2_a_lock_that_a_step_waits_for_names_its_holder(dsn: str, address: Callable[..., Address]) -> None:
    where = address()
    with psycopg.connect(dsn, application_name="vacuum of the night") as holder:
        holder.execute("CREATE TABLE t (a int)")
        holder.commit()
        holder.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        with (
            pytest.raises(SinkBusy, match=r"session [0-9]+, application 'vacuum of the night'"),
            connection_open(where) as connection,
            transaction_write(connection, where),
        ):
            connection.execute("INSERT INTO t VALUES (1)")


def test_l1_a_transaction_of_ours_that_is_left_open_ends_by_itself(dsn: str, address: Callable[..., Address]) -> None:
    where = address(answer_timeout_seconds=7)
    with connection_open(where) as connection:
        with transaction_write(connection, where):
            assert connection.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("7s",)
        assert connection.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("0",)


def test_l1_every_connection_is_kept_alive_unless_its_address_says_otherwise(dsn: str) -> None:
    kept = conninfo_to_dict(conninfo_kept_alive(dsn))
    assert (kept["keepalives_idle"], kept["tcp_user_timeout"]) == ("15", "30000")
    assert (
        conninfo_to_dict(conninfo_kept_alive(make_conninfo(dsn, tcp_user_timeout="5000")))["tcp_user_timeout"] == "5000"
    )
