"""An audit that goes on from the one before it, over histories of different sizes: what is new costs, what is old does not.

Each history is an ordinary outbox and the sink kit, registered and audited as an operator's. A round commits and delivers
10,000 events, and has the kit accept an old event with another content, deep in the history: the audit must find it. The
blocks are as old as those of a pipeline that has run for weeks, and the last audit is five minutes old, so that each
audit also reads in its turn as many blocks again as the seven days ask for at that pace.
"""

from __future__ import annotations

import queue
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import kit_options
from recovery_api.domain.ledger.blocks import ROUND
from recovery_api.models import Audit, LedgerBlock, LedgerReading
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from tests.benchmarks.latency import use_database
from tests.benchmarks.measure import databases, say
from tests.integration.recovery.world import OUTBOX, World
from workers.connectors.postgresql import canonical_sql
from workers.connectors.sinks.kit.install import kit_install
from workers.evidence import schemas

NEW = 10_000
AT_ONCE = 1_000
"""Events of one delivery."""

CHUNK = 100_000
"""Events of one transaction while a history is made."""

LATE = 16
"""Old events that the record lacks at first: one a round comes in late, altered."""

PERIOD = timedelta(minutes=5)
CONTENT = "jsonb_build_object('order', i, 'amount', mod(i, 997) + 0.25, 'status', 'placed')"
DIGEST = canonical_sql.payload_digest(
    "'insert'",
    "'k' || i",
    canonical_sql.content_digest(canonical_sql.canonical_jsonb("content"), "content", "'insert'"),
)
COMMIT = f"""
    INSERT INTO outbox (event_id, "key", content) SELECT 'e' || i, 'k' || i, {CONTENT} FROM generate_series(%s::bigint, %s::bigint) i"""
ACCEPT = f"""
    INSERT INTO fencepost.accepted (lane, position, ordinal, generation, accepted_at, admitted_in, payload_digest, op,
        event_id, "key")
    SELECT '0', %s, i, 0, clock_timestamp(), pg_current_xact_id(), {DIGEST}, 'insert', 'e' || i, 'k' || i
    FROM (SELECT i, {CONTENT} AS content FROM generate_series(%s::bigint, %s::bigint) i WHERE i <> ALL (%s)) made"""


def run(sizes: Sequence[int], count: int) -> None:
    with databases("control") as control_dsn, tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        use_database(control_dsn["control"])
        call_command("migrate", verbosity=0)
        settings.FENCEPOST_EVIDENCE_DIR = Path(folder) / "evidence"
        histories = [held.enter_context(History(Path(folder), rows)) for rows in sizes]
        print(f"\nAn audit that goes on from the one before it: {NEW:,} events new at both ends", flush=True)
        for history in histories:
            history.begin()
        for number in range(count + 1):
            for history in histories:
                seconds = history.round()
                say(f"  round {number}: {history.rows:,} {seconds:.2f} s; {history.said}")
                if number:
                    history.seconds.append(seconds)
        say_all(histories)


def say_all(histories: Sequence[History]) -> None:
    least = min(statistics.median(one.seconds) for one in histories)
    print(
        f"{'history':>12} {'in full, s':>11} {'median s':>9} {'ratio':>6}  range, s       blocks; judged anew and again"
    )
    for one in histories:
        median = statistics.median(one.seconds)
        span = f"{min(one.seconds):.2f} to {max(one.seconds):.2f}"
        print(f"{one.rows:>12,} {one.full:>11.2f} {median:>9.2f} {median / least:>6.2f}  {span:<14} {one.said}")
    print(
        f"Each found the old acceptance that came in late and altered, in all {len(histories[0].seconds) + 1} rounds."
    )


@dataclass
class History:
    """One pipeline with `rows` events at both ends, but `late` of them, which the record lacks at first. `seconds`: of its rounds; `full`: of its first audit."""

    directory: Path
    rows: int
    late: int = LATE
    seconds: list[float] = field(default_factory=list)
    full: float = 0.0
    said: str = ""
    _late: dict[int, int] = field(default_factory=dict)
    _next: int = 1

    def __enter__(self) -> History:
        self._held = ExitStack()
        self._dsns = self._held.enter_context(databases("orders", "mail"))
        say(f"making {self.rows:,} events at both ends …")
        began = time.perf_counter()
        self.world = self._world()
        self._fill()
        say(f"  made in {time.perf_counter() - began:.0f} s")
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def begin(self) -> None:
        """The first audit, in full, and its blocks as old as they are where audits have run for weeks."""
        began = time.perf_counter()
        audit = self.world.audit()
        self.full = time.perf_counter() - began
        assert (audit.lost_count, audit.premature_count) == (self.late, 0), audit.says
        say(f"  {self.rows:,} in full {self.full:.2f} s")
        blocks = list(LedgerBlock.objects.filter(pipeline=self.world.pipeline))
        for place, block in enumerate(blocks):  # in no order of their places, between half a round and a whole one old
            share = (place * 7 % len(blocks) + 1) / (len(blocks) + 1)
            block.derived_at = timezone.now() - ROUND / 2 - ROUND / 2 * 0.9 * share
        LedgerBlock.objects.bulk_update(blocks, ["derived_at"])

    def round(self) -> float:
        """Seconds of one audit, from the request's row to its recorded verdict."""
        world = self.world
        number, transaction = self._late.popitem()
        with psycopg.connect(world.source_dsn) as source:
            new = _batch(
                source, numbers_commit(source, self._next, self._next + NEW - 1), self._next, self._next + NEW - 1
            )
            old = _batch(source, transaction, number, number)
        self._next += NEW
        column = old.schema.get_field_index("content")
        old = old.set_column(column, old.schema.field("content"), pa.array(['{"altered": true}'], pa.string()))
        for at in range(0, NEW, AT_ONCE):
            assert set(world.sink().deliver(0, new.slice(at, AT_ONCE))) == {"accepted"}
        assert world.sink().deliver(0, old) == ["accepted"]
        LedgerReading.objects.filter(pipeline=world.pipeline).update(read_at=timezone.now() - PERIOD)
        world.until_safe()
        before = world.pipeline.audits.latest("finished_at").premature_count
        began = time.perf_counter()
        audit = world.audit(is_safe=False)
        passed = time.perf_counter() - began
        assert audit.premature_count == before + 1, audit.says
        self.said = reach_of(audit)
        return passed

    def _fill(self) -> None:
        """Both ends at once, a transaction a chunk: the record's follow the source's."""
        lows: queue.Queue[tuple[int, int] | None] = queue.Queue()
        late = {self.rows * (2 * at + 1) // (4 * self.late): 0 for at in range(self.late)}  # all in the older half

        def accept() -> None:
            with psycopg.connect(self.world.sink_dsn, autocommit=True) as sink:
                while (chunk := lows.get()) is not None:
                    transaction, low = chunk
                    high = min(low + CHUNK - 1, self.rows)
                    sink.execute(ACCEPT, (transaction - 2**63, low, high, list(late)))
                sink.execute("VACUUM (ANALYZE) fencepost.accepted")

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        with psycopg.connect(self.world.source_dsn, autocommit=True) as source:
            for low in range(1, self.rows + 1, CHUNK):
                with source.transaction():
                    transaction = numbers_commit(source, low, min(low + CHUNK - 1, self.rows))
                late |= dict.fromkeys((at for at in late if low <= at < low + CHUNK), transaction)
                lows.put((transaction, low))
            lows.put(None)
            source.execute("VACUUM (ANALYZE) outbox")
            accepting.join()
            source.execute("CHECKPOINT")  # the rounds would pay for what is still to be written of the filling
        self._late, self._next = late, self.rows + 1

    def _world(self) -> World:
        """As tests.integration.recovery.world.world_make does, under a name of its own."""
        now, name = timezone.now(), f"history-{self.rows}"
        for end, dsn in self._dsns.items():
            (self.directory / f"{name}.{end}").write_text(dsn)
        mapped = {"table": "outbox", "coordinate": ["tx", "id"], "coordinate_spelling": "xid8_bigint"}
        named = {"event_id": "event_id", "key": "key", "op": "op", "content": "content", "committed_at": "created_at"}
        source_options = {"connection": f"file:{self.directory / name}.orders", **mapped, **named}
        sink_options = {"connection": f"file:{self.directory / name}.mail"}
        with psycopg.connect(self._dsns["orders"]) as source:
            source.execute(OUTBOX)
        with psycopg.connect(self._dsns["mail"], autocommit=True) as sink:
            kit_install(sink, kit_options(options_parse(kind_get("postgresql_kit"), sink_options)))
        ends = (
            source_create(f"{name}-orders", "postgresql_outbox", source_options, actor="bench", now=now),
            sink_create(f"{name}-mail", "postgresql_kit", sink_options, actor="bench", now=now),
        )
        pipeline = pipeline_create(name, *ends, actor="bench", now=now, options={"is_scheduled": False})
        return World(self._dsns["orders"], self._dsns["mail"], source_options, sink_options, pipeline)


def numbers_commit(source: psycopg.Connection[Any], low: int, high: int) -> int:
    """Commits the events with these numbers, which are those that the table draws; its transaction."""
    row = source.execute("SELECT pg_current_xact_id()::text").fetchone()
    assert row is not None
    source.execute(COMMIT, (low, high))
    return int(row[0])


def _batch(source: psycopg.Connection[Any], transaction: int, low: int, high: int) -> pa.Table:
    """These events as a relay delivers them."""
    rows = source.execute(
        'SELECT id, event_id, op, "key", content::text FROM outbox WHERE tx = %s::text::xid8 AND id BETWEEN %s AND %s '
        "ORDER BY id",
        (transaction, low, high),
    ).fetchall()
    named = zip(*rows, strict=True)
    columns = dict(zip(("ordinal", "event_id", "op", "key", "content"), map(list, named), strict=True))
    same = {"lane": ["0"] * len(rows), "position": [transaction - 2**63] * len(rows)}
    return pa.table({**columns, **same}).select(schemas.BATCH.names).cast(schemas.BATCH)


def reach_of(audit: Audit) -> str:
    """What the audit said that it read. It must have gone on from the one before."""
    grounds = [one for one in audit.lanes["0"]["grounds"] if one.startswith("Read since")]
    assert grounds, audit.lanes["0"]["grounds"]
    judged = re.findall(r"([\d,]+) were judged anew and ([\d,]+) read again", grounds[0])
    blocks = LedgerBlock.objects.filter(pipeline=audit.pipeline).count()
    return f"{blocks}; {judged[0][0]} and {judged[0][1]}"
