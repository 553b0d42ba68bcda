"""RC-76: an outbox that only grows is told of, with whoever keeps vacuum from giving its space back."""

from __future__ import annotations

import psycopg
import pytest

from tests.integration.postgresql.mapped_tables import Bench
from workers.connectors.postgresql import upkeep

TABLE = """
CREATE TABLE "Out box" (id bigint PRIMARY KEY, key text) WITH (autovacuum_enabled = false);
INSERT INTO "Out box" SELECT i, 'k' FROM generate_series(1, 20000) i;
DELETE FROM "Out box" WHERE id <= 15000
"""


def test_rc76_dead_rows_and_the_oldest_snapshot_are_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.run.execute(TABLE)
    bench.run.execute("SELECT pg_stat_force_next_flush()")  # what this session still holds back would be counted twice
    bench.run.execute('ANALYZE "Out box"')
    monkeypatch.setattr(upkeep, "HELD_FROM_SECONDS", 0.0)
    with psycopg.connect(bench.dsn) as idle:
        idle.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        idle.execute("SELECT 1")
        report = bench.source(table="Out box").test()
        assert report.is_usable, report.problems
        pid = idle.info.backend_pid
    assert (report.facts["live_rows"], report.facts["dead_rows"]) == (5000, 15000)
    size = bench.run.execute("SELECT pg_total_relation_size('\"Out box\"')").fetchone()
    assert size == (report.facts["table_bytes"],)
    assert report.facts["oldest_snapshot"].startswith(f"Process {pid}, role ")
    said = " ".join(report.weaknesses)
    assert "15,000 of the table's 20,000 rows are dead (75 %)" in said
    assert f"Process {pid}, role 'postgres', idle in transaction has held its snapshot" in said


def test_rc76_a_table_that_is_kept_well_is_not_complained_of(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY); INSERT INTO outbox VALUES (1); ANALYZE outbox")
    report = bench.source().test()
    assert "dead" not in " ".join(report.weaknesses) and "snapshot for" not in " ".join(report.weaknesses)
