"""An image audit through Spark beside DuckDB's one query over the same tables: each key's latest event and the target's row.

An outbox of so many events over a fifth as many keys, each with about 190 bytes of jsonb, and a target table with a row a
key; one key in 1,024 holds other content, one in 2,048 is missing, and as many rows are extra. Both ways are given digests
by the ends' own SQL and must count the same.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from recovery_api.domain.images import ImageWord
from tests.benchmarks.audit import CONTENT, _libpq, _spark_servers
from tests.benchmarks.measure import Peak, databases, rounds, say
from workers.connectors.postgresql.image_sql import digest_at_target
from workers.connectors.protocols.image import StateColumn, StateMapping
from workers.evidence.image import ImageRequest, image_read
from workers.evidence.ranges import EndSpec
from workers.evidence.read import AuditRequest
from workers.spark.session import session_get

EVENTS_A_KEY = 5
DUCK = "DuckDB with its postgres extension, one query"


def run(sizes: Sequence[int], count: int) -> None:
    for events in sizes:
        with databases("orders", "mail") as dsns, tempfile.TemporaryDirectory() as folder:
            say(f"making {events:,} events and {events // EVENTS_A_KEY:,} keys …")
            _make(dsns, events)
            ways = _Ways(dsns, Path(folder))
            print(f"\nAn image audit of {events:,} events over {events // EVENTS_A_KEY:,} keys")
            peak = ways.check()
            rounds({DUCK: ways.duck, "Fencepost: image audit, findings written": ways.image}, count, DUCK)
            print(
                f"Peak beyond the idle engine: {peak / 2**20:.0f} MiB (this process and the Spark server, tasks included)"
            )


def _make(dsns: dict[str, str], events: int) -> None:
    keys = max(events // EVENTS_A_KEY, 1)
    with psycopg.connect(dsns["orders"], autocommit=True) as connection:
        connection.execute('CREATE TABLE outbox (id bigint PRIMARY KEY, "key" text, content jsonb)')
        connection.execute(
            f"INSERT INTO outbox SELECT i, 'k' || i % {keys}, {CONTENT} FROM generate_series(1, {events}) i"
        )
        connection.execute("VACUUM (ANALYZE, FREEZE) outbox")
    with psycopg.connect(dsns["mail"], autocommit=True) as connection:
        connection.execute("CREATE TABLE accepted (seq bigint PRIMARY KEY, key text, content jsonb)")
        connection.execute("CREATE TABLE state (key text PRIMARY KEY, content jsonb)")
        connection.execute(
            f"INSERT INTO state SELECT 'k' || i % {keys}, CASE WHEN i % 1024 = 3 THEN '{{}}' ELSE {CONTENT} END "
            f"FROM generate_series({events - keys + 1}, {events}) i WHERE i % 2048 <> 5"
        )
        connection.execute(f"INSERT INTO state SELECT 'x' || i, '{{}}' FROM generate_series(1, {keys} / 2048 + 1) i")
        connection.execute("VACUUM (ANALYZE, FREEZE) state")


class _Ways:
    def __init__(self, dsns: dict[str, str], directory: Path) -> None:
        self.orders, self.mail, self.directory = dsns["orders"], dsns["mail"], directory
        for name, dsn in dsns.items():
            (directory / name).write_text(dsn)
        self.session = session_get()
        self.mapping = StateMapping(StateColumn("key", "text", "text"), (StateColumn("content", "jsonb", "jsonb"),))

    def check(self) -> int:
        """Both ways count the same. Returns the image audit's peak memory beyond the idle engine, in bytes."""
        self.image()
        with Peak([os.getpid(), *_spark_servers()]) as peak:
            found = self.image()
        assert found == self.duck(), (found, self.duck())
        say(f"  mismatched, missing, extra: {found}")
        return peak.bytes - peak.before

    def image(self) -> tuple[int, int, int]:
        evidence = self.directory / "evidence"
        shutil.rmtree(evidence, ignore_errors=True)
        evidence.mkdir()
        common = {"op_constant": "insert", "key": "key", "content": "content"}
        source = {"connection": f"file:{self.directory / 'orders'}", "table": "outbox", "coordinate": ["id"]}
        sink = {"connection": f"file:{self.directory / 'mail'}", "table": "accepted", "coordinate": ["seq"]}
        state = {"state_table": "state", "state_key": "key", "state_content": "content"}
        audit = AuditRequest(
            EndSpec("postgresql_outbox", {**common, **source, "grace_seconds": 0}),
            EndSpec("postgresql_table", {**common, **sink, **state}),
            str(evidence),
        )
        counts = image_read(self.session, ImageRequest(audit), lambda **_: None).counts
        return counts.of(ImageWord.MISMATCHED), counts.of(ImageWord.MISSING), counts.of(ImageWord.EXTRA)

    def duck(self) -> tuple[int, int, int]:
        from duckdb_extensions import import_extension

        digest = digest_at_target(self.mapping, "t", has_soft_errors=True).replace("'", "''")
        connection: Any = duckdb.connect()
        import_extension("postgres_scanner", con=connection)
        connection.execute("LOAD postgres_scanner")
        for name, dsn in (("orders", self.orders), ("mail", self.mail)):
            connection.execute(f"ATTACH '{_libpq(dsn)}' AS {name} (TYPE postgres, READ_ONLY)")
        row = connection.execute(
            f"WITH c AS (SELECT key, arg_max(d, id) AS d FROM postgres_query('orders', 'SELECT id, key, {digest} AS d "
            f"FROM outbox t') GROUP BY key), s AS (SELECT * FROM postgres_query('mail', 'SELECT key, {digest} AS d FROM state t')) "
            "SELECT count(*) FILTER (WHERE c.key IS NOT NULL AND s.key IS NOT NULL AND c.d <> s.d), "
            "count(*) FILTER (WHERE s.key IS NULL), count(*) FILTER (WHERE c.key IS NULL) "
            "FROM c FULL OUTER JOIN s ON c.key = s.key"
        ).fetchone()
        connection.close()
        assert row is not None
        return int(row[0]), int(row[1]), int(row[2])
