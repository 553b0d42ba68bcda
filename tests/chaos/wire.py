"""Faults of the wire between a worker and the sink: packets swallowed without a reset, a reply cut or held up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recovery_api.models import Recovery
from tests.chaos.arena import ROUND_SECONDS, Arena, Wrong, intent_of
from tests.faults.proxy import Proxy, Wire
from workers.embedded.processes import wait_until

CLAIM, FIRE, COMMIT = rb'"fencepost"\.claim(_open)?\(', rb'"fencepost"\.fire\(', b"COMMIT"
RECORD = rb'FROM "fencepost"\.accepted a WHERE'
STAGED = rb'COPY "fencepost"\."staged"'

PLACES: dict[str, tuple[Wire, tuple[bytes, ...]]] = {
    "the claim": (Wire.REQUEST_SWALLOWED, (CLAIM,)),
    "the claim's reply": (Wire.REPLY_SWALLOWED, (CLAIM, COMMIT)),
    "the record's read": (Wire.REPLY_SWALLOWED, (RECORD,)),
    "the staging": (Wire.REPLY_SWALLOWED, (STAGED,)),
    "the fire's commit": (Wire.REQUEST_SWALLOWED, (FIRE, COMMIT)),
    "the reply of the fire's commit": (Wire.REPLY_SWALLOWED, (FIRE, COMMIT)),
}


@contextmanager
def proxied(arena: Arena) -> Iterator[Proxy]:
    """While it runs the product reaches the sink through a proxy; the arena looks at it without one."""
    address = Path(arena.world.sink_options["connection"].removeprefix("file:"))
    direct = address.read_text()
    parts = conninfo_to_dict(direct)
    with Proxy(str(parts["host"]), int(str(parts["port"]))) as proxy:
        address.write_text(make_conninfo(direct, host="127.0.0.1", port=proxy.port))
        try:
            yield proxy
        finally:
            address.write_text(direct)


def silent_proxy(arena: Arena, recovery: Recovery) -> str:
    """A proxy swallows packets at one step, on that connection or on all, and acknowledges every one of them."""
    place = arena.chance.choice(sorted(PLACES))
    is_for_all = arena.chance.random() < 0.5
    with proxied(arena) as proxy:
        wire, after = PLACES[place]
        broken = proxy.break_at(wire, *after, is_for_all=is_for_all)
        process = arena.worker(intent_of(recovery), "first")
        code = process.wait(ROUND_SECONDS)
        if not broken.came.is_set():
            raise Wrong(f"{place} never came")
    return f"{place} was swallowed on {'every' if is_for_all else 'one'} connection; the worker ended with {code}"


def reply_cut(arena: Arena, recovery: Recovery) -> str:
    """The connection is reset where the fire's commit would have been answered."""
    with proxied(arena) as proxy:
        broken = proxy.break_at(Wire.REPLY_CUT, FIRE, COMMIT)
        code = arena.worker(intent_of(recovery), "first").wait(ROUND_SECONDS)
        if not broken.came.is_set():
            raise Wrong("the fire never came")
    return f"the reply of the fire's commit was cut; the worker ended with {code}"


def reply_delayed(arena: Arena, recovery: Recovery) -> str:
    """The word of the fire's commit arrives after another worker has settled it."""
    with proxied(arena) as proxy:
        broken = proxy.break_at(Wire.REPLY_DELAYED, FIRE, COMMIT)
        process = arena.worker(intent_of(recovery), "first")
        if not wait_until(broken.came.is_set, 60):
            raise Wrong("the fire never came")
        arena.settle(recovery)
        broken.gate.set()
        code = process.wait(ROUND_SECONDS)
    return f"the word of the fire's commit came after it had been settled; its worker ended with {code}"
