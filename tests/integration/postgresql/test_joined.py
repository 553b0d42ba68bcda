"""What a task keeps of its connections from one range to the next, and what it never keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from recovery_api.domain.errors import FencepostError
from workers.connectors import kept
from workers.connectors.kept import kept_between_ranges, kept_here
from workers.connectors.postgresql.connection import Address, snapshot_joined, snapshot_open


@pytest.fixture
def address(bench_dsn: str, tmp_path: Path) -> Address:
    (tmp_path / "dsn").write_text(bench_dsn)
    return Address(f"file:{tmp_path / 'dsn'}")


@pytest.fixture
def holder(address: Address) -> Iterator[psycopg.Connection]:
    with snapshot_open(address) as connection:
        yield connection


def export(holder: psycopg.Connection) -> str:
    row = holder.execute("SELECT pg_export_snapshot()").fetchone()
    assert row is not None
    return str(row[0])


def pid(address: Address, snapshot: str) -> int:
    with snapshot_joined(address, snapshot) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        return connection.info.backend_pid


def test_ranges_of_one_snapshot_share_a_connection_and_the_end_of_the_task_closes_it(
    address: Address, holder: psycopg.Connection
) -> None:
    snapshot = export(holder)
    assert pid(address, snapshot) != pid(address, snapshot), "nothing is kept outside a task"
    with kept_between_ranges():
        alive = kept_here()  # so that it is the end of the task that closes, and not the collector
        first = pid(address, snapshot)
        assert alive is not None and pid(address, snapshot) == first
        with snapshot_joined(address, snapshot) as one, snapshot_joined(address, snapshot) as other:
            assert one.info.backend_pid == first != other.info.backend_pid, "two at once have one each"
            left = one
        assert pid(address, export(holder)) != first, "another snapshot"
        assert not left.closed
    assert left.closed


def test_what_did_not_end_well_or_was_left_in_the_middle_is_not_kept(
    address: Address, holder: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = export(holder)
    with kept_between_ranges():
        first = pid(address, snapshot)
        with pytest.raises(FencepostError), snapshot_joined(address, snapshot) as connection:
            connection.execute("SELECT 1 / 0")
        second = pid(address, snapshot)
        assert second != first

        def reading() -> Iterator[int]:
            series = "COPY (SELECT generate_series(1, 9)) TO STDOUT"
            with snapshot_joined(address, snapshot) as connection, connection.cursor().copy(series) as rows:
                for _ in rows:
                    yield connection.info.backend_pid

        left = reading()
        assert next(left) == second
        left.close()
        third = pid(address, snapshot)
        assert third != second
        monkeypatch.setattr(kept, "KEPT_SECONDS", 0.0)  # the server may have given it up
        assert pid(address, snapshot) != third
