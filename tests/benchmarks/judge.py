"""`judge` on a million lines a side, beside DuckDB's anti-joins over the same files: seconds, processor seconds,
and the memory of all processes.

The contents are objects of 150 bytes with a list and a text of a number; one event in 1,024 is lost, one in 10,000 doubled.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import psutil

from tests.benchmarks.measure import rounds

ROOT = Path(__file__).parents[2]
ROWS = 1_000_000
SAMPLE_SECONDS = 0.05
"""How often memory is looked at while the command runs."""


def run(rows: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _write(folder, rows)
        print(f"\njudge, {rows:,} lines a side")
        peaks: dict[str, int] = {}
        worked: dict[str, float] = {}

        def judged(kind: str) -> None:
            before = _processor_seconds()
            peaks[kind] = max(peaks.get(kind, 0), _judge(folder, kind, rows))
            worked[kind] = min(worked.get(kind, float("inf")), _processor_seconds() - before)

        rounds(
            {
                "DuckDB: two anti-joins and a count, over the JSON lines": lambda: _duckdb(folder),
                "judge, JSON lines": lambda: judged("jsonl"),
                "judge, CSV": lambda: judged("csv"),
            },
            count,
            "DuckDB: two anti-joins and a count, over the JSON lines",
        )
        for kind, peak in peaks.items():
            print(
                f"{kind}: {worked[kind]:.1f} s of processor at least, {peak >> 20} MiB at most, all processes",
                flush=True,
            )


def _write(folder: Path, rows: int) -> None:
    chance = random.Random(7)
    with (
        (folder / "history.jsonl").open("w") as history,
        (folder / "accepted.jsonl").open("w") as accepted,
        (folder / "history.csv").open("w") as history_cells,
        (folder / "accepted.csv").open("w") as accepted_cells,
    ):
        for file in (history_cells, accepted_cells):
            file.write("coordinate,op,key,value\n")
        for number in range(1, rows + 1):
            value = {
                "id": number,
                "customer": f"c{chance.randrange(10**6)}",
                "status": "placed",
                "amount": f"{chance.randrange(10**5) / 100:.2f}",
                "note": None,
                "lines": [{"sku": f"s{chance.randrange(999)}", "n": chance.randrange(9)}],
            }
            key = f"order-{number % 5000}"
            line = json.dumps({"coordinate": number, "op": "insert", "key": key, "value": value}) + "\n"
            quoted = json.dumps(value).replace('"', '""')
            row = f'{number},insert,{key},"{quoted}"\n'
            history.write(line)
            history_cells.write(row)
            for _ in range((number % 1024 != 0) + (number % 10_000 == 0)):
                accepted.write(line)
                accepted_cells.write(row)


def _judge(folder: Path, kind: str, rows: int) -> int:
    """The most memory that the command and its processes took together, in bytes."""
    command = [sys.executable, "manage.py", "judge", "--history", folder / f"history.{kind}", "--frontier", str(rows)]
    command += ["--accepted", folder / f"accepted.{kind}"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first, peak = psutil.Process(process.pid), 0
    while True:
        try:
            assert process.wait(SAMPLE_SECONDS) == 1
        except subprocess.TimeoutExpired:
            peak = max(peak, _resident(first))
        else:
            return peak


def _processor_seconds() -> float:
    """Of all processes that ended, with those that they waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident(first: psutil.Process) -> int:
    """Bytes of a process and of all that it started."""
    taken = 0
    try:
        for one in [first, *first.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):  # it ended in the meantime
                taken += one.memory_info().rss
    except psutil.Error:
        return 0
    return taken


def _duckdb(folder: Path) -> None:
    with duckdb.connect() as connection:
        for end in ("history", "accepted"):
            connection.execute(
                f"CREATE TABLE {end} AS SELECT coordinate, op, key, value::JSON::VARCHAR AS value FROM "
                f"read_json('{folder / end}.jsonl', format='newline_delimited')"
            )
        for query in (
            "SELECT coordinate FROM history ANTI JOIN accepted USING (coordinate, op, key, value)",
            "SELECT coordinate FROM accepted ANTI JOIN history USING (coordinate, op, key, value)",
            "SELECT coordinate, count(*) FROM accepted GROUP BY ALL HAVING count(*) > 1",
        ):
            connection.execute(query).fetchall()
