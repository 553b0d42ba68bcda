"""Others at a table while owed rows are appended: recoverers, relays, orphaned sessions. Nothing comes in twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from recovery_api.domain.abilities import Ability
from recovery_api.domain.errors import SinkBusy, Unreachable
from tests.contract.sink_engines import batch_make, event_make, rows_make
from tests.integration.postgresql.mapped_tables import Bench
from tests.programs import program_missing

EFFECT = "CREATE TABLE accepted (id bigint PRIMARY KEY, event text, op text, key text, content jsonb)"
LOOSE = EFFECT.replace(" PRIMARY KEY", " NOT NULL")
MAPPED = {"event_id": "event", "op": "op", "key": "key", "content": "content", "is_effect": True}
ONE = "INSERT INTO accepted VALUES (%s, %s, 'insert', %s, %s::jsonb)"


@pytest.fixture
def sink(bench: Bench) -> Any:
    bench.run.execute(EFFECT)
    return bench.sink(**MAPPED)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


def ids(bench: Bench) -> list[int]:
    return [id_ for (id_,) in bench.run.execute("SELECT id FROM accepted ORDER BY id").fetchall()]


def until(bench: Bench, query: str) -> None:
    """Returns once the server answers true."""
    ticks = threading.Event()
    for _ in range(3000):
        row = bench.run.execute(query).fetchone()  # type: ignore[call-overload]
        if row[0]:
            return
        ticks.wait(0.01)
    raise AssertionError(f"never became true: {query}")


WAITING = (
    "SELECT count(*) = {} FROM pg_locks WHERE NOT granted AND locktype = 'relation' AND relation = 'accepted'::regclass"
)


def deliver(connection: psycopg.Connection[Any], position: int) -> None:
    """As a relay does, by itself."""
    event = event_make(position)
    connection.execute(ONE, [position, event["event_id"], event["key"], event["content"]])


def test_two_recoverers_at_once_land_each_event_once_without_any_constraint(
    bench: Bench, pool: ThreadPoolExecutor
) -> None:
    bench.run.execute(LOOSE)
    writer = bench.session()
    writer.execute("LOCK TABLE accepted IN ROW EXCLUSIVE MODE")
    sinks = [bench.sink(**MAPPED) for _ in range(2)]
    both = [pool.submit(one.append, iter([batch_make(1, 2, 3)]), 20.0) for one in sinks]
    until(bench, WAITING.format(2))
    writer.rollback()
    landed = sorted(one.result().data["landed_count"] for one in both)
    assert landed == [0, 3] and ids(bench) == [1, 2, 3]


def test_a_role_whose_transactions_keep_one_snapshot_still_sees_what_came_before_its_lock(
    bench: Bench, pool: ThreadPoolExecutor
) -> None:
    bench.run.execute(LOOSE)
    dsn = psycopg.conninfo.make_conninfo(bench.dsn, options="-c default_transaction_isolation=serializable")
    writer = bench.session()
    deliver(writer, 2)
    appended = pool.submit(bench.sink(dsn=dsn, **MAPPED).append, iter([batch_make(1, 2, 3)]), 20.0)
    until(bench, WAITING.format(1))
    writer.commit()
    assert appended.result().data["landed_count"] == 2 and ids(bench) == [1, 2, 3]


def test_a_writer_that_never_lets_the_lock_go_is_named_after_a_bounded_wait(bench: Bench, sink: Any) -> None:
    writer = bench.session(application_name="endless writer")
    deliver(writer, 9)
    with pytest.raises(SinkBusy) as busy:
        sink.append(iter([batch_make(1)]), 0.05)
    assert "endless writer" in str(busy.value) and str(writer.info.backend_pid) in str(busy.value)
    writer.rollback()
    assert sink.append(iter([batch_make(1)]), 0.05).data["landed_count"] == 1


def test_a_prepared_transaction_is_named(bench: Bench, sink: Any) -> None:
    if bench.run.execute("SHOW max_prepared_transactions").fetchone() == ("0",):
        program_missing("the server allows no prepared transactions: set max_prepared_transactions")
    writer = bench.session()
    deliver(writer, 9)
    writer.execute("PREPARE TRANSACTION 'forgotten'")
    with pytest.raises(SinkBusy, match="forgotten"):
        sink.append(iter([batch_make(1)]), 0.05)


def test_readers_and_a_dump_hold_nobody_up(bench: Bench, sink: Any) -> None:
    reader = bench.session()
    reader.execute("SELECT FROM accepted")
    assert sink.append(iter([batch_make(1)]), 0.05).data["landed_count"] == 1


def test_a_late_send_that_waits_for_the_lock_is_refused_by_the_constraint(
    bench: Bench, sink: Any, pool: ThreadPoolExecutor
) -> None:
    """The relay's send is on its way when the recovery holds the table: it comes after, and finds its event there."""
    bench.run.execute(HELD_UP)
    gate = bench.session(autocommit=True)
    gate.execute("SELECT pg_advisory_lock(1)")
    appended = pool.submit(sink.append, iter([batch_make(1, 2)]), 5.0)
    until(bench, AT_THE_GATE.format(1))
    late = bench.session()
    send = pool.submit(deliver, late, 2)
    until(bench, WAITING.format(1))
    gate.execute("SELECT pg_advisory_unlock(1)")
    assert appended.result().data["landed_count"] == 2
    with pytest.raises(psycopg.errors.UniqueViolation):
        send.result()
    assert ids(bench) == [1, 2]


HELD_UP = """
CREATE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END$$;
CREATE TRIGGER held_up AFTER INSERT ON accepted FOR EACH STATEMENT EXECUTE FUNCTION held_up()
"""
"""An insert that goes on at the server, whatever its client does, until the gate is opened."""
AT_THE_GATE = "SELECT count(*) = {} FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = 1"


def test_an_orphaned_session_keeps_its_successor_waiting_until_it_ends_and_nothing_doubles(
    bench: Bench, pool: ThreadPoolExecutor
) -> None:
    bench.run.execute(LOOSE + ";" + HELD_UP)  # type: ignore[call-overload]
    gate = bench.session(autocommit=True)
    gate.execute("SELECT pg_advisory_lock(1)")
    orphan = Orphan(bench, batch_make(1, 2))
    until(bench, AT_THE_GATE.format(1))
    pid = orphan.client_killed()
    successor = bench.sink(**MAPPED)
    with pytest.raises(SinkBusy, match=str(pid)):
        successor.append(iter([batch_make(1, 2)]), 0.05)
    waiting = pool.submit(successor.append, iter([batch_make(1, 2)]), 20.0)
    until(bench, WAITING.format(1))
    gate.execute("SELECT pg_advisory_unlock(1)")
    assert waiting.result().data["landed_count"] == 2
    assert ids(bench) == [1, 2]


class Orphan:
    """A recoverer in a process of its own, killed while its backend goes on."""

    def __init__(self, bench: Bench, batch: pa.RecordBatch) -> None:
        import multiprocessing

        self.bench = bench
        options = {"connection": bench.reference(None, "sink_dsn"), "table": "accepted", "coordinate": "id", **MAPPED}
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=append_in_process, args=(options, batch.to_pylist()))
        self.process.start()

    def client_killed(self) -> int:
        self.process.kill()
        self.process.join()
        row = self.bench.run.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'fencepost' AND state = 'active'"
            " AND datname = current_database()"
        ).fetchone()
        assert row is not None
        return int(row[0])


def append_in_process(options: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    from workers.connectors.registry import delivery_make

    delivery_make("postgresql_table", options, Ability.APPENDED).append(iter([rows_make(rows)]), 5.0)


def test_a_session_that_is_ended_at_the_server_lands_nothing_and_may_be_tried_again(
    bench: Bench, sink: Any, pool: ThreadPoolExecutor
) -> None:
    bench.run.execute(HELD_UP)
    gate = bench.session(autocommit=True)
    gate.execute("SELECT pg_advisory_lock(1)")
    appended = pool.submit(sink.append, iter([batch_make(1)]), 5.0)
    until(bench, AT_THE_GATE.format(1))
    bench.run.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'fencepost'"
        " AND datname = current_database()"
    )
    with pytest.raises(Unreachable):
        appended.result()
    gate.execute("SELECT pg_advisory_unlock(1)")
    assert ids(bench) == []
    assert sink.append(iter([batch_make(1)])).data["landed_count"] == 1


def test_an_orphan_that_had_committed_is_waited_for_and_found_already_there(
    bench: Bench, pool: ThreadPoolExecutor
) -> None:
    """Its worker died between COMMIT and the answer, and the server still waits for a standby: its lock stands."""
    bench.run.execute("SET synchronous_commit = local")
    bench.run.execute(LOOSE)
    bench.run.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    try:
        bench.run.execute("SELECT pg_reload_conf()")
        orphan = Orphan(bench, batch_make(1, 2))
        until(
            bench,
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()",
        )
        pid = orphan.client_killed()
        with pytest.raises(SinkBusy, match=str(pid)):
            bench.sink(**MAPPED).append(iter([batch_make(1, 2)]), 0.05)
        waiting = pool.submit(bench.sink(**MAPPED).append, iter([batch_make(1, 2)]), 20.0)
        until(bench, WAITING.format(1))
    finally:
        bench.run.execute("ALTER SYSTEM RESET synchronous_standby_names")
        bench.run.execute("SELECT pg_reload_conf()")
    answer = waiting.result()
    assert (answer.data["landed_count"], answer.data["absorbed_count"]) == (0, 2)
    assert ids(bench) == [1, 2]
