"""The incident, made for real: processes, connections, SIGKILL. Nothing here knows what the product will find.

1. The relay runs, reading `id > cursor`. An import and a few slow requests draw their ids, the relay's cursor passes
   them, then they commit: it never looks back. A stretch and some single events are skipped.
2. It is stopped for a deployment; business goes on; its next run reads one batch. One send of it is held back in
   flight, the others are accepted by the sink, and SIGKILL comes before the checkpoint.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from workers.demo.business import OpenTransaction, Trade, trade
from workers.demo.world import RELAY, World
from workers.faults import Point

WRITERS = 4
IMPORTED = 24
SLOW_REQUESTS = 3
BATCH_EVENTS = 20
ROOT = Path(__file__).resolve().parent.parent.parent


class RelayProcess:
    """A relay of its own process, followed by the lines it prints."""

    def __init__(self, world: World, *options: str, crash: str | None = None) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment.pop("FENCEPOST_CRASH", None)
        if crash is not None:
            environment["FENCEPOST_CRASH"] = crash
        self.process = subprocess.Popen(  # nosec B603 # a list of our own words, no shell
            [
                *(sys.executable, "-m", "workers.relay", "--name", RELAY),
                *("--source", world.reference("orders_relay"), "--sink", world.reference("mail_relay")),
                *("--outbox", f"{world.schema}.outbox", "--cursor", f"{world.schema}.relay_cursor"),
                *world.door.arguments(),
                *("--batch-events", str(BATCH_EVENTS)),
                *options,
            ],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        self.generation: int | None = None
        self.started_at: int | None = None
        self.cursor: int | None = None
        self.words: dict[str, int] = {}

    def follow(self, until_cursor: int | None = None) -> None:
        """Reads what it prints until its cursor has reached `until_cursor`, or, without one, until it ends."""
        assert self.process.stdout is not None
        while until_cursor is None or self.cursor is None or self.cursor < until_cursor:
            if not (line := self.process.stdout.readline()):
                if until_cursor is None:
                    return
                code = self.process.wait()
                raise RuntimeError(f"the relay ended with {code} before its cursor reached {until_cursor}")
            self._take(json.loads(line))

    def _take(self, said: dict[str, Any]) -> None:
        self.cursor = said.get("cursor", self.cursor)
        if said["said"] == "started":
            self.generation, self.started_at = said["generation"], said["cursor"]
        for word, count in said.get("words", {}).items():
            self.words[word] = self.words.get(word, 0) + count

    def stop(self) -> int:
        """SIGTERM; it finishes its batch and its checkpoint. Returns its exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        self.follow()
        return self.process.wait()

    def kill(self) -> None:
        """For the way out: whatever state it is in."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def relay_drain(world: World) -> tuple[RelayProcess, int]:
    """A relay that read up to the safe frontier, delivered what there was and ended; and its exit code."""
    relay = RelayProcess(world, "--reading", "safe", "--drain")
    try:
        return relay, relay.wait()
    finally:
        relay.kill()


@dataclass(slots=True)
class Incident:
    """What was done to the world, in numbers."""

    trades: list[Trade] = field(default_factory=list)
    skipped_ids: list[int] = field(default_factory=list)
    """Ids drawn before, committed after the cursor passed them, on purpose. Others may have been skipped by chance."""
    first_generation: int = 0
    crashed_generation: int = 0
    cursor: int = 0
    """What the dead relay's cursor says, as read from its table."""
    wire: Path | None = None
    killed_by: int = 0


def incident_make(world: World, wire: Path, seed: int) -> Incident:
    """The whole of it. `wire`: the path of the socket that will let the held-back send go on."""
    incident = Incident(wire=wire)
    _skip_a_stretch(world, incident, seed)
    incident.trades.append(trade(world, seed + 2, WRITERS, 8))
    _crash_before_the_checkpoint(world, incident)
    incident.cursor = cursor_read(world)
    return incident


def _skip_a_stretch(world: World, incident: Incident, seed: int) -> None:
    relay = RelayProcess(world, "--reading", "naive")
    late = []
    try:
        incident.trades.append(trade(world, seed, WRITERS, 20))
        late.append(OpenTransaction(world, "import", IMPORTED))
        late += [OpenTransaction(world, f"slow-request-{number}", 1) for number in range(SLOW_REQUESTS)]
        incident.skipped_ids = [id_ for transaction in late for id_ in transaction.ids]
        incident.trades.append(trade(world, seed + 1, WRITERS, 20))
        relay.follow(until_cursor=highest_committed(world))
        for transaction in late:
            transaction.commit()
        incident.first_generation = relay.generation or 0
        if (code := relay.stop()) != 0:
            raise RuntimeError(f"the relay's first run ended with {code}")
    finally:
        for transaction in late:
            transaction.close()
        relay.kill()


def _crash_before_the_checkpoint(world: World, incident: Incident) -> None:
    assert incident.wire is not None
    marker = incident.wire.with_name("crashed")
    relay = RelayProcess(
        world, "--reading", "naive", "--hold-back", str(incident.wire), crash=f"{Point.RELAY_ACCEPTED}:{marker}"
    )
    try:
        incident.killed_by = -relay.wait()
        incident.crashed_generation = relay.generation or 0
    finally:
        relay.kill()
    if incident.killed_by != signal.SIGKILL:
        raise RuntimeError(f"the relay was to die of SIGKILL at its crash point; it ended with {-incident.killed_by}")


def highest_committed(world: World) -> int:
    with psycopg.connect(world.orders, autocommit=True) as orders:
        query = sql.SQL("SELECT coalesce(max(id), 0) FROM {}").format(sql.Identifier(world.schema, "outbox"))
        row = orders.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def cursor_read(world: World) -> int:
    """The relay's cursor as its table has it."""
    with psycopg.connect(world.orders, autocommit=True) as orders:
        query = sql.SQL("SELECT position FROM {} WHERE relay = %s").format(sql.Identifier(world.schema, "relay_cursor"))
        row = orders.execute(query, (RELAY,)).fetchone()
    assert row is not None
    return int(row[0])
