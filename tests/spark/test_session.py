"""One session a process; a predecessor's job is found and ended; a server that is away is said within seconds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recovery_api.domain.errors import AccessDenied, BadInput, EngineUnavailable, Refused, SnapshotLost, Unsuitable
from workers.connectors.progress import progress_heard
from workers.spark.session import (
    engine_errors_mapped,
    error_row,
    error_rows_raise,
    job_interrupt,
    job_tagged,
    remote_address,
    session_drop,
    session_get,
    session_id_make,
    session_of,
    tag_make,
)

PROJECT = Path(__file__).parents[2]

pytestmark = pytest.mark.spark


def run_elsewhere(program: str) -> str:
    """What another process, with a session of its own, prints."""
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_process_keeps_one_session_until_it_drops_it(spark: Any) -> None:
    assert session_get() is spark
    assert session_get(session_of(spark)) is spark


def test_forked_child_makes_its_own_session(spark: Any) -> None:
    program = """
import os
from workers.spark.session import session_get, session_of
parent = session_get()
read, write = os.pipe()
if os.fork() == 0:
    session = session_get()
    os.write(write, f"{session.range(3).count()} {session_of(session) != session_of(parent)}".encode())
    os._exit(0)
print(os.read(read, 100).decode(), parent.range(4).count())
os.wait()
"""
    assert run_elsewhere(program) == "3 True 4"


def test_successor_interrupts_what_a_predecessor_left_running(spark: Any, tmp_path: Path) -> None:
    tag, started = tag_make("read"), tmp_path / "started"
    os.mkfifo(started)
    errors: list[BaseException] = []

    def hold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import threading

        with started.open("w"):
            pass
        threading.Event().wait()  # nothing but an interrupt ends this
        yield from batches

    def run_tagged() -> None:
        try:
            with job_tagged(spark, tag), engine_errors_mapped():
                spark.range(1, numPartitions=1).mapInArrow(hold, "id long").count()
        except BaseException as error:  # whatever it is, the test's own thread looks at it
            errors.append(error)

    predecessor = threading.Thread(target=run_tagged)
    predecessor.start()
    with started.open():
        pass
    ended = run_elsewhere(
        "from workers.spark.session import job_interrupt; "
        f"print(len(job_interrupt({session_of(spark)!r}, 'another')), len(job_interrupt({session_of(spark)!r}, {tag!r})))"
    )
    predecessor.join(timeout=60)
    assert ended == "0 1"
    assert [type(error) for error in errors] == [Refused]
    assert spark.range(5).count() == 5, "the session itself goes on"


def test_session_of_a_dead_client_can_be_attached_to_and_stays_when_it_is_let_go(spark: Any) -> None:
    program = "from workers.spark.session import session_get; s = session_get({!r}); print(s.range(3).count())"
    assert run_elsewhere(program.format(session_of(spark))) == "3"
    assert spark.range(6).count() == 6


def test_interrupting_in_a_session_that_never_was_ends_nothing(spark: Any) -> None:
    assert job_interrupt(session_id_make(), "tag") == []


@pytest.fixture
def remote(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """SPARK_REMOTE may be changed; this process's session comes back afterwards."""
    kept = session_of(spark)
    import workers.spark.session as module

    saved = module._sessions.copy()
    module._sessions.clear()
    yield monkeypatch
    session_drop()
    module._sessions.update(saved)
    assert session_of(session_get()) == kept


def test_server_that_is_away_is_unavailable(remote: pytest.MonkeyPatch) -> None:
    remote.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    with pytest.raises(EngineUnavailable, match="Spark does not answer: failed to connect"):
        session_get()
    with pytest.raises(EngineUnavailable):
        job_interrupt(session_id_make(), "tag")


def test_server_refuses_who_does_not_know_its_token(remote: pytest.MonkeyPatch) -> None:
    remote.delenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", raising=False)
    remote.setenv("SPARK_REMOTE", os.environ["SPARK_REMOTE"].partition(";")[0])
    with pytest.raises(AccessDenied, match="token"):
        session_get()


@pytest.mark.parametrize("address", ["", "http://spark:15002"])
def test_address_that_cannot_be_used_is_named(remote: pytest.MonkeyPatch, address: str) -> None:
    remote.setenv("SPARK_REMOTE", address)
    with pytest.raises(BadInput, match="SPARK_REMOTE"):
        session_get()


def test_address_keeps_what_was_given_and_names_our_session() -> None:
    assert remote_address("sc://h:1", "s") == "sc://h:1/;user_id=fencepost;session_id=s"
    given = "sc://h:1/;token=t;use_ssl=true;user_id=me;session_id=old"
    assert remote_address(given, "s") == "sc://h:1/;token=t;use_ssl=true;user_id=fencepost;session_id=s"


def test_error_rows_of_tasks_become_the_error_they_were(spark: Any) -> None:
    error_rows_raise([])
    rows = [error_row(SnapshotLost("db", "gone")), error_row(Unsuitable("orders.id", "is a float", "Use bigint."))]
    with pytest.raises(Unsuitable, match=r"orders\.id: is a float"):
        error_rows_raise(rows)


def test_l1_a_jobs_ended_task_is_progress_and_an_idle_session_is_none(spark_remote: str) -> None:
    beats: list[int] = []
    session = session_get()
    with progress_heard(lambda: beats.append(1)):
        assert not beats
        assert session.range(0, 8, 1, 4).selectExpr("sum(id) AS total").collect()[0].total == 28
        assert beats
        heard = len(beats)
        session.version  # noqa: B018  an answer of the server is no progress of a job
        assert len(beats) == heard
