"""Servers of a chaos run's own, to be killed: the control database's, the ends', Redis, Spark Connect."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from tests.chaos.cluster import Cluster
from workers.embedded.postgres import PostgreSQL
from workers.embedded.processes import group_stop, process_spawn, wait_until
from workers.embedded.redis import Redis
from workers.embedded.services import Place, Service
from workers.embedded.spark import Spark

CLUSTER_STARTS = 3


def port_kept() -> int:
    """A free loopback port below those the system gives to connections: nobody gets it while its server is down."""
    while True:
        port = random.randrange(15_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Server:
    """One embedded service that keeps its port, so that whoever knew its address finds it again."""

    def __init__(self, kind: type[PostgreSQL] | type[Redis] | type[Spark], directory: Path) -> None:
        directory.mkdir(parents=True)
        directory.chmod(0o755)  # PostgreSQL may run as another account
        self.service: Service = kind(Place(directory, is_temporary=True))
        self.service.check()
        self.port = port_kept()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.service.url(self.port)

    def launch(self) -> None:
        self.service.prepare()
        self.process = process_spawn(
            self.service.command(self.port),
            env=self.service.environment(),
            directory=self.service.working_directory,
            log=self.service.log,
            account=self.service.account,
        )

    def wait(self) -> None:
        assert wait_until(self._is_ready, self.service.ready_seconds), self.service.log.read_text()[-2000:]
        self.service.finish(self.port)

    def _is_ready(self) -> bool:
        """One look. What ended is launched again: its port may have been taken for a moment."""
        if self.process is None or self.process.poll() is not None:
            self.launch()
        return self.service.is_ready(self.port)

    def start(self) -> None:
        self.launch()
        self.wait()

    def kill(self) -> None:
        """As a crash: nothing is written any more. PostgreSQL by SIGQUIT, which spares its shared memory's clean-up."""
        if self.process is not None:
            how = signal.SIGQUIT if isinstance(self.service, PostgreSQL) else signal.SIGKILL
            group_stop(self.process.pid, how, 15)
            self.process.wait()
            self.process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    def close(self) -> None:
        self.kill()
        self.service.discard()


class Servers:
    """All four, started together."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._held = ExitStack()
        self.control = Server(PostgreSQL, directory / "control")
        self.ends = Server(PostgreSQL, directory / "ends")
        self.redis = Server(Redis, directory / "redis")
        self.spark = Server(Spark, directory / "spark")
        self.all = (self.spark, self.control, self.ends, self.redis)

    @cached_property
    def cluster(self) -> Cluster:
        """A cluster that speculates, started when a fault asks for it first. Somebody may be quicker at one of its ports:
        then it is started again, with others."""
        for number in range(CLUSTER_STARTS - 1):
            with contextlib.suppress(AssertionError):
                return self._held.enter_context(Cluster(self.directory / f"cluster-{number}"))
        return self._held.enter_context(Cluster(self.directory / "cluster"))

    def __enter__(self) -> Servers:
        for server in self.all:
            server.launch()
        for server in self.all:
            server.wait()
        os.environ |= {"DATABASE_URL": self.control.url, "SPARK_REMOTE": self.spark.url, "REDIS_URL": ""}
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()
        for server in self.all:
            server.close()

    def database(self, hint: str) -> str:
        """A fresh database among the ends; its dsn."""
        with psycopg.connect(self.ends.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {hint}")
        return make_conninfo(self.ends.url, dbname=hint)
