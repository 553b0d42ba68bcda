"""An answer outlasts a crash of the server, whatever anybody has set, or it is not given (T9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from recovery_api.domain.errors import NotFlushed
from tests.chaos.servers import Server
from tests.contract.sink_engines import batch_make, digest_make, kit_make
from workers.connectors.postgresql.connection import Address
from workers.connectors.postgresql.flushing import flush_wait
from workers.connectors.readings import CoordinateRange, Width
from workers.connectors.registry import delivery_make, source_make
from workers.connectors.sinks.kit.install import kit_install
from workers.embedded.postgres import PostgreSQL
from workers.embedded.services import Place

pytestmark = pytest.mark.slow

LANE = CoordinateRange("0", None, None)
DELIVER = "SELECT fencepost.deliver(0, '0', %s, 0, NULL, 'insert', 'key', '1'::jsonb)"


class CrashingSink:
    """A server that writes to its disk, whose WAL writer is as slow as it may be; and a kit in it."""

    def __init__(self, directory: Path) -> None:
        self.server = Server(PostgreSQL, directory / "server")
        self.server.service = PostgreSQL(Place(directory / "server", is_temporary=False))
        self.server.start()
        self.run("ALTER SYSTEM SET wal_writer_delay = '2s'", "SELECT pg_reload_conf()")
        self.kit = kit_make(prefix="kit")
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            kit_install(connection, self.kit)
        self.run("CREATE TABLE outbox (number bigint PRIMARY KEY, key text, op text, content jsonb)")
        reference = directory / "login"
        reference.write_text(self.server.url)
        self.address = Address(f"file:{reference}")
        self.options = {"connection": self.address.reference}
        self.sink = delivery_make("postgresql_kit", {**self.options, "prefix": "kit"})

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[call-overload]

    def crash(self) -> None:
        """At once, without a checkpoint; then up again."""
        self.server.kill()
        self.server.start()


@pytest.fixture(scope="module")
def crashing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashingSink]:
    made = CrashingSink(tmp_path_factory.mktemp("crashing"))
    yield made
    made.server.close()


@pytest.fixture(params=["database", "role", "session"])
def lowered(request: pytest.FixtureRequest, crashing: CrashingSink, monkeypatch: pytest.MonkeyPatch) -> CrashingSink:
    """Who set `synchronous_commit` to off, and where."""
    if request.param == "session":
        monkeypatch.setenv("PGOPTIONS", "-c synchronous_commit=off")
    else:
        whose = {"database": "DATABASE fencepost", "role": "ROLE postgres"}[request.param]
        crashing.run(f"ALTER {whose} SET synchronous_commit = off")
        request.addfinalizer(lambda: crashing.run(f"ALTER {whose} RESET synchronous_commit"))
    return crashing


def test_t9_nothing_that_was_answered_is_taken_back_by_a_crash(lowered: CrashingSink) -> None:
    sink, first = lowered.sink, _next(lowered.sink)
    with psycopg.connect(lowered.server.url, autocommit=True) as relay:
        assert relay.execute("SHOW synchronous_commit").fetchone() == ("off",)
        generation = relay.execute("SELECT generation FROM fencepost.relay_start('relay')").fetchone()[0]  # type: ignore[index]
        one = DELIVER.replace("(0,", "(%s,")
        assert relay.execute(one, (generation, first)).fetchone() == ("accepted",)
    lowered.crash()
    assert _accepted(sink)[-1] == first and sink.state().fence == generation
    claimed = sink.claim_open("recovery", {}).data["generation"]
    lowered.crash()
    assert sink.state().fence == claimed and sink.settle(claimed).state == "open"
    batch = batch_make(first + 1)
    arm = sink.arm(claimed, digest_make(batch), {}).data["arm"]
    sink.stage(claimed, arm, iter([batch]))
    lowered.server.kill()  # what is staged is unlogged: empty after a crash, and the fire says so
    lowered.server.start()
    assert sink.fire(claimed, arm).word == "mismatch"
    arm = sink.arm(claimed, digest_make(batch), {}).data["arm"]
    sink.stage(claimed, arm, iter([batch]))
    assert sink.fire(claimed, arm).word == "landed"
    lowered.crash()
    assert sink.settle(claimed).state == "fired"
    assert _accepted(sink)[-2:] == [first, first + 1]
    assert sink.fire(claimed, arm).word == "already fired"


def test_t9_what_a_relay_commits_lowered_again_is_read_only_once_it_is_flushed(crashing: CrashingSink) -> None:
    position = _next(crashing.sink)
    with psycopg.connect(crashing.server.url) as relay:
        fence = crashing.sink.state().fence
        generation = relay.execute("SELECT generation FROM fencepost.relay_start('relay')").fetchone()[0]  # type: ignore[index]
        assert generation > fence
        assert relay.execute(DELIVER.replace("(0,", "(%s,"), (generation, position)).fetchone() == ("accepted",)
        relay.execute("SET LOCAL synchronous_commit = off")
    read = _accepted(crashing.sink)
    crashing.crash()
    assert _accepted(crashing.sink) == read
    assert read[-1] == position


def test_t9_a_source_is_read_only_once_what_it_shows_is_flushed(crashing: CrashingSink) -> None:
    mapping = {"table": "outbox", "coordinate": ["number"], "key": "key", "op": "op", "content": "content"}
    source = source_make("postgresql_outbox", {**crashing.options, **mapping, "grace_seconds": 1})
    crashing.run("SET synchronous_commit = off", "INSERT INTO outbox VALUES (1, 'k', 'insert', '1')")
    with source.hold_snapshot() as reading:
        head = reading.lanes["0"].head
    crashing.crash()
    with source.hold_snapshot() as reading:
        assert reading.lanes["0"].head == head is not None


def test_t9_a_server_that_does_not_flush_is_named_and_the_wait_has_an_end(crashing: CrashingSink) -> None:
    with psycopg.connect(crashing.server.url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute(
            sql.SQL("INSERT INTO outbox SELECT coalesce(max(number), 0) + 1, 'k', 'insert', '1' FROM outbox")
        )
        with pytest.raises(NotFlushed, match="has not written to disk what was read"):
            flush_wait(connection, crashing.address, 0.0)
        flush_wait(connection, crashing.address)
        flush_wait(connection, crashing.address, 0.0)


def test_t9_an_open_transaction_on_a_still_server_keeps_no_reader_waiting(crashing: CrashingSink) -> None:
    """Its half-written page is flushed for nobody; an empty commit of the reader's own is flushed, and what is before it."""
    with (
        psycopg.connect(crashing.server.url) as writer,
        psycopg.connect(crashing.server.url, autocommit=True) as reader,
    ):
        writer.execute("INSERT INTO outbox SELECT coalesce(max(number), 0) + 1, 'k', 'insert', '1' FROM outbox")
        flush_wait(reader, crashing.address)
        writer.rollback()


def test_t9_settings_that_make_a_flush_worth_nothing_are_named(crashing: CrashingSink) -> None:
    assert not [one for one in crashing.sink.test().weaknesses if "fsync" in one or "full_page_writes" in one]
    assert not crashing.sink.capability().can_lose_acceptances
    crashing.run("ALTER SYSTEM SET full_page_writes = off", "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    try:
        said = " ".join(crashing.sink.test().weaknesses)
        assert "fsync is off" in said and "full_page_writes is off" in said
        assert crashing.sink.capability().can_lose_acceptances
    finally:
        crashing.run("ALTER SYSTEM RESET full_page_writes", "ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")


def test_t9_a_higher_setting_is_not_lowered(crashing: CrashingSink) -> None:
    for before, after in {
        "off": "on",
        "local": "on",
        "remote_write": "on",
        "on": "on",
        "remote_apply": "remote_apply",
    }.items():
        with psycopg.connect(crashing.server.url) as relay:
            relay.execute(sql.SQL("SET LOCAL synchronous_commit = {}").format(sql.Literal(before)))
            relay.execute("SELECT fencepost.relay_start('relay')")
            assert relay.execute("SHOW synchronous_commit").fetchone() == (after,)
            relay.rollback()


def _accepted(sink: Any) -> list[int]:
    with sink.hold_snapshot() as reading:
        rows = [row for batch in sink.read_accepted(reading, LANE, Width.PAYLOAD) for row in batch.to_pylist()]
    return sorted(row["position"] for row in rows)


def _next(sink: Any) -> int:
    return max(_accepted(sink), default=0) + 1
