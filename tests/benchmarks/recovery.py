"""From a crash to its certificate: 100,000 events owed over a long history, beside one audit in full of the same ends.

A round commits the events and delivers none of them, as a relay that died leaves it. What is timed is what an operator's
recovery does, worked on in this process with a warm engine: plan (approved at once), claim, read under it, stage, fire,
verify. Beside it, in the same round: one audit in full, by name, and what one client needs to bring the same events into
an ordinary table of that length (COPY to staging, anti-join INSERT), which is the bar of landing.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from recovery_api.models import RecoveryOutcome
from recovery_api.services.audits import audit_request
from tests.benchmarks.increment import CONTENT, History, numbers_commit
from tests.benchmarks.latency import use_database
from tests.benchmarks.measure import databases, say
from tests.integration.recovery.world import run as intent_run

BATCH = 100_000
AUDITS, LANDINGS = 4, 1.8
"""The bar: so many audits in full, and so many times what the one client takes."""

GOOD = (RecoveryOutcome.EXACTLY_ONCE, RecoveryOutcome.EXACTLY_ONCE_GIVEN)
COLUMNS = 'position, ordinal, op, event_id, "key", content'


def run(sizes: Sequence[int], count: int, batch: int = BATCH) -> None:
    with databases("control") as control, tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        use_database(control["control"])
        call_command("migrate", verbosity=0)
        settings.FENCEPOST_EVIDENCE_DIR = Path(folder) / "evidence"
        settings.FENCEPOST_IN_PROCESS_ROWS = 0
        for rows in sizes:
            crash = held.enter_context(Crash(Path(folder), rows, late=0))
            crash.batch = batch
            print(f"\nFrom a crash to its certificate: {batch:,} owed over {rows:,}", flush=True)
            crash.prepare()
            for number in range(count + 1):
                crash.round_once(is_counted=number > 0)
            crash.say()


class Crash(History):
    """One pipeline, crashed again and again."""

    batch = BATCH

    def prepare(self) -> None:
        self.begin()
        self.ways: dict[str, tuple[Callable[[], None], list[float]]] = {
            "audit": (self._audit, []),
            "land": (self._land, []),
            "recover": (self._recover, []),
        }
        with psycopg.connect(self.world.sink_dsn, autocommit=True) as sink:
            sink.execute(
                'CREATE TABLE plain (position bigint, ordinal bigint, op text, event_id text, "key" text, content jsonb, '
                "PRIMARY KEY (position, ordinal))"
            )
            sink.execute(
                f"INSERT INTO plain SELECT 0, i, 'insert', 'e' || i, 'k' || i, {CONTENT} FROM generate_series(1, {self.rows}) i"
            )
            sink.execute("CREATE UNLOGGED TABLE plain_staged (LIKE plain)")
            sink.execute("VACUUM (ANALYZE) plain")

    def round_once(self, is_counted: bool) -> None:
        with psycopg.connect(self.world.source_dsn) as source:
            self._transaction = numbers_commit(source, self._next, self._next + self.batch - 1)
        with psycopg.connect(self.world.source_dsn) as source:
            query = f"SELECT 1, id, op, event_id, \"key\", content FROM outbox WHERE tx = '{self._transaction}'::xid8"
            with source.cursor().copy(f"COPY ({query}) TO STDOUT") as copy:
                self._lines = [bytes(data) for data in copy]
        self._next += self.batch
        self.world.until_safe()
        for name, (way, seconds) in self.ways.items():
            began = time.perf_counter()
            way()
            passed = time.perf_counter() - began
            say(f"  {name} {passed:.2f} s")
            if is_counted:
                seconds.append(passed)

    def say(self) -> None:
        audits, landings, recoveries = (self.ways[name][1] for name in ("audit", "land", "recover"))
        for name, taken in (
            ("one audit in full", audits),
            ("one client: COPY to staging, anti-join INSERT", landings),
            ("from crash to certificate", recoveries),
        ):
            print(f"{name:<48} median {statistics.median(taken):.2f} s ({min(taken):.2f} to {max(taken):.2f})")
        bars = [AUDITS * one + LANDINGS * two for one, two in zip(audits, landings, strict=True)]
        shares = [taken / bar for taken, bar in zip(recoveries, bars, strict=True)]
        print(
            f"of the bar ({AUDITS} audits and {LANDINGS} landings): median {statistics.median(shares):.2f} "
            f"({min(shares):.2f} to {max(shares):.2f}), met at 1 or less",
            flush=True,
        )

    def _audit(self) -> None:
        pipeline = self.world.pipeline
        intent = audit_request(pipeline, actor="bench", now=timezone.now(), is_full=True, wake=False)
        intent_run(intent)
        assert pipeline.audits.get(intent=intent).lost_count == self.batch

    def _land(self) -> None:
        with psycopg.connect(self.world.sink_dsn) as sink:
            sink.execute("TRUNCATE plain_staged")
            with sink.cursor().copy(f"COPY plain_staged ({COLUMNS}) FROM STDIN") as copy:
                for start in range(0, len(self._lines), 500):  # as large as a good client writes them
                    copy.write(b"".join(self._lines[start : start + 500]))
            sink.commit()
            landed = sink.execute(
                f"INSERT INTO plain ({COLUMNS}) SELECT {COLUMNS} FROM plain_staged s WHERE NOT EXISTS "
                "(SELECT FROM plain p WHERE p.position = s.position AND p.ordinal = s.ordinal)"
            ).rowcount
            assert landed == self.batch, landed

    def _recover(self) -> None:
        recovery = self.world.recover()
        assert recovery.outcome in GOOD, (recovery.outcome, recovery.says)
        assert recovery.certificate is not None
