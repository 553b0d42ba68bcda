"""One HTTP request to a destination, bounded in every direction.

The law: the address that the connection is opened to is the one that is checked, whatever the name resolves to a moment later; nothing
is followed, nothing of the environment (proxies) is used, and the whole request has one deadline that a dripping answer cannot
stretch.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from urllib.parse import urlsplit

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.response import HTTPResponse

from recovery_api.domain.alerts.addresses import Network, address_refusal, plain
from recovery_api.domain.alerts.outbox import REQUEST_SECONDS, Answer, answer_of
from recovery_api.domain.visible import visible

CONNECT_SECONDS = 4.0
ADDRESSES_TRIED = 3
EXCERPT_BYTES = 2_000
AGENT = "Fencepost"


class AddressRefused(OSError):
    """Nothing may be sent there: a private address that nobody named."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends requests. `allowed`: the private networks that an administrator named."""

    allowed: Sequence[Network] = ()
    seconds: float = REQUEST_SECONDS

    def send(self, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """What came of it; never raises for what the other side does. `body` None: GET."""
        parts = urlsplit(url)
        kind = _checked_https(self.allowed) if parts.scheme == "https" else _checked_http(self.allowed)
        connection = kind(parts.hostname or "", port=parts.port, timeout=CONNECT_SECONDS)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        is_over = threading.Event()
        watch = threading.Timer(self.seconds, _cut, [connection, is_over])
        watch.daemon = True
        watch.start()
        try:
            connection.connect()
            if is_over.is_set():  # names and addresses took it all, and the watch found no socket to cut
                raise TimeoutError
            connection.timeout = self.seconds
            method = "GET" if body is None else "POST"
            connection.request(
                method,
                path,
                body=body,
                headers={"User-Agent": AGENT, "Connection": "close", **headers},
                preload_content=False,
            )
            response = connection.getresponse()
            if is_over.is_set():  # its head was cut off there, and reads like a whole one
                raise TimeoutError
            return answer_of(response.status, _excerpt(response), response.headers.get("Retry-After", ""))
        except AddressRefused as error:
            return Answer(0, str(error), is_final=True)
        except (TimeoutError, HTTPError, HTTPException, OSError, ValueError) as error:
            is_late = is_over.is_set() or isinstance(error, TimeoutError)
            return Answer(0, f"did not answer within {self.seconds:g} s" if is_late else _said(error))
        finally:
            watch.cancel()
            connection.close()


def _excerpt(response: HTTPResponse) -> str:
    """The beginning of the body. The status was the answer: a body that drips or breaks off changes nothing of it."""
    with contextlib.suppress(HTTPError, HTTPException, OSError, ValueError):
        return visible((response.read(EXCERPT_BYTES, decode_content=False) or b"").decode("utf-8", "replace"))
    return ""


def socket_open(host: str, port: int, allowed: Sequence[Network], seconds: float, is_plain: bool) -> socket.socket:
    """A connection to one of the host's addresses that may be reached. Plain HTTP: to a private address that was named alone.

    Raises: AddressRefused where there is none; OSError.
    """
    problem: OSError = AddressRefused("its name has no address")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise OSError(f"its name {host} cannot be resolved") from error
    for _, _, _, _, place in found[:ADDRESSES_TRIED]:
        address = str(place[0])
        if refusal := address_refusal(address, allowed):
            problem = AddressRefused(refusal)
        elif is_plain and plain(address).is_global:
            problem = AddressRefused("http is not encrypted: use https for a public address")
        else:
            try:
                return socket.create_connection((address, place[1]), timeout=seconds)
            except OSError as error:
                problem = error
    raise problem


def _checked_http(allowed: Sequence[Network]) -> type[HTTPConnection]:
    class Checked(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return _opened(self, allowed, is_plain=True)

    return Checked


def _checked_https(allowed: Sequence[Network]) -> type[HTTPSConnection]:
    class Checked(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return _opened(self, allowed, is_plain=False)

    return Checked


def _opened(connection: HTTPConnection, allowed: Sequence[Network], *, is_plain: bool) -> socket.socket:
    opened = socket_open(connection.host, connection.port or 0, allowed, CONNECT_SECONDS, is_plain)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def _cut(connection: HTTPConnection, is_over: threading.Event) -> None:
    """At the deadline: whoever waits for this socket waits no longer."""
    is_over.set()
    opened = connection.sock
    if opened is not None:
        with contextlib.suppress(OSError):
            opened.shutdown(socket.SHUT_RDWR)


def _said(error: Exception) -> str:
    """An error without addresses' secrets: an address may be one."""
    text = getattr(error, "strerror", None) or type(error).__name__
    return (
        f"could not be reached: {text}" if isinstance(error, OSError | HTTPError) else f"failed: {type(error).__name__}"
    )
