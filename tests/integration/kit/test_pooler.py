"""The whole protocol through a real PgBouncer in transaction mode, where every transaction may meet another session."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.contract.sink_engines import batch_make
from tests.integration.kit.kit_world import PASSWORD, KitWorld
from tests.integration.postgresql.mapped_tables import Bench
from tests.programs import program_missing
from workers.embedded.processes import wait_until
from workers.embedded.services import port_free

PGBOUNCER = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
START_SECONDS = 20.0


CONFIGURATION = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = plain
auth_file = {users}
pool_mode = transaction
default_pool_size = 2
ignore_startup_parameters = extra_float_digits
"""


def pooled(dsn: str, port: int) -> str:
    return make_conninfo(dsn, host="127.0.0.1", port=port)


@pytest.fixture
def pooler(world: KitWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a PgBouncer before the run's PostgreSQL."""
    if PGBOUNCER is None:
        program_missing("PgBouncer is missing: apt install pgbouncer")
    folder = tmp_path_factory.mktemp("pgbouncer")
    server = conninfo_to_dict(world.dsn)
    listen = port_free()
    logins = [conninfo_to_dict(login) for login in (world.relay, world.recoverer, world.auditor)]
    users = {str(server["user"]): str(server.get("password") or "")}
    users |= {str(login["user"]): PASSWORD for login in logins}
    (folder / "users").write_text("".join(f'"{name}" "{secret}"\n' for name, secret in users.items()))
    configuration = CONFIGURATION.format(
        host=server["host"], port=server["port"], listen=listen, users=folder / "users"
    )
    (folder / "pgbouncer.ini").write_text(configuration)
    is_root = os.geteuid() == 0  # it refuses to run as root
    if is_root:
        for path in [folder, *folder.iterdir()]:
            os.chown(path, 65534, 65534)
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [str(PGBOUNCER), str(_reachable(folder) / "pgbouncer.ini")],
        stdout=log,
        stderr=log,
        **({"user": 65534, "group": 65534, "extra_groups": []} if is_root else {}),
    )
    try:
        assert wait_until(lambda: process.poll() is not None or _answers(pooled(world.dsn, listen)), START_SECONDS)
        assert process.poll() is None, (folder / "log").read_text()
        yield listen
    finally:
        process.terminate()
        process.wait()
        log.close()


def _reachable(folder: Path) -> Path:
    """The folder, with every folder above it open to pass through: pytest's own are closed to others."""
    for parent in folder.parents:
        if parent.stat().st_uid == os.geteuid() and parent.name.startswith(("pytest-", "popen-")):
            parent.chmod(0o711)
    return folder


def _answers(dsn: str) -> bool:
    try:
        with psycopg.connect(dsn, connect_timeout=2):
            return True
    except psycopg.OperationalError:
        return False


def test_the_protocol_holds_behind_a_pooler_in_transaction_mode(world: KitWorld, pooler: int, tmp_path: Path) -> None:
    """RC-41: no step rests on a session; a second recoverer is refused, and nothing is held when all is done."""
    relay = world.connect(pooled(world.relay, pooler))
    relay.prepare_threshold = None
    generation = world.relay_start(relay)
    assert world.deliver(relay, generation, 1) == "accepted"
    direct = world.sink
    world.sink = world.sink_as(pooled(world.recoverer, pooler), tmp_path)
    claimed, arm = world.staged(2, 3)
    assert world.deliver(relay, generation, 2) == "fenced"
    newer = int(world.sink.generation_allocate("recoverer", "another").data["generation"])
    assert world.sink.claim(newer, {}).word == "granted"
    assert world.sink.fire(claimed, arm).word == "fenced"
    assert world.record() == [(1, generation)]
    armed = world.arm(newer, batch_make(2, 3))
    world.sink.stage(newer, armed, iter([batch_make(2, 3)]))
    assert world.sink.fire(newer, armed).word == "landed"
    assert world.record() == [(1, generation), (2, newer), (3, newer)]
    held = (
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE d.datname = current_database() "
    )
    kits = "AND l.relation = ANY (ARRAY[%s, %s]::regclass[]::oid[])"
    tables = [f'"{world.schema}".{name}' for name in ("lock", "counter")]
    assert world.one(world.admin, held + kits, *tables) == 0
    assert direct.state().fence == newer


def test_a_pooler_in_between_is_named_by_the_connection_test(world: KitWorld, pooler: int, tmp_path: Path) -> None:
    """RC-41."""
    behind = world.sink_as(pooled(world.recoverer, pooler), tmp_path)
    report = behind.test()
    assert report.is_usable, report.problems
    assert any("pooler" in weakness for weakness in report.weaknesses)
    direct = world.sink_as(world.recoverer, tmp_path).test()
    assert not any("pooler" in weakness for weakness in direct.weaknesses)


def test_a_source_behind_a_pooler_is_named_and_reads_the_same(world: KitWorld, pooler: int, tmp_path: Path) -> None:
    world.admin.execute("CREATE TABLE IF NOT EXISTS behind (id bigint PRIMARY KEY)")
    world.admin.execute("INSERT INTO behind SELECT generate_series(1, 5000)")
    bench = Bench(world.dsn, tmp_path)
    try:
        source = bench.source(table="behind", dsn=pooled(world.dsn, pooler))
        assert any("pooler" in weakness for weakness in source.test().weaknesses)
        with source.hold_snapshot() as reading:
            world.admin.execute("INSERT INTO behind SELECT generate_series(5001, 6000)")
            ranges = source.split(reading, "0", 2)
            rows = [row for range_ in ranges for row in _rows(source, reading, range_)]
        assert rows == list(range(1, 5001))
    finally:
        bench.close()
        world.admin.execute("DROP TABLE behind")


def _rows(source: object, reading: object, range_: object) -> list[int]:
    from workers.connectors.readings import Width

    batches = source.read_history(reading, range_, Width.COORDINATE)  # type: ignore[attr-defined]
    return [position for batch in batches for position in batch.column("position").to_pylist()]
