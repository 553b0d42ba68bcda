"""A local Spark Connect server, two cores, on loopback. It needs Java 17 or newer, and says so before it starts."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from workers.embedded.processes import Account
from workers.embedded.services import Place, StartFailed, is_listening, secret_keep

PROJECT = Path(__file__).resolve().parents[2]
JAVA_OLDEST = 17
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
"""A server that lives for minutes never earns back its optimising compiler: half the processor time up to the first
answers (33 s against 60 on a busy machine). `make bench` runs without."""
REMEDY = (
    f"Install a Java {JAVA_OLDEST} runtime or newer (Debian and Ubuntu: apt install openjdk-17-jre-headless; "
    "Fedora: dnf install java-latest-openjdk-headless; macOS: brew install openjdk@17) and have it on PATH or in "
    "JAVA_HOME, or set SPARK_REMOTE to a Spark Connect server."
)


class Spark:
    name = "Spark"
    variable = "SPARK_REMOTE"
    stop_signal = signal.SIGTERM
    stop_seconds = 10.0
    ready_seconds = 300.0  # a busy machine takes its time, and a server that fails ends by itself
    account: Account | None = None

    def __init__(self, place: Place) -> None:
        self.log = place.directory / "spark.log"
        self.working_directory = place.directory / "spark"
        self.secret = place.directory / "spark.token"

    def check(self) -> None:
        spec = find_spec("pyspark")
        if spec is None or spec.origin is None:
            raise StartFailed(
                "The package pyspark is not installed: run `pip install -r requirements.txt`, or set SPARK_REMOTE."
            )
        self.home = Path(spec.origin).parent
        self.java = java_find()

    def prepare(self) -> None:
        shutil.rmtree(self.working_directory, ignore_errors=True)  # a server's scratch files serve no other server
        for name in ("conf", "local", "warehouse"):
            (self.working_directory / name).mkdir(parents=True, exist_ok=True)
        self.token = secret_keep(self.secret, secrets.token_urlsafe(24))

    def command(self, port: int) -> list[str]:
        settings = {
            "spark.master": "local[2,4]",  # four attempts a task, as a cluster has
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.python.daemon.module": "workers.spark.daemon",
            "spark.local.dir": self.working_directory / "local",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": port,
            "spark.sql.shuffle.partitions": 4,
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": self.working_directory / "warehouse",
            "spark.driver.extraJavaOptions": os.environ.get("FENCEPOST_SPARK_JAVA_OPTIONS", JAVA_OPTIONS),
        }
        options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        submit = self.home / "bin" / "spark-submit"
        return [str(submit), "--class", server, "--name", "fencepost", *options, "spark-internal"]

    def environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
        path = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **kept,
            "JAVA_HOME": str(self.java.parent.parent),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(path),
            "SPARK_HOME": str(self.home),
            "SPARK_CONF_DIR": str(self.working_directory / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": self.token,
        }

    def is_ready(self, port: int) -> bool:
        return is_listening(port)

    def finish(self, port: int) -> None:
        """Nothing to do."""

    def discard(self) -> None:
        """Nothing to do."""

    def url(self, port: int) -> str:
        # A token without TLS is only sent to `localhost`, by that name; the `/` is required before parameters.
        return f"sc://localhost:{port}/;token={self.token}"


def java_find() -> Path:
    """The java to use: JAVA_HOME's, else PATH's. Raises: StartFailed with one line that says what to install."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None or not Path(found).is_file():
        where = f"JAVA_HOME={home} holds none" if home else "there is none on PATH"
        raise StartFailed(f"The local Spark server needs Java {JAVA_OLDEST}, and {where}. {REMEDY}")
    try:
        told = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, errors="replace")  # nosec B603 # a list of our own words, no shell
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StartFailed(f"The local Spark server needs Java {JAVA_OLDEST}, and {found}: {error}. {REMEDY}") from error
    version = java_major(told.stderr + told.stdout)
    if told.returncode or version is None:
        raise StartFailed(f"The local Spark server needs Java {JAVA_OLDEST}, and {found} tells no version. {REMEDY}")
    if version < JAVA_OLDEST:
        raise StartFailed(f"The local Spark server needs Java {JAVA_OLDEST}, and {found} is Java {version}. {REMEDY}")
    return Path(found).resolve()


def java_major(text: str) -> int | None:
    """17 of `openjdk version "17.0.15" 2025-04-15`, 8 of `java version "1.8.0_402"`; None where there is none.

    >>> java_major('openjdk version "21-ea"'), java_major('java version "1.8.0_402"'), java_major("no")
    (21, 8, None)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None
