"""The read part of an audit alone: both ends packed, in two processes, beside two parallel psql COPYs of the same columns.

What a verdict costs beyond this is the kernel and the engine. The unit is psql's own `COPY … TO STDOUT` thrown away:
a COPY read row by row in Python costs many times that and would flatter every ratio.

    python -m workers.embedded --temporary -- python -m tests.benchmarks.audit_read --rows 5000000
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

from tests.benchmarks.audit import CONTENT
from tests.benchmarks.measure import copy_away, databases, in_parallel, rounds, say
from workers.connectors.postgresql import canonical_sql
from workers.connectors.readings import CoordinateRange, Reading, Width
from workers.connectors.registry import record_make, source_make

DIGEST = canonical_sql.payload_digest(
    "'insert'",
    '"key"',
    canonical_sql.content_digest(canonical_sql.canonical_jsonb("content"), "content", "'insert'"),
)
PROCESSES = 2


def run(rows: int, count: int) -> None:
    with databases("orders", "mail") as dsns, tempfile.TemporaryDirectory() as folder:
        say(f"making {rows:,} rows at both ends …")
        ends_make(dsns, rows)
        context = multiprocessing.get_context("spawn")
        with context.Pool(PROCESSES) as pool:
            ends = _Ends(dsns, Path(folder), pool)
            for width, columns in ((Width.COORDINATE, "coordinates"), (Width.PAYLOAD, "coordinates and digests")):
                print(f"\nReading both ends of {rows:,} obligations by {columns}, in {PROCESSES} processes")
                ways: dict[str, Callable[[], object]] = {
                    "two parallel psql COPYs of the same columns": lambda width=width: ends.copies(width),
                    "packed read of both ends": lambda width=width: ends.read(width),
                }
                rounds(ways, count, "two parallel psql COPYs of the same columns")


def ends_make(dsns: dict[str, str], rows: int) -> None:
    """An outbox (bigint key, 190 bytes of jsonb) and its record: 1 in 1,024 missing, 0.01 % doubled."""
    with psycopg.connect(dsns["orders"], autocommit=True) as connection:
        connection.execute('CREATE TABLE outbox (id bigint PRIMARY KEY, "key" text, content jsonb)')
        connection.execute(f"INSERT INTO outbox SELECT i, 'k' || i, {CONTENT} FROM generate_series(1, {rows}) i")
        connection.execute("VACUUM (ANALYZE, FREEZE) outbox")
    with psycopg.connect(dsns["mail"], autocommit=True) as connection:
        connection.execute("CREATE TABLE accepted (seq bigint NOT NULL, digest bytea NOT NULL)")
        connection.execute(
            f"INSERT INTO accepted SELECT i, sha256(int8send(i)) FROM generate_series(1, {rows}) i WHERE random() > 1.0 / 1024"
        )
        connection.execute("INSERT INTO accepted SELECT * FROM accepted WHERE random() < 0.0001")
        connection.execute("CREATE INDEX ON accepted (seq)")
        connection.execute("VACUUM (ANALYZE, FREEZE) accepted")


class _Ends:
    def __init__(self, dsns: dict[str, str], folder: Path, pool: Any) -> None:
        self.dsns, self.pool = dsns, pool
        for name, dsn in dsns.items():
            (folder / name).write_text(dsn)
        self.source = (
            "postgresql_outbox",
            {
                "connection": f"file:{folder / 'orders'}",
                "table": "outbox",
                "coordinate": "id",
                "key": "key",
                "content": "content",
            },
        )
        self.sink = (
            "postgresql_table",
            {"connection": f"file:{folder / 'mail'}", "table": "accepted", "coordinate": "seq", "digest": "digest"},
        )

    def read(self, width: Width) -> int:
        """Snapshots, ranges, and every range of both ends read in the pool: rows read."""
        source, sink = source_make(*self.source), record_make(*self.sink)
        with source.hold_snapshot() as history, sink.hold_snapshot() as record:
            work = [
                (self.source, history, self.sink, record, range_, width)
                for range_ in source.split(history, "0", 2 * PROCESSES)
            ]
            return sum(self.pool.starmap(range_read, work, chunksize=1))

    def copies(self, width: Width) -> None:
        more = ("", "") if width is Width.COORDINATE else (f", {DIGEST}", ", digest")
        in_parallel(
            lambda: copy_away(self.dsns["orders"], f"SELECT id{more[0]} FROM outbox"),
            lambda: copy_away(self.dsns["mail"], f"SELECT seq{more[1]} FROM accepted"),
        )


def range_read(
    source: tuple[str, Any],
    history: Reading,
    sink: tuple[str, Any],
    record: Reading,
    range_: CoordinateRange,
    width: Width,
) -> int:
    """One range of both ends, as a task has it before it judges: two Arrow tables."""
    kept = pa.Table.from_batches(source_make(*source).read_history(history, range_, width))
    accepted = pa.Table.from_batches(record_make(*sink).read_accepted(record, range_, width))
    return kept.num_rows + accepted.num_rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.audit_read", description=__doc__)
    parser.add_argument("--rows", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    for rows in given.rows or [1_000_000, 5_000_000]:
        run(rows, given.rounds)
