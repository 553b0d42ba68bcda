"""What a service of an embedded run is: files, a command, a moment when it is ready, an address."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

from workers.embedded.processes import Account


class StartFailed(Exception):
    """An embedded service cannot start. The text is one clear line, with what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run lives. `is_temporary`: it is thrown away at the end, so nothing in it needs to reach the disk."""

    directory: Path
    is_temporary: bool


class Service(Protocol):
    name: str
    variable: str
    """The environment variable that replaces this service, and that it fills otherwise."""
    stop_signal: signal.Signals
    stop_seconds: float
    ready_seconds: float
    account: Account | None
    log: Path
    working_directory: Path

    def check(self) -> None:
        """Raises StartFailed where something is missing on this machine. Starts and changes nothing."""
        ...

    def prepare(self) -> None:
        """Files and directories, made once and kept."""
        ...

    def command(self, port: int) -> list[str]: ...

    def environment(self) -> Mapping[str, str]: ...

    def is_ready(self, port: int) -> bool:
        """One look, no waiting."""
        ...

    def finish(self, port: int) -> None:
        """What is done once, when it answers for the first time."""
        ...

    def url(self, port: int) -> str: ...

    def discard(self) -> None:
        """Removes what a temporary run has outside its place."""
        ...


def port_free() -> int:
    """A loopback port nobody listens on now. Somebody may be quicker: then the service ends and is started again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def file_private(path: Path) -> TextIO:
    """A new file that only its owner can read. Raises: FileExistsError."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8")


def secret_keep(path: Path, make: str) -> str:
    """The secret in `path`, written as `make` the first time, readable by its owner only."""
    try:
        with file_private(path) as file:
            file.write(make)
    except FileExistsError:
        return path.read_text(encoding="utf-8").strip()
    return make
