"""The ports of a run's services: kept beside their data, so that an address written down once is right after a restart.

Another one is drawn only where the kept one is taken, or a service ended at it while starting. A temporary run keeps
nothing: it is never started again.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket

from workers.embedded.services import Place, port_free

LASTING = range(20_000, 30_000)
"""Below those that systems draw from for connections, so that nobody takes one by chance while its server is down."""
DRAWS = 50


def port_choose(place: Place, service: str, *, is_again: bool = False) -> int:
    """The port `service` had here before, if it is free; else another. `is_again`: it has just ended at the kept one."""
    if place.is_temporary:
        return port_free()
    kept = None if is_again else _kept(place).get(service)
    if kept is not None and is_free(kept):
        return kept
    taken = set(_kept(place).values())
    drawn = (port for port in random.sample(LASTING, DRAWS) if port not in taken and is_free(port))  # nosec B311 # no secret
    return next(drawn, None) or port_free()


def port_keep(place: Place, service: str, port: int) -> None:
    """Remembers where `service` answered."""
    ports = _kept(place)
    if place.is_temporary or ports.get(service) == port:
        return
    new = place.directory / "ports.json.new"
    new.write_text(json.dumps({**ports, service: port}), encoding="utf-8")
    new.replace(place.directory / "ports.json")


def is_free(port: int) -> bool:
    """Whether a server may listen there. Connections of an earlier one that linger do not count, nor do they for it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _kept(place: Place) -> dict[str, int]:
    with contextlib.suppress(FileNotFoundError, ValueError):
        found = json.loads((place.directory / "ports.json").read_text(encoding="utf-8"))
        return {str(name): int(port) for name, port in found.items()}
    return {}
