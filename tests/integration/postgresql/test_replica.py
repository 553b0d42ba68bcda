"""RC-06: the source is a real streaming replica that lags. What it has not replayed is unknown, and nothing is OK."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from recovery_api.domain.coordinates import Coordinate
from tests.integration.postgresql.mapped_tables import Bench, history, lane, spelled
from tests.pins import pin
from workers.connectors.readings import Width
from workers.embedded.postgres import PostgreSQL
from workers.embedded.services import Place
from workers.evidence.ranges import EndSpec
from workers.evidence.read import AuditRequest, evidence_read
from workers.recovery.verdicts import findings_page, lane_verdicts
from workers.spark.tasks import InProcess

pytestmark = pytest.mark.slow

AT_LEAST_THE_PRIMARYS = ("max_connections", "max_prepared_transactions", "max_worker_processes", "max_wal_senders")


class Replica:
    """A streaming replica of the bench's cluster, and the two wishes one has of it."""

    def __init__(self, dsn: str, primary: psycopg.Connection[Any]) -> None:
        self.dsn, self.primary = dsn, primary
        self.run = psycopg.connect(dsn, autocommit=True)

    def replay_up_to_now(self) -> None:
        row = self.primary.execute("SELECT pg_switch_wal(), pg_current_wal_lsn()").fetchone()
        assert row is not None
        self._until("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", row[1])

    def pause(self) -> None:
        self.run.execute("SELECT pg_wal_replay_pause()")
        self._until("SELECT pg_get_wal_replay_pause_state() = 'paused'")

    def _until(self, question: str, *parameters: Any) -> None:
        for _ in range(600):
            if self.run.execute(question, parameters).fetchone() == (True,):
                return
            self.run.execute("SELECT pg_sleep(0.05)")
        raise AssertionError(f"the replica never came to: {question}")


@pytest.fixture
def replica(bench: Bench, database_factory: Any) -> Iterator[Replica]:
    home = Path(tempfile.mkdtemp(prefix="fencepost-replica-"))
    home.chmod(0o755)
    server = PostgreSQL(Place(home, is_temporary=True))
    server.prepare()
    shutil.rmtree(server.data)
    user = server.account.uid if server.account else None
    group = server.account.gid if server.account else None

    def call(name: str, *options: str) -> None:
        subprocess.run(
            [os.fspath(server.binaries / name), *options],
            check=True,
            user=user,
            group=group,
            extra_groups=[] if user is not None else None,
            cwd=server.home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "port": str(port), "fsync": "off"}
    for name in AT_LEAST_THE_PRIMARYS:
        (settings[name],) = bench.run.execute(f"SHOW {name}").fetchone() or ("",)
    options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
    data = os.fspath(server.data)
    call("pg_basebackup", "-D", data, "-d", bench.dsn, "-X", "stream", "-R", "-c", "fast", "--no-sync")
    try:
        call("pg_ctl", "-D", data, "-w", "-l", os.fspath(server.home / "log"), "-o", options, "start")
        replica = Replica(make_conninfo(bench.dsn, host="127.0.0.1", port=port), bench.run)
        yield replica
        replica.run.close()
    finally:
        call("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
        server.discard()
        shutil.rmtree(home, ignore_errors=True)


def test_a_lagging_replica_bounds_the_verdict_and_is_never_ok(bench: Bench, replica: Replica) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY (START 51) PRIMARY KEY)")
    bench.run.execute(
        "CREATE TABLE by_transaction (tx xid8 NOT NULL DEFAULT pg_current_xact_id(), id bigint NOT NULL,"
        " PRIMARY KEY (tx, id))"
    )
    bench.run.execute("CREATE TABLE accepted (id bigint, content jsonb)")
    bench.run.execute("INSERT INTO outbox DEFAULT VALUES")  # 51
    bench.run.execute("INSERT INTO by_transaction (id) VALUES (51)")
    fifty_two = bench.session()
    fifty_two.execute("INSERT INTO outbox DEFAULT VALUES")
    fifty_two.execute("INSERT INTO by_transaction (id) VALUES (52)")
    bench.run.execute("INSERT INTO outbox DEFAULT VALUES")  # 53
    bench.run.execute("INSERT INTO by_transaction (id) VALUES (53)")
    replica.replay_up_to_now()
    replica.pause()
    replayed = replica.run.execute("SELECT pg_last_wal_replay_lsn()::text").fetchone()
    fifty_two.commit()
    bench.run.execute("INSERT INTO outbox DEFAULT VALUES")  # 54
    assert replayed is not None

    source = bench.source(dsn=replica.dsn, share_lock=True)
    report = source.test()
    assert report.facts["is_replica"] and report.facts["replayed"] == replayed[0]
    assert any("Register the primary" in weakness for weakness in report.weaknesses)
    pinned = pin(source)
    assert lane(pinned).head == Coordinate(53)
    assert lane(pinned).safe.coordinate is None and lane(pinned).safe.waits_for
    assert lane(pinned).safe.ground == "replica replay" and replayed[0] in lane(pinned).safe.says
    assert not pinned.is_complete and replayed[0] in pinned.identity
    assert spelled(source, history(source)) == ["51", "53"]
    with source.hold_snapshot() as held:
        assert not held.is_complete and lane(held).safe.coordinate is None

    ordered = bench.source("by_transaction", ["tx", "id"], dsn=replica.dsn, coordinate_spelling="xid8_bigint")
    bounded = pin(ordered)
    seen = history(ordered)
    assert [row["ordinal"] for row in seen] == [51, 53]
    first = Coordinate(seen[0]["position"], seen[0]["ordinal"])
    assert first <= lane(bounded).safe.coordinate < lane(bounded).head
    assert not bounded.is_complete, "an entry accepted since may be here only later, and is not premature"

    sink = bench.sink(dsn=replica.dsn, content="content")
    assert not sink.capability().is_record_complete
    with sink.hold_snapshot() as record:
        assert not record.is_complete and any("replica" in weakness for weakness in record.weaknesses)

    primary = bench.source()
    assert lane(pin(primary)).safe.coordinate == Coordinate(54)
    assert spelled(primary, history(primary)) == ["51", "52", "53", "54"]


@pytest.mark.parametrize("coordinate", [["id"], ["tx", "id"]], ids=["number", "transaction id"])
def test_what_was_accepted_beyond_the_replay_is_unknown_and_not_premature(
    bench: Bench, replica: Replica, tmp_path: Path, coordinate: list[str]
) -> None:
    """RC-06: 51 and 53 are replayed and 52 is not; the sink shows 54, too: unknown, exit 3, nothing premature or lost."""
    spelling = "bigint" if coordinate == ["id"] else "xid8_bigint"
    bench.run.execute(
        "CREATE TABLE outbox (tx xid8 NOT NULL DEFAULT pg_current_xact_id(),"
        " id bigint GENERATED ALWAYS AS IDENTITY (START 51), PRIMARY KEY (tx, id), UNIQUE (id))"
    )
    bench.run.execute("INSERT INTO outbox DEFAULT VALUES")  # 51
    fifty_two = bench.session()
    fifty_two.execute("INSERT INTO outbox DEFAULT VALUES")
    bench.run.execute("INSERT INTO outbox DEFAULT VALUES")  # 53
    replica.replay_up_to_now()
    replica.pause()
    fifty_two.commit()
    bench.run.execute("INSERT INTO outbox DEFAULT VALUES")  # 54
    bench.run.execute("CREATE TABLE accepted AS SELECT tx, id, NULL::jsonb AS content FROM outbox WHERE id <> 52")

    ends = [
        EndSpec(connector.kind, connector.options)
        for connector in (
            bench.source(coordinate=coordinate, coordinate_spelling=spelling, dsn=replica.dsn),
            bench.sink(coordinate=coordinate, coordinate_spelling=spelling, content="content"),
        )
    ]
    request = AuditRequest(*ends, evidence=str(tmp_path / "evidence"), width=Width.PAYLOAD)
    with evidence_read(InProcess(), request, lambda **_: None) as found:
        verdict = lane_verdicts(found)["0"]
        page = findings_page(found)
    assert (verdict.status.value, verdict.exit_code) == ("unknown", 3)
    assert (verdict.counts.premature, verdict.counts.duplicate_payloads, verdict.counts.lost) == (0, 0, 0)
    assert [row["finding"] for row in page] == ["unknown"]
    assert page[0]["coordinate"].rpartition(":")[2] == "54"
    assert any("replica" in reason for reason in verdict.unknown_because)
    assert verdict.is_hazard_free is None
