"""After the story: a web server to look around with, people to sign in as, and an incident left for whoever is there.

The people are made in the demo's control database only: where it has people of its own, they stay alone.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.contrib.auth.models import Group, User

from recovery_api.domain.errors import Refused
from recovery_api.services.people import roles_make
from workers.demo.incident import ROOT, incident_make
from workers.demo.recover import STOP_SECONDS, Operator, Said
from workers.demo.world import World
from workers.embedded.processes import group_stop, process_spawn
from workers.wire import wire_drop

MARK = "demo@fencepost.invalid"
"""The e-mail address of people that the demo made: it may change their passwords, and nobody else's."""
PORT = 8000
READY_SECONDS = 60.0
SEED = 20_260_701


def incident_leave(world: World, directory: Path, operator: Operator) -> Said:
    """A second incident, audited and not recovered. Its relay stays dead, and its plan's author may approve it.

    So that one person can walk the whole way with one sign-in. Returns what the audit said.
    """
    if world.door.table is None:
        operator.install()
    operator.register(author_may_approve=True)
    wire = directory / "left" / "wire"  # in a directory of its own: the first incident's crash left its marker
    wire.parent.mkdir()
    try:
        incident_make(world, wire, SEED)
    finally:
        wire_drop(wire)
    return operator.audit()


def people_make() -> str | None:
    """One person for each role, named like it, all with one new password, which is returned.

    None: the control database has people of its own; nobody is added.
    """
    if User.objects.exclude(email=MARK).exists():
        return None
    password = "-".join(secrets.token_hex(2) for _ in range(3))
    for name in roles_make():
        person, _ = User.objects.get_or_create(username=name, defaults={"email": MARK})
        person.set_password(password)
        person.save(update_fields=["password"])
        person.groups.set(Group.objects.filter(name=name))
    return password


@contextmanager
def web_running(log: Path, port: int | None = None) -> Iterator[str]:
    """The pages, on this machine only, by a process of their own; the address once it answers.

    `port` None: 8000, or any that is free. Raises: Refused where the server does not come up, or the port is taken.
    """
    chosen = _port_choose(port)
    address = f"http://127.0.0.1:{chosen}/"
    log.parent.mkdir(parents=True, exist_ok=True)
    # In a session of its own: a Ctrl-C that reaches server and master both can lock a gunicorn worker up for good.
    web = process_spawn(
        [
            *(sys.executable, "-m", "gunicorn", "dashboard.wsgi:application", "--bind", f"127.0.0.1:{chosen}"),
            *("--workers", "1", "--threads", "4", "--access-logfile", "-", "--no-control-socket"),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "FENCEPOST_HTTPS": "false"},
        directory=ROOT,
        log=log,
    )
    try:
        _await(web, address, log)
        yield address
    finally:
        group_stop(web.pid, signal.SIGTERM, STOP_SECONDS)
        web.wait()


def _port_choose(port: int | None) -> int:
    for wanted in (PORT, 0) if port is None else (port,):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise Refused("starting the pages", f"port {port} is taken", "Choose another with --port.")


def _await(web: subprocess.Popen[bytes], address: str, log: Path) -> None:
    began, pause = time.monotonic(), threading.Event()
    while web.poll() is None and time.monotonic() - began < READY_SECONDS:
        try:
            with urllib.request.urlopen(address, timeout=5):  # nosec B310 # an address of our own
                return
        except urllib.error.HTTPError:
            return  # it answers; what it says is for whoever looks
        except OSError:
            pause.wait(0.1)
    raise Refused("starting the pages", "the web server did not answer", f"See {log}.")
