"""An owed part appended by a Spark task: what was judged lands, once, however often the task runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recovery_api.domain.errors import SinkBusy
from workers.evidence.ranges import EndSpec
from workers.evidence.read import AuditRequest, Evidence, evidence_read
from workers.spark.jobs.appending import batch_append
from workers.spark.tasks import InProcess

EVENTS = 300
TABLES = f"""
CREATE TABLE outbox (id bigint PRIMARY KEY, key text, content jsonb);
CREATE TABLE orders (id bigint NOT NULL, key text, content jsonb);
INSERT INTO outbox SELECT n, 'key ' || n, jsonb_build_object('number', n) FROM generate_series(1, {EVENTS}) n;
INSERT INTO orders SELECT * FROM outbox WHERE id % 10 <> 0;
"""


class Ends:
    def __init__(self, dsn: str, folder: Path) -> None:
        self.dsn, self.folder = dsn, folder
        (folder / "dsn").write_text(dsn)
        mapped = {"connection": f"file:{folder / 'dsn'}", "coordinate": ["id"], "key": "key", "content": "content"}
        self.source = EndSpec("postgresql_outbox", {**mapped, "table": "outbox", "grace_seconds": 0})
        self.sink = EndSpec("postgresql_table", {**mapped, "table": "orders", "is_effect": True})
        self.run("DROP TABLE IF EXISTS outbox, orders", TABLES)

    def run(self, *statements: str) -> Any:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                found = connection.execute(statement)  # type: ignore[call-overload]
            return found.fetchone() if found.description else None

    @contextmanager
    def judged(self, session: Any, name: str) -> Iterator[Evidence]:
        request = AuditRequest(self.source, self.sink, str(self.folder / name))
        with evidence_read(session, request, lambda **_: None) as found:
            yield found


@pytest.fixture
def ends(database_factory: Callable[[str], str], tmp_path: Path) -> Ends:
    return Ends(database_factory("appending"), tmp_path)


@pytest.mark.spark
def test_what_is_owed_lands_by_one_task_and_a_second_run_of_it_lands_nothing(ends: Ends, spark: Any) -> None:
    with ends.judged(spark, "first") as found:
        assert found.batch_count == EVENTS // 10
        ends.run("UPDATE outbox SET content = '{}'")  # what is sent is what was judged, whatever the source says by now
        answer = batch_append(spark, found)
        again = batch_append(spark, found)
    assert (answer.word, answer.data["landed_count"], answer.data["absorbed_count"]) == ("appended", 30, 0)
    assert (again.data["landed_count"], again.data["absorbed_count"]) == (0, 30)
    assert ends.run("SELECT count(*), count(DISTINCT id), bool_and(content->>'number' = id::text) FROM orders") == (
        EVENTS,
        EVENTS,
        True,
    )


def test_two_attempts_of_one_task_at_once_land_each_event_once(ends: Ends) -> None:
    with (
        ends.judged(InProcess(), "both") as found,
        psycopg.connect(ends.dsn) as writer,
        ThreadPoolExecutor(2) as pool,
    ):
        writer.execute("LOCK TABLE orders IN ROW EXCLUSIVE MODE")
        attempts = [pool.submit(batch_append, InProcess(), found, 20.0) for _ in range(2)]
        while ends.run("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'orders'::regclass") != (2,):
            pass
        writer.rollback()
        assert sorted(one.result().data["landed_count"] for one in attempts) == [0, 30]
    assert ends.run("SELECT count(*), count(DISTINCT id) FROM orders") == (EVENTS, EVENTS)


def test_a_busy_table_is_told_as_such_across_the_engine(ends: Ends) -> None:
    with ends.judged(InProcess(), "busy") as found, psycopg.connect(ends.dsn, application_name="clerk") as writer:
        writer.execute("LOCK TABLE orders IN ROW EXCLUSIVE MODE")
        with pytest.raises(SinkBusy, match="clerk"):
            batch_append(InProcess(), found, 0.05)
