"""A pipeline between two ends in memory, operated through the real services and workers, with a relay and a wire.

Whoever works on its recovery can be stopped at any of its steps: there other things happen, a second worker may take it
over and bring it to its end, and then the first one dies, or goes on without having noticed.
"""

from __future__ import annotations

import copy
import datetime as dt
import secrets
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.utils import timezone

from recovery_api.domain.errors import LedgerMoved, Refused
from recovery_api.domain.hand_over import relay_starts_at
from recovery_api.models import Intent, IntentState, Pipeline, Plan, Recovery
from recovery_api.services import intents
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_approve, plan_request
from recovery_api.services.recoveries import recovery_request, recovery_settle_request
from tests.stateful.memory_source import HISTORIES, batch_of, commit
from workers.connectors.sinks.memory import Memory
from workers.connectors.sinks.memory_store import STORES
from workers.recovery.strategies import recovery_run
from workers.runners import intent_run

STORED = ("counter", "fence", "purposes", "names", "claims", "accepted", "altered", "staged", "start")
"""What a backup of the sink holds: all of its store but the lock and what lives as long as its process."""


class Died(BaseException):
    """A worker process is gone: nothing of it is caught, nothing is written."""


class Interrupted:
    """A worker's report that does `act` at the worker's step number `at`."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.at, self.act, self.steps, self.has_acted = at, act, 0, False

    def __call__(self, step: str, **more: Any) -> None:
        self.check()

    def check(self) -> None:
        self.steps += 1
        if self.has_acted or self.steps < self.at or connection.in_atomic_block:
            return  # others work over the same connection here, and are in no transaction of this worker's
        self.has_acted = True
        self.act()

    check_held = check


class OperatedPipeline:
    """One pipeline with its relay. `wire`: sends that have not arrived, generation and position."""

    def __init__(self, batch_limit: int) -> None:
        self.name = f"stateful-{secrets.token_hex(4)}"
        now = timezone.now()
        source = source_create(self.name, "memory_history", {"name": self.name}, actor="ada", now=now)
        sink_options = {"name": self.name, "batch_limit": batch_limit}
        self.sink = Memory(sink_options)
        sink = sink_create(f"{self.name}-sink", "memory", sink_options, actor="ada", now=now)
        self.pipeline: Pipeline = pipeline_create(self.name, source, sink, actor="ada", now=now)
        self.generation: int | None = None
        self.position = self.cursor = 0
        self.started_from: int | None = None
        self.wire: list[tuple[int, int]] = []

    # -- source, relay, wire ----------------------------------------------------------------------------------------

    def commit(self) -> int:
        return commit(self.name)

    def committed(self) -> int:
        return len(HISTORIES.get(self.name, []))

    def relay_start(self) -> str:
        """The sink's word: `started` | `wait`."""
        answer = self.sink.generation_allocate("relay", "relay")
        if answer.word != "allocated":
            return answer.word
        generation = int(answer.data["generation"])
        word = self.sink.begin(generation).word
        handed_over = self.sink.hand_over().get("0")
        start = None if handed_over is None else int(handed_over["position"])
        self.position = relay_starts_at(self.cursor, start, self.started_from)
        self.cursor, self.generation = self.position, generation
        self.started_from = self.started_from if start is None else start
        return word

    def send(self, is_held_back: bool) -> str | None:
        """The sink's word for the next event; None: nothing to send, or it is held back in flight."""
        if self.generation is None or self.position >= self.committed():
            return None
        self.position += 1
        if is_held_back:
            self.wire.append((self.generation, self.position))
            return None
        word = self.deliver(self.generation, self.position)
        if word in ("accepted", "absorbed") and not any(send[0] == self.generation for send in self.wire):
            self.cursor = self.position
        elif word in ("fenced", "paused", "unallocated"):
            self.generation = None
        return word

    def deliver(self, generation: int, position: int) -> str:
        return self.sink.deliver(generation, batch_of([HISTORIES[self.name][position - 1]]))[0]

    def accepted(self) -> list[tuple[int, int]]:
        """Position and generation of every entry, in order of acceptance."""
        entries = sorted(self.sink.store.accepted.values(), key=lambda entry: entry["entry"])
        return [(entry["position"], entry["generation"]) for entry in entries]

    def missing(self, frontier: int) -> set[int]:
        return set(range(1, min(frontier, self.committed()) + 1)) - {position for position, _ in self.accepted()}

    # -- a backup of the sink ---------------------------------------------------------------------------------------

    def backup(self) -> dict[str, Any]:
        return {name: copy.deepcopy(getattr(self.sink.store, name)) for name in STORED}

    def restore(self, backup: dict[str, Any]) -> None:
        for name, value in copy.deepcopy(backup).items():
            setattr(STORES[self.name], name, value)

    # -- people and workers -----------------------------------------------------------------------------------------

    def plan(self, frontier: int | None) -> Plan:
        asked = None if frontier is None else str(frontier)
        plan, intent = plan_request(self.pipeline, actor="ada", now=timezone.now(), frontier=asked, wake=False)
        self.run(intent)
        plan.refresh_from_db()
        return plan

    def approve(self, plan: Plan) -> Plan:
        return plan_approve(plan.id, plan.digest, "grace", timezone.now())

    def request(self, plan: Plan) -> Recovery:
        return recovery_request(plan.id, "the relay crashed", self.name, "ada", now=timezone.now(), wake=False)

    def run(self, intent: Intent) -> None:
        """To its end, by a worker that nothing happens to."""
        intent_run(str(intent.id), "quiet worker")
        intent.refresh_from_db()
        assert intent.state == IntentState.DONE, (intent.state, intent.error)

    def work(self, recovery: Recovery, at: int, meanwhile: Callable[[], None], dies: bool) -> None:
        """A worker takes the recovery's intent; at its step number `at` something else happens, and it may die there."""
        intent = intents.intent_take(self.offer(recovery).id, f"worker {secrets.token_hex(2)}", timezone.now())
        assert intent is not None

        def interruption() -> None:
            meanwhile()
            if dies:
                raise Died

        try:
            recovery_run(intent, Interrupted(at, interruption))
        except (
            Died,
            LedgerMoved,
        ):  # another's verification came between: nothing was recorded, and it is offered again
            pass
        except Refused as refused:  # it was taken over, and its next write told it
            intent.refresh_from_db()
            assert intent.state != IntentState.TAKEN or "worker" in str(refused), refused

    def offer(self, recovery: Recovery) -> Intent:
        """The recovery's queued intent, offered again where its taker has gone without a heartbeat for too long."""
        intents.intents_sweep(timezone.now() + dt.timedelta(seconds=31))
        queued = recovery.intents.filter(state=IntentState.QUEUED).first()
        return queued or recovery_settle_request(recovery, actor="ada", now=timezone.now(), wake=False)

    def finish(self, recovery: Recovery) -> None:
        self.run(self.offer(recovery))
