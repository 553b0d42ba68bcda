"""Child processes that are never left behind.

Three nets, because each has a hole. A service gets a session of its own and is stopped by that session's group. On
Linux the kernel signals it when the launcher dies, and orphans of anything the launcher started become the
launcher's children again, so what is left can be listed. And every process is written down with its time of birth
before anything waits for it, so that the next run can stop what a SIGKILL (or another system) left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Account:
    """Whom a process runs as, where that is not the caller."""

    uid: int
    gid: int


def orphans_adopt() -> None:
    """Makes orphaned descendants this process's children (Linux; elsewhere nothing)."""
    if _libc is not None:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def orphans_reap(own: Iterable[subprocess.Popen[bytes]]) -> None:
    """Takes note of adopted orphans that ended; a zombie counts as alive for whoever waits for it."""
    if _libc is None:
        return
    for process in own:
        process.poll()
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if any(process.pid == ended.si_pid for process in own):
                return  # it ended this moment; its own Popen takes note
            os.waitpid(ended.si_pid, 0)


def process_spawn(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    directory: Path | None = None,
    log: Path | None = None,
    account: Account | None = None,
    is_service: bool = True,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """A child that is sent `stop_signal` when this process dies. Call it from the main thread: the kernel watches that.

    A service has a session of its own and no input; CMD keeps the terminal and its process group.
    """

    def follow_parent() -> None:
        if _libc is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, int(stop_signal), 0, 0, 0)
            if os.getppid() != parent:  # it died before the kernel was told
                os._exit(1)

    parent = os.getpid()
    with contextlib.ExitStack() as files:
        output = files.enter_context(log.open("ab")) if log else None
        return subprocess.Popen(  # nosec B603 # a list of our own words, no shell
            [str(part) for part in command],
            env=dict(env),
            cwd=directory,
            stdin=subprocess.DEVNULL if is_service else None,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
            start_new_session=is_service,
            preexec_fn=follow_parent,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )


def birth_of(pid: int) -> float | None:
    """When the process of this id was born, in seconds; None: there is none (a zombie counts as none)."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


def is_same_process(pid: int, born: float) -> bool:
    """Whether `pid` is still the process that was written down. Clocks may have been set a little in between."""
    now = birth_of(pid)
    return now is not None and abs(now - born) < 2


def group_stop(pid: int, stop_signal: signal.Signals, grace_seconds: float) -> None:
    """Ends the service `pid` and all of its process group: asked first, killed after the grace."""
    family = _family(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, stop_signal)
    wait_until(lambda: birth_of(pid) is None, grace_seconds)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    processes_kill(family)


def children_stop(grace_seconds: float) -> None:
    """Ends every descendant of this process that is still there, orphans it adopted included."""
    for attempt in range(5):
        left = _family(os.getpid())
        if not left:
            return
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate() if attempt == 0 else process.kill()
        psutil.wait_procs(left, timeout=grace_seconds)


def processes_kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def wait_until(is_done: Callable[[], bool], timeout_seconds: float) -> bool:
    """Whether `is_done` came true in time."""
    end = time.monotonic() + timeout_seconds
    while not is_done():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _family(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []
