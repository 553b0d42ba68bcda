"""One send held back in flight: a separate process with its own connection that delivers an event later.

A request that a dead relay left in a proxy or a socket buffer arrives whenever the network likes. Here that moment is
chosen: the process connects to the sink, says that it holds the event, and delivers it, with the generation it was
given, when somebody connects to its Unix socket and says `release`. It outlives the relay that made it. Nothing waits
on a clock but the bound after which a forgotten wire drops what it holds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psycopg

from workers.connectors.credentials import credential_resolve
from workers.doors import Door, door_of

HELD_AT_MOST_SECONDS = 900.0
SOCKET_PATH_LIMIT = 100
"""Bytes; a Unix socket's address holds 108 on Linux and 104 elsewhere."""


@dataclass(frozen=True, slots=True)
class HeldSend:
    """A send in flight: the process that holds it and the socket that lets it go on."""

    process: subprocess.Popen[str]
    path: Path

    def finish(self) -> str:
        """Waits until it was let go, and returns the sink's word; `lost` where it never arrived."""
        assert self.process.stdout is not None
        with self.process.stdout as words:
            word = words.readline().strip()
        self.process.wait()
        return word or "lost"


def wire_hold(path: Path, sink: str, door: Door, generation: int, event: str) -> HeldSend:
    """Hands `event` (one element of the kit's `events`, as JSON text) to a new wire process, connected and waiting.

    `sink` is a credential reference, so that no address with a password is in an argument list.
    """
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
        raise ValueError(f"{path} is too long for a socket; choose a path of at most {SOCKET_PATH_LIMIT} bytes")
    process = subprocess.Popen(  # nosec B603 # a list of our own words, no shell
        [
            *(sys.executable, "-m", "workers.wire", "--socket", str(path)),
            *("--sink", sink, *door.arguments(), "--generation", str(generation)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it outlives this process: it must not hold its pipes open
        text=True,
        start_new_session=True,
        cwd=Path(__file__).resolve().parent.parent,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(event)
    process.stdin.close()
    if process.stdout.readline().strip() != "holding":
        process.wait()
        raise RuntimeError("the wire ended before it held the event")
    return HeldSend(process, path)


def wire_release(path: Path) -> str:
    """Lets the held event arrive at the sink, and returns the sink's word for it."""
    with _connect(path) as client, client.makefile("rw", encoding="utf-8") as words:
        words.write("release\n")
        words.flush()
        if not (word := words.readline().strip()):
            raise RuntimeError("the wire ended without an answer from the sink")
        return word


def wire_drop(path: Path) -> None:
    """Ends a wire that still holds its event; the event never arrives. Nothing happens where none is left."""
    with (
        contextlib.suppress(OSError),
        _connect(path) as client,
        client.makefile("rw", encoding="utf-8") as words,
    ):
        words.write("drop\n")
        words.flush()
        words.readline()


def _connect(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.connect(str(path))
    except OSError:
        client.close()
        raise
    return client


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m workers.wire", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--sink", required=True, help="env:FENCEPOST_END_NAME or file:/path of the sink's address")
    parser.add_argument("--kit-schema", default="fencepost")
    parser.add_argument("--table", help="schema.table of an ordinary table, in place of the kit")
    parser.add_argument("--generation", type=int, required=True)
    given = parser.parse_args()
    event = sys.stdin.read()
    with (
        psycopg.connect(credential_resolve(given.sink), autocommit=True, application_name="fencepost wire") as sink,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server,
    ):
        server.bind(str(given.socket))
        server.listen(1)
        server.settimeout(HELD_AT_MOST_SECONDS)
        print("holding", flush=True)
        try:
            client, _ = server.accept()
            with client, client.makefile("r", encoding="utf-8") as words:
                answer = "dropped"
                if words.readline().strip() == "release":
                    answer = door_of(given.kit_schema, given.table).deliver(sink, given.generation, [event])[0]
                with contextlib.suppress(OSError):
                    os.write(sys.stdout.fileno(), answer.encode() + b"\n")  # for its relay, if that still lives
                client.sendall(answer.encode() + b"\n")
        finally:
            given.socket.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
