"""Delivering through the kit beside a plain INSERT of the same rows under the same key.

One event a transaction with one relay and with eight, and a hundred events a transaction. All ways send the same
parameters over open connections. `plain` inserts what the kit records, with the payload itself where the kit keeps its
digest; `record` inserts the kit's own row, digest and all, without a fence. On the run's server, which flushes nothing,
and on one of its own that flushes each commit, as a sink does. Processor time of the server's sessions is told beside the clock: on a busy machine it is the steadier of the two.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psycopg
from psycopg import sql

from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import kit_options
from tests.benchmarks.measure import databases, say
from workers.connectors.sinks.kit.install import kit_install

EVENTS = 2_000
MANY = 100
PLAIN = (
    "INSERT INTO plain (lane, position, ordinal, generation, head_position, head_ordinal, op, event_id, key, content) "
    "VALUES ('0', %s, 0, 0, %s, 0, 'insert', %s, %s, %s::jsonb) ON CONFLICT (lane, position, ordinal) DO NOTHING"
)
PLAIN_MANY = (
    "INSERT INTO plain (lane, position, ordinal, generation, head_position, head_ordinal, op, event_id, key, content) "
    "SELECT '0', (e ->> 'position')::bigint, 0, 0, (e ->> 'head_position')::bigint, 0, e ->> 'op', e ->> 'event_id', "
    "e ->> 'key', e -> 'content' FROM jsonb_array_elements(%s::jsonb) e ON CONFLICT (lane, position, ordinal) DO NOTHING"
)
RECORD = (
    "INSERT INTO record (lane, position, ordinal, generation, head_position, head_ordinal, op, event_id, key, "
    "payload_digest) SELECT '0', position, 0, 0, head, 0, 'insert', event_id, key, "
    "fencepost.payload_digest('insert', key, content) FROM (VALUES (%s::bigint, %s::bigint, %s, %s, %s::jsonb)) "
    "AS event (position, head, event_id, key, content) ON CONFLICT (lane, position, ordinal) DO NOTHING"
)
RECORD_MANY = (
    PLAIN_MANY.replace("INTO plain", "INTO record")
    .replace("key, content)", "key, payload_digest)")
    .replace("e -> 'content' FROM", "fencepost.payload_digest(e ->> 'op', e ->> 'key', e -> 'content') FROM")
)
KIT = "SELECT fencepost.deliver(0, '0', %s, 0, %s, 'insert', %s, %s::jsonb, %s, 0)"
KIT_MANY = "SELECT fencepost.deliver_many(0, %s::jsonb)"
STATEMENTS = {"plain": (PLAIN, PLAIN_MANY), "record": (RECORD, RECORD_MANY), "kit": (KIT, KIT_MANY)}


def run(count: int) -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        (flushes,) = connection.execute("SELECT current_setting('fsync')").fetchone() or ("",)
    print(f"\nOn a server that flushes {'each commit' if flushes == 'on' else 'nothing'} to disk")
    _compare_all(count)
    if flushes == "off":
        environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        with tempfile.TemporaryDirectory() as place:
            launcher = [sys.executable, "-m", "workers.embedded", "--data", place, "--only", "postgres", "--"]
            again = [sys.executable, "-m", "tests.benchmarks", "admission", "--rounds", str(count)]
            subprocess.run([*launcher, *again], env=environment, check=True)


def _compare_all(count: int) -> None:
    with databases("admission") as dsns:
        dsn = dsns["admission"]
        with psycopg.connect(dsn, autocommit=True) as admin:
            kit_install(admin, kit_options(options_parse(kind_get("postgresql_kit"), {"connection": "env:UNUSED"})))
            admin.execute(
                'CREATE TABLE plain (lane text COLLATE "C" NOT NULL, position bigint NOT NULL, ordinal bigint NOT NULL, '
                "entry bigint GENERATED ALWAYS AS IDENTITY, generation bigint NOT NULL, head_position bigint, "
                "head_ordinal bigint, accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(), "
                "admitted_in xid8 NOT NULL DEFAULT pg_current_xact_id(), op text NOT NULL, event_id text, key text, "
                "content jsonb, PRIMARY KEY (lane, position, ordinal))"
            )
            admin.execute(
                "CREATE TABLE record (LIKE plain INCLUDING ALL); ALTER TABLE record DROP content, ADD payload_digest bytea"
            )
        bench = _Bench(dsn, count)
        bench.compare("one event a transaction, one relay", 1, 1, 1.3)
        bench.compare("one event a transaction, eight relays", 8, 1, 1.5)
        bench.compare(f"{MANY} events a transaction, one relay", 1, MANY, 1.15)


class _Bench:
    def __init__(self, dsn: str, rounds: int) -> None:
        self.dsn, self.rounds, self.next = dsn, rounds, 0

    def compare(self, what: str, relays: int, events: int, bound: float) -> None:
        """Interleaved rounds of the same coordinates through all three, and the medians of their ratios."""
        seconds: dict[str, list[float]] = {way: [] for way in STATEMENTS}
        processor: dict[str, list[float]] = {way: [] for way in STATEMENTS}
        total = EVENTS * (5 if events > 1 else 1)
        for number in range(self.rounds + 1):
            first, self.next = self.next, self.next + total
            for way in [*STATEMENTS] if number % 2 else reversed(STATEMENTS):
                passed, used = self._round(way, first, total, relays, events)
                if number:
                    seconds[way].append(passed)
                    processor[way].append(used)
            say(f"  {what}, round {number}")
        each = statistics.median(seconds["kit"]) / total * 1e6
        print(
            f"{what:<42} {_ratio(seconds, 'plain')}, bound {bound}; to the record alone {_ratio(seconds, 'record')}; "
            f"server's processor time {_ratio(processor, 'plain')}; {each:.0f} µs an event",
            flush=True,
        )

    def _round(self, way: str, first: int, total: int, relays: int, events: int) -> tuple[float, float]:
        connections = [psycopg.connect(self.dsn, autocommit=True) for _ in range(relays)]
        share = total // relays
        work = [_calls(way, first + index * share, share, events) for index in range(relays)]
        for connection in connections:
            connection.execute("SELECT 1")
        gate = threading.Barrier(relays + 1)

        def relay(connection: psycopg.Connection, calls: list[tuple[str, tuple[object, ...]]]) -> None:
            gate.wait()
            for query, arguments in calls:
                connection.execute(sql.SQL(query), arguments, prepare=True)  # type: ignore[arg-type]

        threads = [threading.Thread(target=relay, args=pair) for pair in zip(connections, work, strict=True)]
        for thread in threads:
            thread.start()
        before = sum(_used(connection.info.backend_pid) for connection in connections)
        gate.wait()
        began = time.perf_counter()
        for thread in threads:
            thread.join()
        passed = time.perf_counter() - began
        used = sum(_used(connection.info.backend_pid) for connection in connections) - before
        for connection in connections:
            connection.close()
        return passed, used


def _ratio(taken: dict[str, list[float]], unit: str) -> str:
    ratios = [kit / limit for kit, limit in zip(taken["kit"], taken[unit], strict=True) if limit]
    if not ratios:
        return "too short to tell"  # the kernel counts processor time in hundredths of a second
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _calls(way: str, first: int, count: int, events: int) -> list[tuple[str, tuple[object, ...]]]:
    calls: list[tuple[str, tuple[object, ...]]] = []
    for low in range(first, first + count, events):
        rows = [
            (number, f"event-{number}", f"key-{number % 997}", _content(number)) for number in range(low, low + events)
        ]
        if events > 1:
            body = json.dumps(
                [
                    {
                        "position": str(number),
                        "ordinal": "0",
                        "event_id": event_id,
                        "op": "insert",
                        "key": key,
                        "head_position": str(number),
                        "head_ordinal": "0",
                        "content": json.loads(content),
                    }
                    for number, event_id, key, content in rows
                ]
            )
            calls.append((STATEMENTS[way][1], (body,)))
        else:
            number, event_id, key, content = rows[0]
            values = (
                (number, event_id, key, content, number) if way == "kit" else (number, number, event_id, key, content)
            )
            calls.append((STATEMENTS[way][0], values))
    return calls


def _content(number: int) -> str:
    return json.dumps(
        {
            "order": number,
            "customer": f"customer {number % 997}",
            "amount": number % 1000 + 0.5,
            "lines": [{"article": f"a{number % 31}", "count": number % 7 + 1, "note": "as agreed"} for _ in range(3)],
        }
    )


def _used(pid: int) -> float:
    """Processor seconds of a session of a server on this machine; 0 where it is another's."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
