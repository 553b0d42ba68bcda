"""The sink's own share of landing 100,000 events: stage from two processes by COPY, and fire; without Spark.

Beside it, from the same round, one client's COPY into a staging table plus an anti-join INSERT under the same keys,
payloads kept. Both records hold a million entries before.
"""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.ipc

from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import kit_options
from tests.benchmarks.measure import databases, rounds, say
from workers.connectors.readings import BatchDigest
from workers.connectors.registry import delivery_make
from workers.connectors.sinks.kit.install import kit_install
from workers.evidence import schemas
from workers.evidence.canonical import batch_digest, content_digest, content_parse, entry_digests, payload_digest

FILLED, BATCH, STAGERS, ROWS = 1_000_000, 100_000, 2, 10_000

CONTENT = '{{"note": "a note of a length that is usual in such events", "total": {total}, "status": "placed", "customer": "c{number}", "lines": 3, "order": {number}}}'

PLAIN = """
    CREATE TABLE plain (lane text COLLATE "C", position bigint, ordinal bigint, event_id text, op text, key text,
        content jsonb, accepted_at timestamptz DEFAULT now(), PRIMARY KEY (lane, position, ordinal));
    CREATE UNLOGGED TABLE plain_staged (lane text COLLATE "C", position bigint, ordinal bigint, event_id text, op text,
        key text, content jsonb);
    INSERT INTO plain SELECT '0', i, 0, 'event ' || i, 'insert', 'key ' || i,
        jsonb_build_object('order', i, 'note', repeat('x', 120), 'customer', 'customer ' || i, 'total', i / 4.0)
        FROM generate_series(1, {filled}) i;
    INSERT INTO fencepost.accepted (lane, position, ordinal, generation, accepted_at, admitted_in, payload_digest, op,
        event_id, key)
        SELECT '0', i, 0, 0, now(), pg_current_xact_id(), sha256(int8send(i)), 'insert', 'event ' || i, 'key ' || i
        FROM generate_series(1, {filled}) i"""

LAND_PLAIN = """
    INSERT INTO plain (lane, position, ordinal, event_id, op, key, content)
    SELECT * FROM plain_staged s WHERE NOT EXISTS (
        SELECT FROM plain p WHERE p.lane = s.lane AND p.position = s.position AND p.ordinal = s.ordinal)"""


def run(count: int) -> None:
    for title, target in (("no effect", {}), ("a mapped target", {"target": "orders", "target_key": "id"})):
        with databases("mail") as dsns:
            print(f"\nStaging and firing {BATCH:,} events into a record of {FILLED:,}, with {title}")
            _compare(dsns["mail"], target, count)


def _compare(dsn: str, target: dict[str, str], count: int) -> None:
    os.environ["FENCEPOST_END_BENCH_FIRE"] = dsn
    options = {"connection": "env:FENCEPOST_END_BENCH_FIRE", "batch_limit": BATCH, **target}
    if target:
        options |= {"target_columns": {"total": "total", "customer": "customer", "note": "note"}}
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("CREATE TABLE orders (id text PRIMARY KEY, total numeric, customer text, note text)")
        kit_install(admin, kit_options(options_parse(kind_get("postgresql_kit"), options)))
        say(f"filling both records with {FILLED:,} …")
        for statement in PLAIN.format(filled=FILLED).split(";"):
            admin.execute(statement)
        admin.execute("VACUUM (ANALYZE) plain, fencepost.accepted")
        sink = delivery_make("postgresql_kit", options)
        prepared: list[Any] = []
        seconds = {"stage": [], "fire": []}  # type: ignore[var-annotated]
        with multiprocessing.get_context("spawn").Pool(STAGERS) as pool:
            pool.map(_stage, [(options, 0, 0, [])] * STAGERS)  # the processes are there, as Spark's are
            rounds(
                {
                    "(making the batch and the claim)": lambda: prepared.append(_prepare(sink, len(prepared))),
                    "one client: COPY to staging, anti-join INSERT": lambda: _land_plain(dsn, prepared[-1]),
                    "the kit: arm, stage from two processes, fire": lambda: _land(
                        sink, pool, options, prepared[-1], seconds
                    ),
                },
                count,
                "one client: COPY to staging, anti-join INSERT",
            )
        print({name: [round(value, 2) for value in values] for name, values in seconds.items()})


def _prepare(sink: Any, number: int) -> tuple[int, list[bytes], BatchDigest, bytes]:
    generation = int(sink.generation_allocate("recoverer", "bench").data["generation"])
    assert sink.claim(generation, {}).word == "granted"
    sink.staged_purge()
    first = FILLED + number * BATCH + 1
    positions = range(first, first + BATCH)
    contents = [CONTENT.format(total=place % 997 + 0.25, number=place) for place in positions]
    rows = pa.RecordBatch.from_arrays(
        [
            pa.repeat("0", BATCH),
            pa.array(positions, pa.int64()),
            pa.repeat(pa.scalar(0, pa.int64()), BATCH),
            pa.array([f"event {place}" for place in positions]),
            pa.repeat("insert", BATCH),
            pa.array([f"key {place}" for place in positions]),
            pa.array(contents),
        ],
        schema=schemas.BATCH,
    )
    payloads = [
        payload_digest("insert", f"key {place}", content_digest(content_parse(text)))
        for place, text in zip(positions, contents, strict=True)
    ]
    digest = batch_digest(entry_digests(["0"] * BATCH, positions, [0] * BATCH, payloads))
    batches = [rows.slice(start, ROWS).serialize().to_pybytes() for start in range(0, BATCH, ROWS)]
    lines = "".join(
        f"0\t{place}\t0\tevent {place}\tinsert\tkey {place}\t{text}\n"
        for place, text in zip(positions, contents, strict=True)
    )
    return generation, batches, BatchDigest(BATCH, digest), lines.encode()


def _land_plain(dsn: str, prepared: tuple[int, list[bytes], BatchDigest, bytes]) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("TRUNCATE plain_staged")
        with connection.cursor().copy("COPY plain_staged FROM STDIN") as copy:
            for start in range(0, len(prepared[3]), 1 << 20):
                copy.write(prepared[3][start : start + (1 << 20)])
        connection.commit()
        landed = connection.execute(LAND_PLAIN)
        assert landed.rowcount == BATCH


def _land(
    sink: Any,
    pool: Any,
    options: dict[str, Any],
    prepared: tuple[int, list[bytes], BatchDigest, bytes],
    seconds: dict[str, list[float]],
) -> None:
    import time

    generation, batches, digest, _ = prepared
    arm = int(sink.arm(generation, digest, {}).data["arm"])
    began = time.perf_counter()
    share = len(batches) // STAGERS
    parts = [batches[number * share : (number + 1) * share] for number in range(STAGERS)]
    pool.map(_stage, [(options, generation, arm, part) for part in parts], chunksize=1)
    seconds["stage"].append(time.perf_counter() - began)
    began = time.perf_counter()
    fired = sink.fire(generation, arm)
    seconds["fire"].append(time.perf_counter() - began)
    assert (fired.word, fired.data["landed_count"]) == ("landed", BATCH), fired


def _stage(work: tuple[dict[str, Any], int, int, list[bytes]]) -> None:
    options, generation, arm, batches = work
    rows = (pa.ipc.read_record_batch(batch, schemas.BATCH) for batch in batches)
    delivery_make("postgresql_kit", options).stage(generation, arm, rows)
