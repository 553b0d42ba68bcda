"""Processes that skip the seconds of their imports: forked from one that holds the libraries, as `python -m` would start.

One law: what is forked has loaded libraries and nothing else: no module of the product, no settings, no thread, no
connection. So a forked process reads its environment and begins as a new one does; it only imports faster.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

LIBRARIES = (
    "django.contrib.auth",
    "django.core.management",
    "django.db.migrations.executor",
    "django.db.models",
    "django.forms",
    "psycopg",
    "psycopg.types.json",
    "numpy",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pyspark.sql.connect.session",
    "pyspark.cloudpickle",
    "celery.app.base",
    "celery.bin.celery",
    "celery.bin.worker",
    "celery.concurrency.prefork",
    "celery.worker",
    "kombu.transport.redis",
    "redis",
)
STARTED = b"%d\n"


class Forked:
    """A forked process, with what the tests use of subprocess.Popen. `stderr` is what it said, where that is a pipe."""

    def __init__(self, pid: int, status: socket.socket, stderr: int | None) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status
        self._stderr = None if stderr is None else os.fdopen(stderr, "r", errors="replace")

    def poll(self) -> int | None:
        return self._told(0)

    def wait(self, timeout: float | None = None) -> int:
        """Raises: subprocess.TimeoutExpired."""
        code = self._told(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(["forked", str(self.pid)], timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[None, str]:
        """Waits for its end; a process that writes more to its pipe than that holds is not for this."""
        self.wait(timeout)
        said = ""
        if self._stderr is not None:
            with self._stderr:
                os.set_blocking(self._stderr.fileno(), False)  # a grandchild may hold the other end
                said = self._stderr.read() or ""
        return None, said

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        """A test that failed waits for nobody: what its process waits for may be held by what the test leaves next."""
        if error is not None:
            self.kill()
        self.wait()

    def _told(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            status = self._status.recv(64)
            if not status:
                raise RuntimeError("the process that forks the tests' workers is gone")
            self.returncode = os.waitstatus_to_exitcode(int(status))
            self._status.close()
        return self.returncode


class Zygote:
    """The process to fork from, of this process; started when first asked, gone with it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tests.zygote", str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        self._asking = ours
        atexit.register(self._end)

    def _end(self) -> None:
        self._asking.close()
        self._process.wait()

    def fork(
        self, arguments: Sequence[str], env: Mapping[str, str], stdout: int, stderr: int, new_session: bool
    ) -> Forked:
        status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        reading, writing = os.pipe() if stderr == subprocess.PIPE else (None, stderr)
        asked = {"arguments": list(arguments), "env": dict(env), "cwd": str(Path.cwd()), "new_session": new_session}
        said = json.dumps(asked).encode()
        memory = os.memfd_create("asked")
        try:
            os.write(memory, said)
            socket.send_fds(self._asking, [b"fork"], [memory, theirs.fileno(), stdout, writing])
            pid = int(status.recv(64))
        finally:
            os.close(memory)
            theirs.close()
            if reading is not None:
                os.close(writing)
        return Forked(pid, status, reading)


_zygotes: dict[int, Zygote] = {}


def forked(
    *arguments: str,
    env: Mapping[str, str],
    stdout: Any = None,
    stderr: Any = None,
    start_new_session: bool = False,
) -> Forked:
    """`python -m arguments…` in that environment, forked. `stdout` and `stderr`: as for Popen; only stderr may be a pipe."""
    zygote = _zygotes.get(os.getpid())
    if zygote is None:
        zygote = _zygotes.setdefault(os.getpid(), Zygote())
    with contextlib.ExitStack() as opened:

        def number(given: Any, own: int) -> int:
            if given is None:
                return own
            if given == subprocess.DEVNULL:
                return opened.enter_context(Path(os.devnull).open("wb")).fileno()
            return given if isinstance(given, int) else int(given.fileno())

        to = number(stdout, 1)
        errors = to if stderr == subprocess.STDOUT else stderr if stderr == subprocess.PIPE else number(stderr, 2)
        return zygote.fork(arguments, env, to, errors, start_new_session)


def _serve(asking: socket.socket) -> None:
    """Forks as asked, and tells each asker how its process ended. Returns in a forked process, which then begins."""
    children: dict[int, socket.socket] = {}
    waking, woken = socket.socketpair()
    for one in (waking, woken):
        one.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([asking, waking], [], [])
        if waking in ready:
            waking.recv(4096)
            while children:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                with contextlib.suppress(OSError):  # nobody waits for it any more
                    children[pid].send(str(status).encode())
                children.pop(pid).close()
        if asking in ready:
            word, fds, _, _ = socket.recv_fds(asking, 16, 4)
            if not word:
                os._exit(0)
            memory, status_fd, stdout, stderr = fds
            asked = json.loads(os.pread(memory, os.fstat(memory).st_size, 0))
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in (asking, waking, woken, *children.values()):
                    one.close()
                os.dup2(stdout, 1)
                os.dup2(stderr, 2)
                for fd in fds:
                    os.close(fd)
                _become(asked)
                return
            status = socket.socket(fileno=status_fd)
            status.send(str(pid).encode())
            children[pid] = status
            for fd in (memory, stdout, stderr):
                os.close(fd)


def _become(asked: Mapping[str, Any]) -> None:
    if asked["new_session"]:
        os.setsid()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    sys.argv = list(asked["arguments"])


def main() -> NoReturn:
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # nor do the forked walk it, which would copy its pages
    _serve(socket.socket(fileno=int(sys.argv[1])))
    module = sys.argv[0]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
