"""Landing 100,000 owed events, arm to fired, beside one client's COPY into staging and an anti-join INSERT.

Both targets hold a million entries under the same key, and both take the payloads over the wire; the kit's also
digests every entry, compares the batch with what was armed, and keeps fence, claim and hand-over.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg

from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import kit_options
from tests.benchmarks.audit import CONTENT
from tests.benchmarks.measure import databases, rounds, say
from workers.connectors.readings import BatchDigest
from workers.connectors.sinks.kit.install import kit_install
from workers.evidence.ranges import EndSpec
from workers.evidence.read import AuditRequest, Evidence, evidence_read
from workers.spark.jobs.redrive import batch_stage
from workers.spark.session import session_get

FILLED, BATCH = 1_000_000, 100_000


def run(count: int) -> None:
    with databases("orders", "mail") as dsns, tempfile.TemporaryDirectory() as folder:
        world = _World(dsns, Path(folder))
        print(f"\nLanding {BATCH:,} events with payloads into a record of {FILLED:,}")
        prepared: list[Any] = []

        def prepare() -> None:
            prepared.append(world.prepare())

        rounds(
            {
                "(making the batch, the claim and the read under it)": prepare,
                "one client: COPY to staging, anti-join INSERT": lambda: world.baseline(),
                "Fencepost: arm, stage from Spark tasks, fire": lambda: world.land(prepared[-1]),
            },
            count,
            "one client: COPY to staging, anti-join INSERT",
        )


class _World:
    def __init__(self, dsns: dict[str, str], directory: Path) -> None:
        self.orders, self.mail, self.directory = dsns["orders"], dsns["mail"], directory
        for name, dsn in dsns.items():
            (directory / name).write_text(dsn)
        self.sink_options = {"connection": f"file:{directory / 'mail'}", "batch_limit": BATCH}
        say(f"filling both records with {FILLED:,} …")
        with psycopg.connect(self.orders, autocommit=True) as connection:
            connection.execute('CREATE TABLE outbox (id bigint PRIMARY KEY, "key" text, content jsonb)')
        with psycopg.connect(self.mail, autocommit=True) as connection:
            kit_install(connection, kit_options(options_parse(kind_get("postgresql_kit"), self.sink_options)))
            connection.execute(
                "INSERT INTO fencepost.accepted (lane, position, ordinal, generation, accepted_at, admitted_in, "
                "payload_digest, op, event_id, key) SELECT '0', i, 0, 0, now(), pg_current_xact_id(), "
                f"sha256(int8send(i)), 'insert', NULL, 'k' || i FROM generate_series(1, {FILLED}) i"
            )
            connection.execute(
                'CREATE TABLE plain (lane text COLLATE "C", position bigint, ordinal bigint, op text, event_id text, '
                '"key" text, content jsonb, accepted_at timestamptz, PRIMARY KEY (lane, position, ordinal))'
            )
            connection.execute(
                f"INSERT INTO plain SELECT '0', i, 0, 'insert', NULL, 'k' || i, {CONTENT}, now() "
                f"FROM generate_series(1, {FILLED}) i"
            )
            connection.execute("CREATE UNLOGGED TABLE plain_staged (LIKE plain)")
            connection.execute("VACUUM (ANALYZE) plain, fencepost.accepted")
        self.sink = EndSpec("postgresql_kit", self.sink_options).fenced()
        self.session = session_get()
        self.high = FILLED
        self.lines: list[bytes] = []
        self.held: ExitStack | None = None

    def prepare(self) -> tuple[Evidence, int]:
        """A new batch at the source, claimed and read under the claim; its rows also as one client would hold them."""
        if self.held is not None:
            self.held.close()
        low, self.high = self.high, self.high + BATCH
        with psycopg.connect(self.orders) as connection:
            connection.execute("TRUNCATE outbox")
            connection.execute(
                f"INSERT INTO outbox SELECT i, 'k' || i, {CONTENT} FROM generate_series({low + 1}, {self.high}) i"
            )
        with psycopg.connect(self.orders) as connection:
            query = (
                "COPY (SELECT '0', id, 0, 'insert', NULL, \"key\", content, now() FROM outbox ORDER BY id) TO STDOUT"
            )
            with connection.cursor().copy(query) as copy:
                self.lines = [bytes(data) for data in copy]
        evidence = self.directory / "evidence"
        shutil.rmtree(evidence, ignore_errors=True)
        generation = int(self.sink.generation_allocate("recoverer", "bench").data["generation"])
        assert self.sink.claim(generation, {}).word == "granted"
        source = {
            "connection": f"file:{self.directory / 'orders'}",
            "table": "outbox",
            "coordinate": ["id"],
            "key": "key",
            "content": "content",
            "grace_seconds": 0,
        }
        request = AuditRequest(
            EndSpec("postgresql_outbox", source),
            EndSpec("postgresql_kit", self.sink_options),
            str(evidence),
            generation=generation,
        )
        self.held = ExitStack()
        found = self.held.enter_context(evidence_read(self.session, request, lambda **_: None))
        assert found.batch_count == BATCH, found.batch_count
        return found, generation

    def land(self, prepared: tuple[Evidence, int]) -> None:
        found, generation = prepared
        armed = self.sink.arm(generation, BatchDigest(found.batch_count, found.batch_digest), {})
        batch_stage(self.session, found, generation, int(armed.data["arm"]))
        fired = self.sink.fire(generation, int(armed.data["arm"]))
        assert (fired.word, int(fired.data["landed_count"])) == ("landed", BATCH), fired

    def baseline(self) -> None:
        columns = 'lane, position, ordinal, op, event_id, "key", content, accepted_at'
        with psycopg.connect(self.mail) as connection:
            connection.execute("TRUNCATE plain_staged")
            with connection.cursor().copy(f"COPY plain_staged ({columns}) FROM STDIN") as copy:
                for block in _blocks(self.lines):
                    copy.write(block)
            connection.commit()
            landed = connection.execute(
                f"INSERT INTO plain ({columns}) SELECT {columns} FROM plain_staged s WHERE NOT EXISTS (SELECT FROM plain p "
                "WHERE p.lane = s.lane AND p.position = s.position AND p.ordinal = s.ordinal)"
            ).rowcount
            assert landed == BATCH, landed


def _blocks(lines: list[bytes]) -> Iterator[bytes]:
    """As large as a good client writes them."""
    for start in range(0, len(lines), 500):
        yield b"".join(lines[start : start + 500])
