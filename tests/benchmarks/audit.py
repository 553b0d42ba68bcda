"""A warm full audit beside COPY of the same columns, a psql anti-join, and DuckDB with its postgres extension.

Data as in the measurements that decided the design: an outbox (bigint key, 190 bytes of jsonb) and an acceptance
table; one event in 1,024 missing at random, 0.01 % doubled, 0.01 % premature. All ways must give the same answer.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.benchmarks.measure import Peak, copy_across, copy_away, databases, in_parallel, rounds, say
from workers.connectors.postgresql import canonical_sql
from workers.connectors.readings import Width
from workers.evidence.ranges import EndSpec
from workers.evidence.read import AuditRequest, evidence_read
from workers.spark.session import session_get

RELADIFF, RELADIFF_THRESHOLD = "reladiff", "65536"

CONTENT = """jsonb_build_object('order', i, 'customer', 'c' || (i::bigint * 7919 % 100000), 'amount', (i % 997) + 0.25,
    'note', 'a note of a length that is usual in such events', 'status', 'placed', 'lines', (i % 5) + 1)"""


def run(rows: int, count: int, by: str | None = None) -> None:
    with databases("orders", "mail") as dsns, tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        say(f"making {rows:,} rows at both ends …")
        _make(dsns, rows)
        ways = _Ways(dsns, directory)
        chosen = [width for width in Width if by in (None, width.value)]
        for width, columns in ((Width.COORDINATE, "coordinates"), (Width.PAYLOAD, "coordinates and payload digests")):
            if width not in chosen:
                continue
            print(f"\nA warm full audit of {rows:,} obligations by {columns}")
            peak = ways.check(width)
            rounds(ways.by_name(width), count, "two parallel COPYs of the same columns")
            print(
                f"Peak beyond the idle engine: {peak / 2**20:.0f} MiB (this process and the Spark server, tasks included)"
            )


def _make(dsns: dict[str, str], rows: int) -> None:
    digest = canonical_sql.payload_digest(
        "'insert'",
        "'k' || i",
        canonical_sql.content_digest(canonical_sql.canonical_jsonb("content"), "content", "'insert'"),
    )
    with psycopg.connect(dsns["orders"], autocommit=True) as connection:
        connection.execute('CREATE TABLE outbox (id bigint PRIMARY KEY, "key" text, content jsonb)')
        connection.execute(f"INSERT INTO outbox SELECT i, 'k' || i, {CONTENT} FROM generate_series(1, {rows}) i")
        connection.execute("CREATE VIEW r AS SELECT id AS seq FROM outbox")
        connection.execute("VACUUM (ANALYZE, FREEZE) outbox")
    with psycopg.connect(dsns["mail"], autocommit=True) as connection:
        connection.execute("CREATE TABLE accepted (seq bigint NOT NULL, digest bytea NOT NULL)")
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"INSERT INTO accepted SELECT i, {digest} FROM (SELECT i, {CONTENT} AS content "
            f"FROM generate_series(1, {rows}) i) made WHERE random() > 1.0 / 1024"
        )
        connection.execute("INSERT INTO accepted SELECT * FROM accepted WHERE random() < 0.0001")
        connection.execute(
            f"INSERT INTO accepted SELECT {rows} + i, sha256(int8send(i)) FROM generate_series(1, {rows} / 10000) i"
        )
        connection.execute("CREATE INDEX ON accepted (seq)")
        connection.execute("CREATE VIEW r AS SELECT seq FROM accepted")
        connection.execute("VACUUM (ANALYZE, FREEZE) accepted")


class _Ways:
    def __init__(self, dsns: dict[str, str], directory: Path) -> None:
        self.orders, self.mail, self.directory = dsns["orders"], dsns["mail"], directory
        for name, dsn in dsns.items():
            (directory / name).write_text(dsn)
        self.session = session_get()
        self.is_reladiff_here = shutil.which(RELADIFF) is not None
        if not self.is_reladiff_here:
            say(
                f"  no `{RELADIFF}` on the path: its row is left out (pip install 'reladiff[postgresql]' anywhere on it)"
            )
        self.digest = canonical_sql.payload_digest(
            "'insert'",
            '"key"',
            canonical_sql.content_digest(canonical_sql.canonical_jsonb("content"), "content", "'insert'"),
        )

    def by_name(self, width: Width) -> dict[str, Any]:
        reladiff = {"reladiff, with the threshold that was quickest": self.reladiff} if self.is_reladiff_here else {}
        return {
            "two parallel COPYs of the same columns": lambda: self.copies(width),
            "Fencepost: full audit, verdict and findings written": lambda: self.audit(width),
            "psql: COPY to a temporary table and anti-joins": lambda: self.anti_join(width),
            "DuckDB with its postgres extension, one query": lambda: self.duck(width),
            **({} if width is not Width.COORDINATE else reladiff),
        }

    def check(self, width: Width) -> int:
        """Every way gives the same answer. Returns the audit's peak memory beyond the idle engine, in bytes."""
        import os

        self.audit(width)
        with Peak([os.getpid(), *_spark_servers()]) as peak:
            found = self.audit(width)
        answers = {"audit": found, "anti-join": self.anti_join(width), "DuckDB": self.duck(width)}
        assert len(set(answers.values())) == 1, answers
        say(f"  lost, doubled, premature: {found}")
        return peak.bytes - peak.before

    def audit(self, width: Width) -> tuple[int, int, int]:
        evidence = self.directory / "evidence"
        shutil.rmtree(evidence, ignore_errors=True)
        common = {"coordinate": [""], "op_constant": "insert"}
        source = {
            **common,
            "connection": f"file:{self.directory / 'orders'}",
            "table": "outbox",
            "coordinate": ["id"],
            "key": "key",
            "content": "content",
            "grace_seconds": 0,
        }
        sink = {
            **common,
            "connection": f"file:{self.directory / 'mail'}",
            "table": "accepted",
            "coordinate": ["seq"],
            "digest": "digest",
        }
        request = AuditRequest(
            EndSpec("postgresql_outbox", source), EndSpec("postgresql_table", sink), str(evidence), width=width
        )
        with evidence_read(self.session, request, lambda **_: None) as found:
            counts = next(iter(found.lanes.values())).counts
        return counts.lost_retained, counts.duplicate_payloads, counts.premature

    def copies(self, width: Width) -> None:
        more = ("", "") if width is Width.COORDINATE else (f", {self.digest}", ", digest")
        in_parallel(
            lambda: copy_away(self.orders, f"SELECT id{more[0]} FROM outbox"),
            lambda: copy_away(self.mail, f"SELECT seq{more[1]} FROM accepted"),
        )

    def anti_join(self, width: Width) -> tuple[int, int, int]:
        """What a careful operator does with psql: bring one side over, compare in SQL."""
        by_digest = width is not Width.COORDINATE
        digest, match = (
            (f"id, {self.digest}", "a.seq = o.id AND a.digest = o.d") if by_digest else ("id", "a.seq = o.id")
        )
        with psycopg.connect(self.mail) as sink:
            sink.execute(f"CREATE UNLOGGED TABLE o (id bigint{', d bytea' if by_digest else ''})")
            sink.commit()
            copy_across(self.orders, f"SELECT {digest} FROM outbox", self.mail, "o")
            sink.execute("ANALYZE o")
            answer = (
                _one(sink, f"SELECT count(*) FROM o WHERE NOT EXISTS (SELECT FROM accepted a WHERE {match})"),
                _one(
                    sink,
                    f"SELECT count(*) FROM (SELECT FROM accepted GROUP BY seq{', digest' if by_digest else ''} "
                    "HAVING count(*) > 1) t",
                ),
                _one(sink, f"SELECT count(*) FROM accepted a WHERE NOT EXISTS (SELECT FROM o WHERE {match})"),
            )
            sink.execute("DROP TABLE o")
            return answer

    def duck(self, width: Width) -> tuple[int, int, int]:
        from duckdb_extensions import import_extension

        by_digest = width is not Width.COORDINATE
        source = f"SELECT id{f', {self.digest} AS d' if by_digest else ''} FROM outbox".replace("'", "''")
        match = "a.seq = o.id AND a.digest = o.d" if by_digest else "a.seq = o.id"
        columns = "seq, digest" if by_digest else "seq"
        connection = duckdb.connect()
        import_extension("postgres_scanner", con=connection)
        connection.execute("LOAD postgres_scanner")
        connection.execute(f"ATTACH '{_libpq(self.orders)}' AS orders (TYPE postgres, READ_ONLY)")
        connection.execute(f"ATTACH '{_libpq(self.mail)}' AS mail (TYPE postgres, READ_ONLY)")
        side = f"SELECT * FROM postgres_query('orders', '{source}')" if by_digest else "SELECT id FROM orders.outbox"
        row = connection.execute(
            f"WITH o AS MATERIALIZED ({side}), a AS MATERIALIZED (SELECT {columns} FROM mail.accepted) "
            f"SELECT (SELECT count(*) FROM o WHERE NOT EXISTS (SELECT 1 FROM a WHERE {match})), "
            f"(SELECT count(*) FROM (SELECT {columns} FROM a GROUP BY {columns} HAVING count(*) > 1)), "
            f"(SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM o WHERE {match}))"
        ).fetchone()
        connection.close()
        assert row is not None
        return row

    def reladiff(self) -> tuple[int, int]:
        """Coordinates that one side has and the other has not. It cannot tell a doubled row from a single one."""
        command = [RELADIFF, self._url(self.orders), "r", self._url(self.mail), "r", "-k", "seq", "--skip-sort-results"]
        command += ["--bisection-threshold", RELADIFF_THRESHOLD, "--threads", "2", "--stats", "--json"]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        said = json.loads(found)
        return said["exclusive_A"], said["exclusive_B"]

    def _url(self, dsn: str) -> str:
        part = conninfo_to_dict(dsn)
        return f"postgresql://{part['user']}:{part.get('password', '')}@{part['host']}:{part['port']}/{part['dbname']}"


def _one(connection: psycopg.Connection[Any], query: str) -> int:
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def _libpq(dsn: str) -> str:
    return " ".join(f"{name}={value}" for name, value in conninfo_to_dict(dsn).items())


def _spark_servers() -> list[int]:
    """The run's Spark Connect server: the processes whose command line names it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if b"SparkConnectServer" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
