"""A PostgreSQL of the system's packages, for what the wheel's is built without: ICU, and so collations that fold case."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.programs import program_missing

PACKAGES = Path("/usr/lib/postgresql")
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
}


@contextmanager
def system_server() -> Iterator[str]:
    """A superuser's address of one that is made for this and thrown away. Where the machine has none the test is skipped; in CI it fails."""
    found = sorted(PACKAGES.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not found:
        program_missing(
            "there is no PostgreSQL with ICU: install the package postgresql, or set DATABASE_URL to another"
        )
    account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    home = Path(tempfile.mkdtemp(prefix="fencepost-system-"))
    if account is not None:
        os.chown(home, account.pw_uid, account.pw_gid)

    def call(name: str, *words: str) -> None:
        subprocess.run(
            [os.fspath(found[-1].parent / name), *words],
            check=True,
            cwd=home,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
            stdout=subprocess.DEVNULL,
        )

    data = os.fspath(home / "data")
    try:
        call("initdb", "-D", data, "-U", "postgres", "--encoding=UTF8", "--locale=C", "--auth=trust", "--no-sync")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = " ".join(f"-c {name}='{value}'" for name, value in {**SETTINGS, "port": str(port)}.items())
        call("pg_ctl", "-D", data, "-w", "-l", os.fspath(home / "log"), "-o", options, "start")
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            call("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
