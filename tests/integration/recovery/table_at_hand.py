"""A pipeline from a history in this process's memory into an ordinary table: recovered without the engine.

An end that lives in one process's memory has its jobs' tasks run there, too, so plans and recoveries take their usual way.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from django.utils import timezone

from recovery_api.domain.errors import TerminalError
from recovery_api.domain.kinds import base as kinds
from recovery_api.models import Pipeline, Plan, Recovery
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.intents import intent_take
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_approve, plan_request
from recovery_api.services.recoveries import recovery_request
from tests.integration.recovery.table_world import ONLY, drained
from tests.integration.recovery.world import run
from tests.stateful.memory_source import HISTORIES, commit
from workers.heart import Report
from workers.recovery.ends import session_open
from workers.recovery.strategies import driver_make
from workers.recovery.strategies.driver import Driver

MAILS = 'CREATE TABLE mails (id bigint NOT NULL, event_id text, op text NOT NULL, "key" text, content jsonb)'
UNIQUE = "ALTER TABLE mails ADD PRIMARY KEY (id)"
MAPPING = {"coordinate": ["id"], "event_id": "event_id", "key": "key", "op": "op", "content": "content"}


class Died(BaseException):
    """The worker is gone: nothing of it is caught, nothing is written."""


@contextmanager
def memory_history_kind() -> Iterator[None]:
    """The source of the stateful tests is a kind while this lasts."""
    kinds.KINDS["memory_history"] = "tests.stateful.memory_source"
    try:
        yield
    finally:
        del kinds.KINDS["memory_history"]


@dataclass
class TableAtHand:
    """Events are numbered from 1, and told by that number at both ends."""

    name: str
    sink_dsn: str
    pipeline: Pipeline

    @property
    def history(self) -> list[dict[str, Any]]:
        return HISTORIES[self.name]

    def deliver(self, *numbers: int) -> None:
        """As a relay without any protocol would."""
        with psycopg.connect(self.sink_dsn) as connection:
            for row in (self.history[number - 1] for number in numbers):
                values = [row["position"], row["event_id"], row["op"], row["key"], row["content"]]
                connection.execute("INSERT INTO mails VALUES (%s, %s, %s, %s, %s)", values)

    def accepted(self) -> list[int]:
        with psycopg.connect(self.sink_dsn) as connection:
            return [number for (number,) in connection.execute("SELECT id FROM mails ORDER BY id").fetchall()]

    def alter(self, statement: LiteralString) -> None:
        with psycopg.connect(self.sink_dsn) as connection:
            connection.execute(statement)

    def plan(self) -> Plan:
        plan, intent = plan_request(self.pipeline, actor="ada", now=timezone.now(), wake=False)
        run(intent)
        plan.refresh_from_db()
        return plan

    def ask(self, plan: Plan, *attestations: str) -> Recovery:
        plan_approve(plan.id, plan.digest, "grace", timezone.now())
        about = (plan.id, "the relay crashed", self.name, "ada")
        return recovery_request(*about, now=timezone.now(), attestations=attestations, wake=False)

    def audit(self) -> Any:
        intent = audit_request(self.pipeline, actor="ada", now=timezone.now(), wake=False)
        run(intent)
        return self.pipeline.audits.get(intent=intent)

    def asked(self) -> Recovery:
        """Planned, approved, attested, and not begun."""
        return self.ask(self.plan(), drained(), ONLY)


def ended(recovery: Recovery) -> Recovery:
    """The recovery, run to its end by one worker that nothing happens to."""
    run(recovery.intents.get())
    recovery.refresh_from_db()
    return recovery


@contextmanager
def driven(recovery: Recovery, report: Callable[[Any], Any] = Report) -> Iterator[Driver]:
    """The recovery's driver, whose steps are the test's to take."""
    intent = intent_take(str(recovery.intents.get().id), "by hand", timezone.now())
    assert intent is not None
    with session_open(intent) as session:
        yield driver_make(intent, report(intent), session)


def step_or_refuse(driver: Driver) -> None:
    """One step, as a worker takes it."""
    try:
        driver.step()
    except TerminalError as error:
        driver.refuse(error)


def table_at_hand(
    database_factory: Callable[[str], str], directory: Path, *, sink_sql: LiteralString = MAILS, events: int = 4
) -> TableAtHand:
    """Of `events` events the second is delivered."""
    name, dsn = f"at-hand-{secrets.token_hex(4)}", database_factory("mail")
    (directory / "sink.dsn").write_text(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute(sink_sql)
    now = timezone.now()
    source = source_create(name, "memory_history", {"name": name}, actor="ada", now=now)
    options = {"connection": f"file:{directory / 'sink.dsn'}", "table": "mails", "is_effect": True, **MAPPING}
    sink = sink_create(f"{name}-sink", "postgresql_table", options, actor="ada", now=now)
    made = TableAtHand(name, dsn, pipeline_create(name, source, sink, actor="ada", now=now))
    for _ in range(events):
        commit(name)
    made.deliver(2)
    return made
