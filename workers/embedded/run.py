"""One run: lock the directory, clean what a killed run left, start what is missing, run CMD, stop everything.

The lock is held by the launcher alone and goes with it. A directory whose lock is held by a living run is shared: CMD
gets that run's addresses, stops nothing, and loses its servers when that run ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from workers.embedded.ports import port_choose, port_keep
from workers.embedded.postgres import PostgreSQL
from workers.embedded.processes import (
    POLL_SECONDS,
    birth_of,
    children_stop,
    group_stop,
    is_same_process,
    orphans_adopt,
    orphans_reap,
    process_spawn,
    wait_until,
)
from workers.embedded.redis import Redis
from workers.embedded.services import Place, Service, StartFailed, file_private
from workers.embedded.spark import PROJECT, Spark
from workers.spark.shipping import OWN_ENGINE

SERVICES: dict[str, type[Spark] | type[Redis] | type[PostgreSQL]] = {
    "spark": Spark,
    "redis": Redis,
    "postgres": PostgreSQL,
}
"""The slowest start first."""
PREFIX = "fencepost-run-"
ATTEMPTS = 3
COMMAND_GRACE_SECONDS = 20.0
SAY_SECONDS = 5.0
"""How often a start that takes its time says what it still waits for."""


class Stopped(Exception):
    """The launcher was told to stop before CMD ran. The signal's number is the argument."""


@dataclass
class Run:
    """`told` is the signal that was asked of the launcher; every wait of the launcher looks at it."""

    place: Place
    is_verbose: bool
    told: signal.Signals | None = None
    command: subprocess.Popen[bytes] | None = None
    started: list[tuple[Service, subprocess.Popen[bytes], int]] = field(default_factory=list)

    def say(self, text: str) -> None:
        if self.is_verbose:
            print(f"embedded: {text}", file=sys.stderr, flush=True)


def run_command(names: Sequence[str], directory: Path | None, command: Sequence[str], is_verbose: bool) -> int:
    """CMD's exit code (128 + n where signal n ended it), with the services of `names` the environment lacks.

    `directory` None: a temporary one. Raises: StartFailed; OSError where CMD cannot be run.
    """
    wanted = [name for name in SERVICES if name in names and not os.environ.get(SERVICES[name].variable)]
    os.environ.setdefault("FENCEPOST_REFERENCE_FOLDERS", _reference_folders(is_temporary=directory is None))
    if directory is None:  # wherever tests put theirs
        os.environ.setdefault("FENCEPOST_ARCHIVE_FOLDERS", tempfile.gettempdir())
    with _place_open(directory) as place:
        run = Run(place, is_verbose)
        with _signals_heard(run):
            try:
                return _run(run, wanted, command)
            except Stopped as stopped:
                return 128 + int(stopped.args[0])


def _reference_folders(is_temporary: bool) -> str:
    """Where CMD and the services may read credentials of ends (workers.connectors.credentials): where the demo puts
    its own, beside the usual one; in a temporary run wherever tests put theirs."""
    var = Path(os.environ.get("FENCEPOST_VAR_DIR") or PROJECT / "var").absolute()
    own = tempfile.gettempdir() if is_temporary else str(var / "demo" / "credentials")
    return os.pathsep.join(["/run/secrets", own])


def _run(run: Run, wanted: Sequence[str], command: Sequence[str]) -> int:
    if not wanted:
        return _command_wait(run, command, {})
    while True:
        with _lock_taken(run.place) as is_ours:
            if is_ours:
                return _run_own(run, wanted, command)
            if addresses := _addresses_shared(run, wanted):
                return _command_wait(run, command, addresses)


def _run_own(run: Run, wanted: Sequence[str], command: Sequence[str]) -> int:
    services = [SERVICES[name](run.place) for name in wanted]
    for service in services:
        service.check()
    stale_stop(run.place.directory)
    orphans_adopt()
    try:
        addresses = _services_start(run, services)
        _record_write(run, addresses)
        return _command_wait(run, command, addresses)
    finally:
        _record_write(run, {})  # nobody joins a run that ends
        _services_stop(run)
        (run.place.directory / "run.json").unlink(missing_ok=True)
        if run.place.is_temporary:
            for service in services:
                service.discard()


def _services_start(run: Run, services: Sequence[Service]) -> dict[str, str]:
    """The addresses, when all answer. They start side by side."""
    began = time.monotonic()
    said_at = began
    attempts = dict.fromkeys((service.name for service in services), 1)
    waiting = {}
    run.say(f"starting {', '.join(service.name for service in services)} …")
    for service in services:
        service.prepare()
        waiting[service.name] = _service_spawn(run, service, is_again=False)
    addresses: dict[str, str] = {}
    while waiting:
        for service in [service for service in services if service.name in waiting]:
            process, port, deadline = waiting[service.name]
            _stop_when_told(run)
            if process.poll() is not None:
                if attempts[service.name] == ATTEMPTS:
                    raise StartFailed(f"{service.name} ended while starting; see {service.log}. {_log_tail(service)}")
                attempts[service.name] += 1
                waiting[service.name] = _service_spawn(run, service, is_again=True)
            elif service.is_ready(port):
                service.finish(port)
                addresses[service.variable] = service.url(port)
                del waiting[service.name]
                port_keep(run.place, service.name, port)
                run.say(f"{service.name} answers on port {port} after {time.monotonic() - began:.1f} s ({service.log})")
            elif time.monotonic() > deadline:
                raise StartFailed(f"{service.name} did not answer in time; see {service.log}. {_log_tail(service)}")
        if waiting and time.monotonic() - said_at > SAY_SECONDS:
            said_at = time.monotonic()
            run.say(f"still waiting for {', '.join(waiting)}, {said_at - began:.0f} s so far")
        time.sleep(POLL_SECONDS)
    return addresses


def _service_spawn(run: Run, service: Service, *, is_again: bool) -> tuple[subprocess.Popen[bytes], int, float]:
    """`is_again`: it has just ended while starting, perhaps because somebody else got its port."""
    _stop_when_told(run)
    port = port_choose(run.place, service.name, is_again=is_again)
    process = process_spawn(
        service.command(port),
        env=service.environment(),
        directory=service.working_directory,
        log=service.log,
        account=service.account,
        stop_signal=service.stop_signal,
    )
    run.started.append((service, process, port))
    _record_write(run, {})
    return process, port, time.monotonic() + service.ready_seconds


def _services_stop(run: Run) -> None:
    living = [(service, process) for service, process, _ in run.started if process.poll() is None]
    with ThreadPoolExecutor(max(1, len(living))) as pool:
        list(pool.map(lambda it: group_stop(it[1].pid, it[0].stop_signal, it[0].stop_seconds), living))
    for _, process in living:
        process.wait()
    children_stop(grace_seconds=3)


def _command_wait(run: Run, command: Sequence[str], addresses: Mapping[str, str]) -> int:
    """CMD's exit code. A signal to the launcher is CMD's too, and CMD is killed where it does not end in time."""
    _stop_when_told(run)
    run.command = process_spawn(command, env=_command_environment(run, addresses), is_service=False)
    deadline = None
    while (code := run.command.poll()) is None:
        if run.told and deadline is None:
            deadline = time.monotonic() + COMMAND_GRACE_SECONDS
        if deadline and time.monotonic() > deadline:
            run.command.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.command.wait(timeout=0.5)
        orphans_reap([run.command, *(process for _, process, _ in run.started)])
    for service, process, _ in run.started:
        if process.poll() is not None:
            print(f"embedded: {service.name} had ended before CMD did; see {service.log}", file=sys.stderr)
    return 128 - code if code < 0 else code


def _command_environment(run: Run, addresses: Mapping[str, str]) -> dict[str, str]:
    env = {**os.environ, **addresses}
    if own := addresses.get("SPARK_REMOTE"):
        env[OWN_ENGINE] = own
    if run.place.is_temporary:
        env.setdefault("FENCEPOST_VAR_DIR", str(run.place.directory))
    for name in ("no_proxy", "NO_PROXY"):  # gRPC would send loopback to a proxy too
        env[name] = ",".join([*filter(None, [env.get(name)]), "127.0.0.1", "localhost"])
    return env


@contextlib.contextmanager
def _signals_heard(run: Run) -> Iterator[None]:
    """TERM, HUP and INT stop the run. A terminal sends INT to CMD by itself, and CMD decides what it means."""

    def hear(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and run.command is not None and _has_terminal():
            return
        run.told = signal.Signals(number)
        if run.command is not None and run.command.returncode is None:
            run.command.send_signal(number)

    before = {number: signal.signal(number, hear) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_terminal() -> bool:
    with contextlib.suppress(OSError), Path("/dev/tty").open() as terminal:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return False


def _stop_when_told(run: Run) -> None:
    if run.told:
        raise Stopped(run.told)


@contextlib.contextmanager
def _place_open(directory: Path | None) -> Iterator[Place]:
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        yield Place(directory.absolute(), is_temporary=False)
        return
    temporary_clean()
    made = Path(tempfile.mkdtemp(prefix=PREFIX))
    made.chmod(0o711)  # a service under another account passes through; what is inside stays closed
    try:
        yield Place(made, is_temporary=True)
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def _lock_taken(place: Place) -> Iterator[bool]:
    """Whether the lock is ours. The file appears locked, so a new directory never looks abandoned."""
    path = place.directory / "lock"
    if not path.exists():
        new = Path(tempfile.mkdtemp(dir=place.directory)) / "lock"
        with new.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with contextlib.suppress(FileExistsError):
                os.link(new, path)
            shutil.rmtree(new.parent)
            if path.exists() and path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                yield True
                return
    with path.open("a") as file:
        yield _lock_try(file)


def _lock_try(file: Any) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _addresses_shared(run: Run, wanted: Sequence[str]) -> dict[str, str]:
    """What the living run of this directory has started, as soon as all of it answers. Empty: it has ended meanwhile."""
    record = run.place.directory / "run.json"

    def addresses() -> dict[str, str]:
        with contextlib.suppress(FileNotFoundError, ValueError):
            return dict(json.loads(record.read_text())["addresses"])
        return {}

    def is_over() -> bool:
        with (run.place.directory / "lock").open("a") as file:
            return _lock_try(file)

    if not wait_until(lambda: bool(run.told or addresses() or is_over()), timeout_seconds=400):
        raise StartFailed(f"Another run holds {run.place.directory} and does not get ready: end it, or use --data.")
    _stop_when_told(run)
    if not (found := addresses()):
        return {}
    if missing := [name for name in wanted if SERVICES[name].variable not in found]:
        raise StartFailed(
            f"The run that holds {run.place.directory} was started without {', '.join(missing)}: end it, or use --data."
        )
    run.say(f"uses the services of the run that holds {run.place.directory}")
    return found


def _record_write(run: Run, addresses: Mapping[str, str]) -> None:
    """Who was started, and, once all answer, where. Readable by its owner only: the addresses hold passwords."""
    processes = [
        {"name": service.name, "pid": process.pid, "born": born}
        for service, process, _ in run.started
        if (born := birth_of(process.pid)) is not None
    ]
    path = run.place.directory / "run.json"
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with file_private(new) as file:
        json.dump({"launcher": os.getpid(), "processes": processes, "addresses": dict(addresses)}, file)
    new.replace(path)


def stale_stop(directory: Path) -> None:
    """Ends what a killed run of this directory left. The caller holds the directory's lock."""
    with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
        for process in json.loads((directory / "run.json").read_text())["processes"]:
            if is_same_process(process["pid"], process["born"]):
                group_stop(process["pid"], signal.SIGTERM, grace_seconds=2)
    (directory / "run.json").unlink(missing_ok=True)


def temporary_clean() -> None:
    """Ends and removes the temporary runs of this user whose launcher was killed."""
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if directory.is_symlink() or directory.stat().st_uid != os.geteuid():
                continue
            with (directory / "lock").open("r+") as file:
                if _lock_try(file):
                    stale_stop(directory)
                    for service in SERVICES.values():
                        service(Place(directory, is_temporary=True)).discard()
                    shutil.rmtree(directory, ignore_errors=True)


def _log_tail(service: Service) -> str:
    with contextlib.suppress(OSError):
        lines = service.log.read_text(errors="replace").splitlines()
        return "Its last line: " + (lines[-1] if lines else "none")
    return ""


__all__ = ["PROJECT", "SERVICES", "StartFailed", "run_command", "stale_stop", "temporary_clean"]
