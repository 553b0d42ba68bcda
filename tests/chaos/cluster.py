"""A standalone Spark cluster of a fault's own: a master, two workers, and a Connect server that speculates at once.

A local server has one executor and never runs a second attempt beside a first. Spark keeps the copies of a task on
different hosts, so the two workers listen on two loopback addresses.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from workers.embedded.processes import group_stop, process_spawn, wait_until
from workers.embedded.services import Place, is_listening, port_free
from workers.embedded.spark import JAVA_OPTIONS, Spark

HOSTS = ("127.0.0.1", "127.0.0.2")
CORES = 4
"""Of each executor. A job of more tasks is not speculated before one of them has ended, and here none ends."""
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    # A job of a single task has no others to be slower than.
    "spark.speculation.task.duration.threshold": "3s",
}


class _Server(Spark):
    """The Connect server as the cluster's driver, with Spark's REST on loopback."""

    def __init__(self, place: Place, master: str, pages_port: int, home: Path, is_strange: bool) -> None:
        super().__init__(place)
        self.is_strange, cores = is_strange, 1 if is_strange else CORES
        self.more = {
            **({"spark.python.daemon.module": "pyspark.daemon"} if is_strange else SPECULATION),
            "spark.master": master,
            "spark.executor.cores": str(cores),
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
            "spark.ui.enabled": "true",
            "spark.ui.port": str(pages_port),
        }
        self.configuration = home

    def command(self, port: int) -> list[str]:
        *command, resource = super().command(port)
        options = [part for name, value in self.more.items() for part in ("--conf", f"{name}={value}")]
        return [*command, *options, resource]  # of two values of one name the later one counts

    def environment(self) -> dict[str, str]:
        environment = {**super().environment(), "SPARK_CONF_DIR": str(self.configuration)}
        if self.is_strange:
            del environment["PYTHONPATH"]
        return environment


class Cluster:
    """Started by entering it. `is_strange`: a cluster as others run it: its executors have Python and packages,
    and nothing of ours, one core each, and nothing is speculated.
    `executor_of` finds the executor in which a process runs; `attempts` is what Spark tells."""

    def __init__(self, directory: Path, is_strange: bool = False) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.configuration = directory / "cluster"
        self.configuration.mkdir(mode=0o700)
        self.master_port, self.pages_port = port_free(), port_free()
        self.server = _Server(
            Place(directory, is_temporary=True),
            f"spark://{HOSTS[0]}:{self.master_port}",
            self.pages_port,
            self.configuration,
            is_strange,
        )
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Cluster:
        self.server.check()
        self.server.prepare()
        secret = f"spark.authenticate true\nspark.authenticate.secret {secrets.token_urlsafe(24)}\n"
        (self.configuration / "spark-defaults.conf").write_text(secret)
        try:
            self._daemon("master.Master", HOSTS[0], "--port", str(self.master_port))
            self._until(lambda: is_listening(self.master_port))
            for host in HOSTS:
                place = self.directory / f"worker-{host}"
                self._daemon(
                    "worker.Worker",
                    host,
                    "--cores",
                    self.server.more["spark.executor.cores"],
                    "--memory",
                    "1g",
                    "--work-dir",
                    str(place),
                    self.server.more["spark.master"],
                )
            port = port_free()
            self.url = self.server.url(port)
            self._spawn(self.server.command(port))
            self._until(lambda: self.server.is_ready(port))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for process in reversed(self.processes):
            group_stop(process.pid, self.server.stop_signal, self.server.stop_seconds)
            process.wait()
        self.processes.clear()

    def executor_of(self, pid: int) -> list[psutil.Process]:
        """The executor's JVM above this Python process, and everything that JVM started."""
        java = next(one for one in psutil.Process(pid).parents() if "java" in one.name())
        return [java, *java.children(recursive=True)]

    def attempts(self, is_active: bool = True) -> list[dict[str, Any]]:
        """The attempts of tasks that run now, or that ever were: Spark's own rows (index, attempt, speculative, …)."""
        applications = self._ask("applications")
        if not applications:
            return []
        stages = self._ask(f"applications/{applications[0]['id']}/stages?details=true&withSummaries=false")
        return [
            task | {"stageId": stage["stageId"]}
            for stage in stages
            for task in stage["tasks"].values()
            if not is_active or task["status"] == "RUNNING"
        ]

    def _ask(self, what: str) -> Any:
        with urllib.request.urlopen(f"http://{HOSTS[0]}:{self.pages_port}/api/v1/{what}", timeout=30) as answer:
            return json.load(answer)

    def _until(self, is_up: Callable[[], bool]) -> None:
        def is_over() -> bool:
            return is_up() or any(process.poll() is not None for process in self.processes)

        is_in_time = wait_until(is_over, self.server.ready_seconds)
        assert is_in_time and is_up(), f"the cluster did not start: {self.server.log.read_text()[-2000:]}"

    def _daemon(self, name: str, host: str, *arguments: str) -> None:
        command = [str(self.server.home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        small = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS}
        self._spawn([*command, "--host", host, "--webui-port", "0", *arguments], SPARK_LOCAL_IP=host, **small)

    def _spawn(self, command: list[str], **env: str) -> None:
        self.processes.append(
            process_spawn(
                command,
                env={**self.server.environment(), **env},
                directory=self.server.working_directory,
                log=self.server.log,
            )
        )
