"""What a source said to drop rows may not be taken for: where it begins, nothing shows what lay before."""

from __future__ import annotations

from tests.integration.postgresql.mapped_tables import Bench, lane

TABLE = "CREATE TABLE outbox (id bigint PRIMARY KEY); INSERT INTO outbox VALUES (7), (8)"


def test_a_source_that_purges_begins_at_a_floor(bench: Bench) -> None:
    bench.run.execute(TABLE)
    for retention, floor in (("keeps", None), ("purges", 7)):
        with bench.source(retention=retention).hold_snapshot() as reading:
            found = lane(reading).floor
            assert (found and found.position) == floor
            assert reading.is_complete


def test_a_source_that_deletes_what_was_delivered_says_that_rows_go(bench: Bench) -> None:
    bench.run.execute(TABLE)
    with bench.source(retention="deletes_delivered").hold_snapshot() as reading:
        assert reading.rows_go
        assert "no evidence that it was delivered" in " ".join(reading.weaknesses)
