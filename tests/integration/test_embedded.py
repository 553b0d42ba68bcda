"""The launcher starts what is missing, hands CMD its addresses, and leaves nothing behind, however it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from workers.embedded.postgres import PostgreSQL
from workers.embedded.services import Place

PROJECT = Path(__file__).parents[2]
VARIABLES = ("DATABASE_URL", "REDIS_URL", "SPARK_REMOTE", "FENCEPOST_VAR_DIR")
TELL = f"""
import json, os, sys
print(json.dumps({{name: os.environ.get(name) for name in {VARIABLES!r}}}), flush=True)
"""
TELL_AND_WAIT = TELL + "sys.stdin.read()"
UNPRIVILEGED = 65534
BECOME = (
    *("setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"),
    # A checkout or a python in a directory that is private to root may be read, and nothing else that nobody may not.
    *(
        "--bounding-set=-all,+dac_read_search",
        "--inh-caps=-all,+dac_read_search",
        "--ambient-caps=-all,+dac_read_search",
    ),
)

pytestmark = pytest.mark.slow


def environment(**given: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**kept, **given}


def launch(*options: str, command: list[str], **given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "workers.embedded", *options, "--", *command],
        cwd=PROJECT,
        env=environment(**given),
        capture_output=True,
        text=True,
    )


@contextmanager
def launched(*options: str, program: str = TELL_AND_WAIT, **given: str) -> Iterator[tuple[Any, dict[str, str]]]:
    """A launcher whose CMD has told its addresses and now waits for the end of its input."""
    process = subprocess.Popen(
        [sys.executable, "-m", "workers.embedded", *options, "--", sys.executable, "-c", program],
        cwd=PROJECT,
        env=environment(**given),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.terminate()


def recorded(directory: Path) -> list[psutil.Process]:
    """The services of a living run and everything they started."""
    record = json.loads((directory / "run.json").read_text())
    services = [psutil.Process(process["pid"]) for process in record["processes"]]
    return [*services, *(child for service in services for child in service.children(recursive=True))]


def assert_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


@pytest.fixture
def data() -> Iterator[Path]:
    """A directory that other accounts may pass through, as `var/` in a usual checkout."""
    directory = Path(tempfile.mkdtemp(prefix="fencepost-test-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


SETTINGS = """
import os, psycopg, redis
with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    for name in ("max_prepared_transactions", "wal_level", "server_encoding", "listen_addresses", "fsync"):
        print(connection.execute("SHOW " + name).fetchone()[0])
    print(int(connection.execute("SHOW max_connections").fetchone()[0]) >= 200)
print(redis.Redis.from_url(os.environ["REDIS_URL"]).ping())
raise SystemExit(7)
"""


def test_command_runs_with_the_servers_it_needs_and_its_exit_code_is_the_launchers() -> None:
    done = launch("--temporary", "--only", "postgres,redis", command=[sys.executable, "-c", SETTINGS])
    assert done.stdout.split() == ["10", "logical", "UTF8", "127.0.0.1", "off", "True", "True"]
    assert (done.returncode, done.stderr) == (7, "")


def test_kept_data_is_there_in_the_next_run_and_reaches_the_disk(data: Path) -> None:
    def query(text: str) -> str:
        program = "import os, psycopg; connection = psycopg.connect(os.environ['DATABASE_URL'], autocommit=True); "
        program += f"print(connection.execute({text!r}).fetchone())"
        done = launch("--data", str(data), "--only", "postgres", command=[sys.executable, "-c", program])
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    query("SELECT lo_from_bytea(4711, 'kept')")
    assert query("SELECT convert_from(lo_get(4711), 'UTF8'), current_setting('fsync')") == "('kept', 'on')"


def test_u2_kept_services_come_back_to_their_ports(data: Path) -> None:
    """What a reference under `var/` says of them is right after Ctrl-C and a new start."""
    addresses = []
    for _ in range(2):
        done = launch("--data", str(data), "--only", "postgres,redis", command=[sys.executable, "-c", TELL])
        addresses.append(json.loads(done.stdout))
    assert addresses[0] == addresses[1]


def test_u2_another_port_is_taken_only_where_the_kept_one_is_not_free(data: Path) -> None:
    def address() -> str:
        done = launch("--data", str(data), "--only", "redis", command=[sys.executable, "-c", TELL])
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["REDIS_URL"])

    def port(url: str) -> int:
        return urlsplit(url).port or 0

    first = address()
    with socket.socket() as somebody:
        somebody.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        somebody.bind(("127.0.0.1", port(first)))
        somebody.listen()
        second = address()
    assert port(second) != port(first)
    assert address() == second


def test_given_addresses_are_used_and_nothing_is_started_for_them(tmp_path: Path) -> None:
    given = {"DATABASE_URL": "postgresql://db/x", "REDIS_URL": "redis://r", "SPARK_REMOTE": "sc://s"}
    done = launch("--data", str(tmp_path / "data"), command=[sys.executable, "-c", TELL], **given)
    assert json.loads(done.stdout) == {**given, "FENCEPOST_VAR_DIR": None}
    assert list((tmp_path / "data").iterdir()) == []


def test_verbose_lines_go_to_stderr_one_a_service() -> None:
    done = launch("--temporary", "--only", "redis", "-v", command=["true"])
    assert done.stdout == ""
    assert [line.split()[1] for line in done.stderr.splitlines()] == ["starting", "Redis"]


def test_u3_a_start_that_takes_its_time_says_what_it_waits_for(tmp_path: Path) -> None:
    """A java that takes its time: the launcher names what it waits for, more than once, and then what answers."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    slow = home / "bin" / "java"
    slow.write_text(
        f'#!/bin/sh\ncase "$1" in -version) echo \'openjdk version "17"\' >&2; exit 0;; esac\n'
        f"mkfifo {tmp_path}/never; read nothing < {tmp_path}/never\n"
    )
    slow.chmod(0o755)
    command = [sys.executable, "-m", "workers.embedded", "--temporary", "--only", "spark", "-v", "--", "true"]
    with subprocess.Popen(
        command, cwd=PROJECT, env=environment(JAVA_HOME=str(home)), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            assert "starting Spark" in process.stderr.readline()
            assert "still waiting for Spark" in process.stderr.readline()
            assert "still waiting for Spark" in process.stderr.readline()
        finally:
            process.terminate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_told_to_stop_the_launcher_stops_command_and_servers(data: Path, number: signal.Signals) -> None:
    with launched("--data", str(data), "--only", "postgres,redis") as (process, _):
        everything = [*recorded(data), *psutil.Process(process.pid).children()]
        process.send_signal(number)
        code = process.wait(timeout=60)
    assert_gone(everything)
    assert code in (128 + number, 1)  # python turns INT into an exception of its own
    assert not (data / "run.json").exists()


def test_killed_command_ends_the_run_with_its_signal(data: Path) -> None:
    with launched("--data", str(data), "--only", "redis") as (process, _):
        services = recorded(data)
        [command] = [child for child in psutil.Process(process.pid).children() if child not in services]
        command.kill()
        assert process.wait(timeout=60) == 128 + signal.SIGKILL
    assert_gone(services)


def test_killed_launcher_leaves_nothing_after_the_next_start(data: Path) -> None:
    with launched("--data", str(data), "--only", "postgres,redis") as (process, _):
        everything = [*recorded(data), *psutil.Process(process.pid).children()]
        process.kill()
    done = launch("--data", str(data), "--only", "postgres,redis", command=["true"])
    assert (done.returncode, done.stderr) == (0, "")
    assert_gone(everything)


def test_servers_that_outlived_their_launcher_are_stopped_by_the_next_start(data: Path) -> None:
    left = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    process = psutil.Process(left.pid)
    other = {"pid": os.getpid(), "born": psutil.Process().create_time() - 3600}  # its id was given to somebody else
    record = {"processes": [{"pid": left.pid, "born": process.create_time()}, other], "addresses": {}}
    (data / "run.json").write_text(json.dumps(record))
    assert launch("--data", str(data), "--only", "redis", command=["true"]).returncode == 0
    with left:
        assert left.wait(timeout=30) < 0


def test_killed_temporary_run_is_removed_by_the_next_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with launched("--temporary", "--only", "redis", TMPDIR=str(tmp_path)) as (process, told):
        process.kill()
    assert Path(told["FENCEPOST_VAR_DIR"]).exists()
    assert launch("--temporary", "--only", "redis", command=["true"], TMPDIR=str(tmp_path)).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_what_the_command_left_running_is_ended() -> None:
    program = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'input()'], "
    program += "stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True).pid); import os; os._exit(0)"
    program = program.replace("'input()'", "'import signal; signal.pause()'")
    done = launch("--temporary", "--only", "redis", command=[sys.executable, "-c", program])
    assert done.returncode == 0
    assert not psutil.pid_exists(int(done.stdout))


def test_second_run_of_a_directory_shares_the_first_ones_servers(data: Path) -> None:
    with launched("--data", str(data), "--only", "redis") as (_, told):
        shared = launch("--data", str(data), "--only", "redis", command=[sys.executable, "-c", TELL])
        missing = launch("--data", str(data), "--only", "redis,postgres", command=["true"])
        still_there = recorded(data)
        assert json.loads(shared.stdout) == told
        assert all(service.is_running() for service in still_there)
    assert missing.returncode == 3
    assert "was started without postgres" in missing.stderr
    assert_gone(still_there)


def test_unprivileged_account_can_start_everything_itself() -> None:
    if os.geteuid() != 0:
        pytest.skip("this run is not root's, so every other test here shows it already")
    with tempfile.TemporaryDirectory() as home:
        shutil.chown(home, UNPRIVILEGED, UNPRIVILEGED)
        command = [sys.executable, "-B", "-m", "workers.embedded", "--temporary", "--only", "postgres,redis", "--"]
        done = subprocess.run(
            [*BECOME, *command, sys.executable, "-c", "import os; print(os.geteuid())"],
            cwd=PROJECT,
            env=environment(TMPDIR=home, HOME=home),
            capture_output=True,
            text=True,
        )
    assert (done.stdout.strip(), done.returncode) == (str(UNPRIVILEGED), 0), done.stderr


def test_root_can_run_it_from_a_private_directory(tmp_path: Path) -> None:
    """PostgreSQL, which does not run as root, gets a place that its account can reach."""
    tmp_path.chmod(0o700)
    program = "import os, psycopg; psycopg.connect(os.environ['DATABASE_URL'])"
    done = launch("--temporary", "--only", "postgres", command=[sys.executable, "-c", program], TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_a_private_directory_made_anew_starts_without_what_an_earlier_one_of_its_name_left(tmp_path: Path) -> None:
    """`make clean` removes the directory and its password; what lay elsewhere for root's sake goes with them."""
    tmp_path.chmod(0o700)
    data = tmp_path / "var"
    program = "import os, psycopg; psycopg.connect(os.environ['DATABASE_URL']).execute('CREATE TABLE kept ()')"
    for _ in range(2):
        done = launch("--data", str(data), "--only", "postgres", command=[sys.executable, "-c", program])
        assert (done.returncode, done.stderr) == (0, "")
        shutil.rmtree(data)
    PostgreSQL(Place(data, is_temporary=False)).discard()


@pytest.mark.parametrize(
    ("version", "says"),
    [
        (None, "there is none on PATH"),
        ('openjdk version "11.0.22" 2024-01-16', "is Java 11"),
        ('java version "1.8.0_402"', "is Java 8"),
        ("no such thing", "tells no version"),
    ],
)
def test_missing_or_old_java_is_one_line_before_anything_starts(tmp_path: Path, version: str | None, says: str) -> None:
    path = tmp_path / "bin"
    path.mkdir()
    if version:
        (path / "java").write_text(f"#!/bin/sh\necho '{version}' >&2\n")
        (path / "java").chmod(0o755)
    done = launch("--data", str(tmp_path / "data"), command=["true"], PATH=str(path), JAVA_HOME="")
    [line] = done.stderr.splitlines()
    assert done.returncode == 3
    assert says in line
    assert "Install a Java 17 runtime or newer" in line
    assert not (tmp_path / "data" / "postgres").exists()


def test_java_home_without_java_is_named(tmp_path: Path) -> None:
    done = launch("--temporary", command=["true"], JAVA_HOME=str(tmp_path))
    assert done.returncode == 3
    assert f"JAVA_HOME={tmp_path} holds none" in done.stderr


@pytest.mark.parametrize(
    ("options", "code"),
    [(["--only", "kafka", "--", "true"], 2), (["--"], 2), (["--temporary", "--", "./nothing"], 127)],
)
def test_calls_that_cannot_be_used_say_so(options: list[str], code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "workers.embedded", *options],
        cwd=PROJECT,
        env=environment(DATABASE_URL="x", REDIS_URL="x", SPARK_REMOTE="x"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == code
    assert done.stderr


def test_run_that_follows_an_ending_one_starts_its_own_servers(data: Path) -> None:
    """A second launcher that finds the first one stopping waits for its end and does not join it."""
    program = "import os, redis; print(redis.Redis.from_url(os.environ['REDIS_URL']).info()['process_id'])"
    with launched("--data", str(data), "--only", "redis") as (first, _):
        firsts = [process.pid for process in recorded(data)]
        ending = json.loads((data / "run.json").read_text()) | {"addresses": {}}
        (data / "run.json").write_text(json.dumps(ending))
        second = subprocess.Popen(
            [
                *(sys.executable, "-m", "workers.embedded", "--data", str(data), "--only", "redis"),
                *("--", sys.executable, "-c", program),
            ],
            cwd=PROJECT,
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        first.terminate()
        first.wait(timeout=60)
        own = int(second.communicate(timeout=120)[0])
    assert second.returncode == 0
    assert own not in firsts
