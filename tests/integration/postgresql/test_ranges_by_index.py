"""A stretch of either end is read by its index, however many rows one transaction holds: what is old costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recovery_api.domain.coordinates import Coordinate
from tests.contract.sink_engines import kit_make
from tests.integration.postgresql.mapped_tables import Bench, rows_of
from workers.connectors.readings import CoordinateRange, Width
from workers.connectors.registry import record_make
from workers.connectors.sinks.kit.install import kit_install

ROWS = 20_000
OUTBOX = """
CREATE TABLE outbox (tx xid8 NOT NULL, id bigint NOT NULL, content jsonb, PRIMARY KEY (tx, id));
INSERT INTO outbox SELECT {tx}, i, '{{}}' FROM generate_series(1, {rows}) i ORDER BY hashint8(i);
ANALYZE outbox
"""
ACCEPTED = """
INSERT INTO fencepost.accepted (lane, position, ordinal, generation, accepted_at, admitted_in, payload_digest, op, event_id, "key")
SELECT '0', {tx}, i, 0, clock_timestamp(), pg_current_xact_id(), sha256('x'), 'insert', 'e' || i, 'k'
FROM generate_series(1, {rows}) i ORDER BY hashint8(i);
ANALYZE fencepost.accepted
"""
SCANS = "SELECT seq_scan FROM pg_stat_all_tables WHERE relid = %s::regclass"

Reads = Callable[[CoordinateRange], list[dict[str, Any]]]


@pytest.mark.parametrize("transactions", [1, 2], ids=["one transaction", "two transactions"])
@pytest.mark.parametrize("end", ["source", "record"])
def test_a_stretch_inside_big_transactions_is_read_by_index_alone(
    bench: Bench, tmp_path: Path, end: str, transactions: int
) -> None:
    """Of 20,000 rows in any order the 30 that end one transaction and begin the next, or that lie in the middle of the only one."""
    table, shift = ("outbox", 2**63) if end == "source" else ("fencepost.accepted", 0)
    each = ROWS // transactions
    number = f"10 + (i - 1) / {each}"
    read = (source_filled if end == "source" else record_filled)(bench, number)
    middle = ROWS // 2
    places = [Coordinate(10 + (at - 1) // each - shift, at) for at in (middle - 9, middle + 21)]
    before = scans(bench, table)
    rows = read(CoordinateRange("0", *places))
    assert sorted(row["ordinal"] for row in rows) == list(range(middle - 9, middle + 21))
    assert scans(bench, table) == before


def source_filled(bench: Bench, number: str) -> Reads:
    bench.run.execute(OUTBOX.format(tx=f"({number})::text::xid8", rows=ROWS))
    source = bench.source(coordinate=["tx", "id"], coordinate_spelling="xid8_bigint")

    def read(range_: CoordinateRange) -> list[dict[str, Any]]:
        with source.hold_snapshot() as reading:
            return rows_of(source.read_history(reading, range_, Width.COORDINATE))

    return read


def record_filled(bench: Bench, number: str) -> Reads:
    kit = kit_make(schema="fencepost", prefix=bench.run.info.dbname)
    kit_install(bench.run, kit)
    bench.run.execute(ACCEPTED.format(tx=number, rows=ROWS))
    record = record_make("postgresql_kit", {"connection": bench.reference(), "schema": "fencepost"})

    def read(range_: CoordinateRange) -> list[dict[str, Any]]:
        with record.hold_snapshot() as reading:
            return rows_of(record.read_accepted(reading, range_, Width.COORDINATE))

    return read


def scans(bench: Bench, table: str) -> int:
    with psycopg.connect(bench.dsn, autocommit=True) as looking:
        row = looking.execute(SCANS, [table]).fetchone()
    assert row is not None
    return int(row[0])
