"""A TCP proxy that breaks the wire on purpose: it swallows packets without a reset, cuts a reply, or holds one up.

Shared by the fault tests and by `make chaos`. A `Break` is found by what the client sends; the proxy reads the wire as
bytes and knows nothing of PostgreSQL but that its queries are text.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType

CHUNK = 65_536


class Wire(Enum):
    """What happens to a connection from its break on."""

    REQUEST_SWALLOWED = "the request is swallowed"
    """The server never sees it; both sides stay connected, and every packet is acknowledged by the proxy."""
    REPLY_SWALLOWED = "the reply is swallowed"
    """The server did what it was asked, and its word never arrives."""
    REPLY_CUT = "the reply is cut"
    """The server did it, and the connection is reset."""
    REPLY_DELAYED = "the reply is held up"
    """Until `Break.gate` is set."""


@dataclass
class Break:
    """`after`: what a client sends on one connection, in this order, as patterns; the last one's message is where it breaks.

    `is_for_all`: from then on every connection through the proxy is swallowed, until `Proxy.mend`. `came`: it happened.
    """

    wire: Wire
    after: tuple[bytes, ...]
    is_for_all: bool = False
    gate: threading.Event = field(default_factory=threading.Event)
    came: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """Listens on a port of its own from entering to leaving. One `Break` at a time, which happens once."""

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._break: Break | None = None
        self._all_swallowed = False
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._is_closed = False

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._listen, name="proxy", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        for one in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def break_at(self, wire: Wire, *after: bytes, is_for_all: bool = False) -> Break:
        """Arms one break."""
        self._break = Break(wire, after, is_for_all)
        return self._break

    def mend(self) -> None:
        """New connections pass again; what was swallowed stays so."""
        self._break, self._all_swallowed = None, False

    def refuse(self) -> None:
        """No new connection is let in any more; the open ones stay as they are."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while not self._is_closed:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._open.append(client)
        try:
            server = socket.create_connection(self.target)
        except OSError:
            client.close()
            return
        self._open.append(server)
        line = _Line(client, server, is_swallowed=self._all_swallowed)
        threading.Thread(target=self._replies, args=(line,), daemon=True).start()
        seen = 0
        tail = b""
        for chunk in _chunks(client):
            found = self._break
            if found is not None and not found.came.is_set():
                tail += chunk
                while seen < len(found.after) and (met := re.search(found.after[seen], tail)) is not None:
                    tail, seen = tail[met.end() :], seen + 1
                tail = tail[-4096:]
                if seen == len(found.after):
                    self._happen(found, line)
            if not (line.is_swallowed or line.is_request_swallowed):
                with contextlib.suppress(OSError):
                    server.sendall(chunk)
            line.is_swallowed = line.is_swallowed or line.is_request_swallowed
        if not line.is_swallowed:  # what was swallowed hears nothing of our end, either
            _close(server)

    def _happen(self, found: Break, line: _Line) -> None:
        line.found = found
        line.is_request_swallowed = found.wire is Wire.REQUEST_SWALLOWED
        self._all_swallowed = self._all_swallowed or found.is_for_all
        found.came.set()

    def _replies(self, line: _Line) -> None:
        for chunk in _chunks(line.server):
            found = line.found
            if line.is_swallowed or self._all_swallowed or line.is_request_swallowed:
                continue
            if found is not None and found.wire is Wire.REPLY_SWALLOWED:
                line.is_swallowed = True
                continue
            if found is not None and found.wire is Wire.REPLY_CUT:
                _reset(line.client)
                _close(line.server)
                return
            if found is not None and found.wire is Wire.REPLY_DELAYED:
                found.gate.wait()
            with contextlib.suppress(OSError):
                line.client.sendall(chunk)
        if not line.is_swallowed:
            _close(line.client)


@dataclass
class _Line:
    client: socket.socket
    server: socket.socket
    is_swallowed: bool = False
    is_request_swallowed: bool = False
    found: Break | None = None


def _chunks(one: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        while chunk := one.recv(CHUNK):
            yield chunk


def _reset(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
