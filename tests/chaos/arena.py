"""One pipeline that goes on from round to round, its recoveries, its worker processes, and the oracle."""

from __future__ import annotations

import datetime as dt
import os
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection as control
from django.test import override_settings
from django.utils import timezone

from recovery_api.models import LIVE_STATES, Intent, Recovery, RecoveryState
from recovery_api.services.intents import intents_sweep
from recovery_api.services.recoveries import recovery_settle_request
from tests.chaos.servers import Servers
from tests.faults.processes import reached
from tests.integration.recovery.world import World, world_make
from tests.zygote import Forked, forked
from workers.evidence.canonical import content_digest, content_parse, payload_digest
from workers.faults import Point
from workers.runners import intent_run

ROUND_SECONDS = 150.0
ANSWER_SECONDS = 5
EXACT = frozenset({"exactly_once"})


class Wrong(AssertionError):
    """The oracle, or a fault's own expectation, does not hold."""


class Arena:
    """`settle` brings a round to its end; `check` compares the sink with the source by SQL that the product does not use."""

    def __init__(self, servers: Servers, directory: Path, seed: int) -> None:
        self.servers, self.directory, self.chance = servers, directory, random.Random(seed)
        self.world: World = world_make(
            servers.database, directory, claim_wait_seconds=3, sink_more={"answer_timeout_seconds": ANSWER_SECONDS}
        )
        self.outcomes = EXACT
        self.keys: list[str] = []
        self.workers: list[Forked] = []
        self.round = 0

    # -- a round ----------------------------------------------------------------------------------------------------

    def prepare(self) -> Recovery:
        """New events, some of them delivered by a relay of a new generation, and a recovery for the rest, not yet run."""
        self.round += 1
        self.outcomes = EXACT
        for left in Recovery.objects.exclude(state=RecoveryState.FINISHED):  # what a round that went wrong left
            self.settle(left)
        new = [f"{self.round}-{number}" for number in range(self.chance.randint(3, 12))]
        for key in new:
            self.world.commit([key])
        self.keys += new
        self.relay = self.relay_start()
        delivered = [key for key in new[:-1] if self.chance.random() < 0.5]
        again = self.chance.sample(self.keys[: -len(new)], k=min(2, len(self.keys) - len(new)))
        if delivered + again:
            self.world.deliver(delivered + again, self.relay)
        self.batch_limit(self.chance.choice([1, 2, 4, 100_000]))
        return self.world.request(self.world.approve(self.planned()))

    def again(self) -> Recovery:
        """Another plan for what is still owed, approved and requested, not yet run."""
        return self.world.request(self.world.approve(self.planned()))

    def latest(self) -> Recovery:
        return Recovery.objects.latest("created_at")

    def planned(self) -> Any:
        """No fault is done to a plan, and it writes nothing: it is made in this process, without a job on the engine."""
        for _ in range(5):
            try:
                with override_settings(FENCEPOST_IN_PROCESS_ROWS=50_000):
                    plan = self.world.plan()
            except AssertionError:  # an engine or a server that was killed a moment ago: the intent waits
                continue
            if plan.state == "ready":
                return plan
        raise Wrong(f"no plan came ready: {plan.state} {plan.says}")

    def relay_start(self) -> int:
        with psycopg.connect(self.world.sink_dsn, autocommit=True) as sink:
            row = sink.execute("SELECT answer, generation FROM fencepost.relay_start('relay')").fetchone()
        if row is None or row[0] != "started":
            raise Wrong(f"the relay could not start: {row}")
        return int(row[1])

    def batch_limit(self, limit: int) -> None:
        """The most entries that one fire of this sink lands: a recovery above it is split by frontier."""
        with psycopg.connect(self.world.sink_dsn) as sink:
            sink.execute("UPDATE fencepost.standing SET batch_limit = %s", [limit])

    def gate(self, point: Point) -> tuple[Path, str]:
        """A gate file for this round, and the value of FENCEPOST_PAUSE that holds a worker there."""
        path = self.directory / f"gate-{self.round}-{point.value}-{len(self.workers)}"
        return path, f"{point.value}:{path}"

    def worker(self, intent: Intent, name: str, **env: str) -> Forked:
        """A real worker process that takes the intent and runs it."""
        process = forked(
            "tests.faults.run_intent",
            str(intent.id),
            f"{name}-{self.round}",
            env={**os.environ, "FENCEPOST_EVIDENCE_DIR": str(self.directory / "evidence"), **env},
            stderr=(self.directory / "workers.log").open("ab"),
        )
        self.workers.append(process)
        return process

    def held_worker(self, recovery: Recovery, point: Point, **env: str) -> tuple[Forked, Path]:
        """A worker that stands at `point`; creating the returned file lets it go on."""
        gate, pause = self.gate(point)
        process = self.worker(intent_of(recovery), "first", FENCEPOST_PAUSE=pause, **env)
        reached(gate)
        return process, gate

    def settle(self, recovery: Recovery) -> Recovery:
        """Sweep and run in this process, as the next workers would, until the recovery has ended."""
        end = time.monotonic() + ROUND_SECONDS
        while time.monotonic() < end:
            control.close()
            recovery.refresh_from_db()
            if recovery.state == RecoveryState.FINISHED:
                return recovery
            intents_sweep(timezone.now() + dt.timedelta(seconds=31))
            live = recovery.intents.filter(state__in=LIVE_STATES).first()
            if live is None:
                live = recovery_settle_request(recovery, actor="chaos", now=timezone.now(), wake=False)
            Intent.objects.filter(id=live.id).update(not_before=None)
            intent_run(str(live.id), "successor")
            threading.Event().wait(0.05)
        raise Wrong(f"recovery {recovery.id} is unsettled: {recovery.state} {recovery.problem}")

    def reap(self) -> None:
        for process in self.workers:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.workers.clear()

    # -- the oracle -------------------------------------------------------------------------------------------------

    def check(self, recovery: Recovery) -> None:
        """Every committed event is in the record once, with its content, and nothing else is; the recovery says so."""
        with psycopg.connect(self.world.sink_dsn) as sink:
            accepted = Counter(
                (lane, position, ordinal, bytes(digest))
                for lane, position, ordinal, digest in sink.execute(
                    "SELECT lane, position, ordinal, payload_digest FROM fencepost.accepted"
                )
            )
            open_claims = sink.execute("SELECT count(*) FROM fencepost.claim WHERE state = 'open'").fetchone()
        committed = Counter(
            ("0", row["position"], row["ordinal"], _payload(row)) for row in self.world.batch(self.keys).to_pylist()
        )
        twice = [one[1:3] for one, count in accepted.items() if count > 1]
        lost, alien = list(committed - accepted), list(accepted - committed)
        if twice or lost or alien:
            raise Wrong(
                f"twice {twice}, lost {[one[1:3] for one in lost]}, not committed {[one[1:3] for one in alien]}"
            )
        if recovery.outcome not in self.outcomes:
            raise Wrong(f"the record is exact and the recovery says {recovery.outcome}: {recovery.says}")
        if open_claims != (0,):
            raise Wrong(f"{open_claims} claims are left open")


def intent_of(recovery: Recovery) -> Intent:
    return recovery.intents.get(state__in=LIVE_STATES)


def _payload(row: dict[str, Any]) -> bytes:
    return bytes(payload_digest(row["op"], row["key"], content_digest(content_parse(row["content"]), row["op"])))
