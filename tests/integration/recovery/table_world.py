"""A real pipeline without a fence: an outbox in one database, and an ordinary table in another that is the effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from django.utils import timezone

from recovery_api.models import Plan, Recovery
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.recoveries import recovery_request
from tests.integration.recovery.world import OUTBOX, World, run

MAILS = """
CREATE TABLE mails (
    tx xid8 NOT NULL,
    id bigint NOT NULL,
    event_id text,
    op text NOT NULL,
    "key" text,
    content jsonb
)
"""
UNIQUE = "ALTER TABLE mails ADD PRIMARY KEY (tx, id)"
ONLY = "only-recoverer"


def drained() -> str:
    return f"relay-drained since {timezone.now().isoformat()} by ada"


@dataclass
class TableWorld(World):
    """`deliver`: as a relay without any protocol would, row by row."""

    def deliver(self, keys: Iterable[str], generation: int = 0) -> list[str]:
        for key in keys:
            with psycopg.connect(self.sink_dsn) as connection:
                self.send(connection, key)
        return []

    def send(self, connection: psycopg.Connection[Any], key: str) -> None:
        for row in self.batch([key]).to_pylist():
            connection.execute(
                'INSERT INTO mails (tx, id, event_id, op, "key", content) VALUES (%s::text::xid8, %s, %s, %s, %s, %s)',
                [str(row["position"] + 2**63), row["ordinal"], row["event_id"], row["op"], key, row["content"]],
            )

    def accepted_keys(self) -> list[str]:
        with psycopg.connect(self.sink_dsn) as connection:
            return [key for (key,) in connection.execute('SELECT "key" FROM mails ORDER BY tx, id').fetchall()]

    def alter(self, statement: LiteralString) -> None:
        with psycopg.connect(self.sink_dsn) as connection:
            connection.execute(statement)

    def ask(self, plan: Plan, *attestations: str) -> Recovery:
        return recovery_request(
            *(plan.id, "the relay crashed", self.pipeline.name, "ada"),
            now=timezone.now(),
            attestations=attestations,
            wake=False,
        )

    def redrive(self, *attestations: str) -> Recovery:
        """Plan, approve, attest, apply, to the end."""
        recovery = self.ask(self.approve(self.plan()), *attestations)
        run(recovery.intents.get())
        recovery.refresh_from_db()
        return recovery


def table_world_make(
    database_factory: Callable[[str], str],
    directory: Path,
    *,
    sink_sql: LiteralString = MAILS,
    sink_more: Mapping[str, Any] | None = None,
    source_more: Mapping[str, Any] | None = None,
    **pipeline_options: Any,
) -> TableWorld:
    source_dsn, sink_dsn = database_factory("orders"), database_factory("mail")
    (directory / "source.dsn").write_text(source_dsn)
    (directory / "sink.dsn").write_text(sink_dsn)
    mapping = {
        "coordinate": ["tx", "id"],
        "coordinate_spelling": "xid8_bigint",
        "event_id": "event_id",
        "key": "key",
        "op": "op",
        "content": "content",
    }
    source_options = {
        "connection": f"file:{directory / 'source.dsn'}",
        "table": "outbox",
        "committed_at": "created_at",
        **mapping,
        **(source_more or {}),
    }
    sink_options = {
        "connection": f"file:{directory / 'sink.dsn'}",
        "table": "mails",
        "is_effect": True,
        **mapping,
        **(sink_more or {}),
    }
    with psycopg.connect(source_dsn) as connection:
        connection.execute(OUTBOX)
    with psycopg.connect(sink_dsn) as connection:
        connection.execute(sink_sql)
    now = timezone.now()
    source = source_create("orders", "postgresql_outbox", source_options, actor="ada", now=now)
    sink = sink_create("mail", "postgresql_table", sink_options, actor="ada", now=now)
    pipeline = pipeline_create("orders-mail", source, sink, actor="ada", now=now, options=pipeline_options)
    return TableWorld(source_dsn, sink_dsn, source_options, sink_options, pipeline)
