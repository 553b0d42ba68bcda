"""Whether broker and engine take connections, as seen from here. The pager needs neither: it only looks."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from django.conf import settings

from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.alerts.ends import Reached

SECONDS = 1.0
PORTS = {"redis": 6379, "rediss": 6379, "sc": 15002}


def reached_get() -> dict[Cause, Reached]:
    """Of what is named in the settings; what is not named is not asked."""
    wanted = {Cause.NO_BROKER: settings.REDIS_URL, Cause.NO_ENGINE: settings.SPARK_REMOTE}
    named = {cause: place for cause, url in wanted.items() if (place := _place(url)) is not None}
    if not named:
        return {}
    with ThreadPoolExecutor(len(named)) as threads:
        return dict(zip(named, threads.map(_reach, named, named.values()), strict=True))


def _place(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None: nothing is named, or no place that a connection could be opened to from here.

    >>> _place("redis://:secret@broker.example/0"), _place("unix:///run/redis.sock"), _place("redis://host:port")
    (('redis', 'broker.example', 6379), None, None)
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        return None
    return (parts.scheme, host, port) if host and parts.scheme in PORTS else None


def _reach(cause: Cause, place: tuple[str, str, int]) -> Reached:
    """A connection, and of Redis an answer. What the address holds besides host and port is not told."""
    scheme, host, port = place
    what = "The broker" if cause is Cause.NO_BROKER else "The Spark server"
    try:
        with socket.create_connection((host, port), timeout=SECONDS) as connection:
            if cause is Cause.NO_BROKER and scheme == "redis":
                connection.settimeout(SECONDS)
                connection.sendall(b"PING\r\n")
                if connection.recv(64)[:1] not in (b"+", b"-"):
                    return Reached(False, f"{what} at {host}:{port} answers what is none.")
    except TimeoutError:
        return Reached(False, f"{what} at {host}:{port} does not answer within {SECONDS:.0f} s.")
    except OSError as error:
        return Reached(False, f"{what} at {host}:{port} takes no connection: {error.strerror or type(error).__name__}.")
    return Reached(True)
