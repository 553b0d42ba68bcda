"""A real pipeline to break: an outbox in one database, the sink kit in another, registered and ready."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pyarrow as pa
from django.utils import timezone
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import kit_options
from recovery_api.models import Intent, Pipeline, Plan, Recovery
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.plans import plan_approve, plan_request
from recovery_api.services.recoveries import recovery_request
from workers.connectors.registry import delivery_make
from workers.connectors.sinks.kit.install import kit_install
from workers.evidence import schemas
from workers.runners import intent_run

OUTBOX = """
CREATE TABLE outbox (
    tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    event_id text NOT NULL DEFAULT gen_random_uuid()::text,
    op text NOT NULL DEFAULT 'insert',
    "key" text NOT NULL,
    content jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tx, id)
)
"""


@dataclass
class World:
    """One pipeline and both of its ends, opened as a superuser for looking and for breaking."""

    source_dsn: str
    sink_dsn: str
    source_options: dict[str, Any]
    sink_options: dict[str, Any]
    pipeline: Pipeline

    def commit(self, keys: Iterable[str], content: Any = None) -> None:
        """One transaction that commits an event a key."""
        with psycopg.connect(self.source_dsn) as connection:
            for key in keys:
                body = json.dumps({"key": key, "amount": 1.50} if content is None else content)
                connection.execute('INSERT INTO outbox ("key", content) VALUES (%s, %s)', [key, body])

    def deliver(self, keys: Iterable[str], generation: int = 0) -> list[str]:
        """Deliver the committed events of these keys through the kit's admission, as a relay of `generation`."""
        return self.sink().deliver(generation, self.batch(keys))

    def batch(self, keys: Iterable[str]) -> pa.Table:
        with psycopg.connect(self.source_dsn) as connection:
            rows = connection.execute(
                'SELECT tx::text, id, event_id, op, "key", content::text FROM outbox WHERE "key" = ANY(%s) ORDER BY tx, id',
                [list(keys)],
            ).fetchall()
        return pa.Table.from_pylist(
            [
                {
                    "lane": "0",
                    "position": int(tx) - 2**63,
                    "ordinal": number,
                    "event_id": event_id,
                    "op": op,
                    "key": key,
                    "content": content,
                }
                for tx, number, event_id, op, key, content in rows
            ],
            schema=schemas.BATCH,
        )

    def commit_text(self, key: str, content: str) -> None:
        """One event whose content is this JSON text, as it stands."""
        with psycopg.connect(self.source_dsn) as connection:
            connection.execute('INSERT INTO outbox ("key", content) VALUES (%s, %s)', [key, content])

    def coordinate(self, key: str) -> str:
        """The coordinate of the key's event, in the source's spelling."""
        row = self.batch([key]).to_pylist()[0]
        return f"{row['position'] + 2**63}:{row['ordinal']}"

    def use_json_column(self) -> None:
        """`json` keeps what `jsonb` refuses: NUL and half surrogate pairs."""
        with psycopg.connect(self.source_dsn) as connection:
            connection.execute("ALTER TABLE outbox ALTER content TYPE json")

    def source_retention(self, retention: str) -> None:
        source = self.pipeline.source
        source.options = {**source.options, "retention": retention}
        source.save()

    def sink_backup(self, database_factory: Callable[[str], str]) -> str:
        """A copy of the sink's database as it is now. Returns its dsn."""
        copy = database_factory("backup")
        old, new = conninfo_to_dict(self.sink_dsn)["dbname"], conninfo_to_dict(copy)["dbname"]
        with psycopg.connect(self.source_dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(str(new))))
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(str(new)), sql.Identifier(str(old)))
            )
        return copy

    def sink_restore(self, backup: str) -> None:
        """The sink is from now on what it was at the backup."""
        Path(self.sink_options["connection"].removeprefix("file:")).write_text(backup)
        self.sink_dsn = backup

    def sink(self) -> Any:
        return delivery_make("postgresql_kit", self.sink_options)

    def accepted_keys(self) -> list[str]:
        """The record's keys in order of acceptance, read by plain SQL."""
        with psycopg.connect(self.sink_dsn) as connection:
            rows = connection.execute('SELECT "key" FROM fencepost.accepted ORDER BY entry').fetchall()
        return [row[0] for row in rows]

    def record_fingerprint(self) -> str:
        """Everything in the kit's schema, sequences included: equal before and after means that nothing was written."""
        with psycopg.connect(self.sink_dsn) as connection:
            found = connection.execute(
                "SELECT c.relname, c.relkind = 'S' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE n.nspname = 'fencepost' AND c.relkind IN ('r', 'S') ORDER BY 1"
            ).fetchall()
            whole = [
                (name, connection.execute(f'SELECT {what} FROM fencepost."{name}" t ORDER BY 1').fetchall())
                for name, is_sequence in found
                for what in ["last_value, is_called" if is_sequence else "t::text"]
            ]
        return repr(whole)

    # -- the product, as an operator uses it ------------------------------------------------------------------------

    def until_safe(self) -> None:
        """Wait until no transaction of the cluster (another test's, a vacuum's) holds the safe frontier below the head."""
        waiting = threading.Event()
        with psycopg.connect(self.source_dsn, autocommit=True) as connection:
            while connection.execute(
                "SELECT coalesce(max(tx), '0'::xid8) < pg_snapshot_xmin(pg_current_snapshot()) FROM outbox"
            ).fetchone() != (True,):
                waiting.wait(0.05)

    def audit(self, frontier: str | None = None, *, is_safe: bool = True) -> Any:
        if is_safe:
            self.until_safe()
        intent = audit_request(self.pipeline, actor="ada", now=timezone.now(), frontier=frontier, wake=False)
        run(intent)
        return self.pipeline.audits.get(intent=intent)

    def plan(self, frontier: str | None = None) -> Plan:
        self.until_safe()
        plan, intent = plan_request(self.pipeline, actor="ada", now=timezone.now(), frontier=frontier, wake=False)
        run(intent)
        plan.refresh_from_db()
        return plan

    def approve(self, plan: Plan) -> Plan:
        return plan_approve(plan.id, plan.digest, "grace", timezone.now())

    def request(self, plan: Plan) -> Recovery:
        return recovery_request(plan.id, "the relay crashed", self.pipeline.name, "ada", now=timezone.now(), wake=False)

    def recover(self, frontier: str | None = None) -> Recovery:
        """Plan, approve, apply, to the end."""
        recovery = self.request(self.approve(self.plan(frontier)))
        run(recovery.intents.get())
        recovery.refresh_from_db()
        return recovery


def run(intent: Intent, taken_by: str = "test") -> Intent:
    """Run the intent here and show its own error where it failed."""
    intent_run(str(intent.id), taken_by)
    intent.refresh_from_db()
    assert intent.state == "done", (intent.state, intent.error)
    return intent


def world_make(
    database_factory: Callable[[str], str],
    directory: Path,
    *,
    target: bool = False,
    source_more: Mapping[str, Any] | None = None,
    sink_more: Mapping[str, Any] | None = None,
    sink_sql: LiteralString = "",
    **pipeline_options: Any,
) -> World:
    source_dsn, sink_dsn = database_factory("orders"), database_factory("mail")
    (directory / "source.dsn").write_text(source_dsn)
    (directory / "sink.dsn").write_text(sink_dsn)
    source_options = {
        "connection": f"file:{directory / 'source.dsn'}",
        "table": "outbox",
        "coordinate": ["tx", "id"],
        "coordinate_spelling": "xid8_bigint",
        "event_id": "event_id",
        "key": "key",
        "op": "op",
        "content": "content",
        "committed_at": "created_at",
        **(source_more or {}),
    }
    sink_options: dict[str, Any] = {"connection": f"file:{directory / 'sink.dsn'}", **(sink_more or {})}
    with psycopg.connect(source_dsn) as connection:
        connection.execute(OUTBOX)
    if sink_sql:
        with psycopg.connect(sink_dsn) as connection:
            connection.execute(sink_sql)
    if target:
        with psycopg.connect(sink_dsn) as connection:
            connection.execute('CREATE TABLE mail ("key" text PRIMARY KEY, content jsonb)')
        sink_options |= {"target": "mail", "target_key": "key", "target_content": "content"}
    with psycopg.connect(sink_dsn, autocommit=True) as connection:
        kit_install(connection, kit_options(options_parse(kind_get("postgresql_kit"), sink_options)))
    now = timezone.now()
    source = source_create("orders", "postgresql_outbox", source_options, actor="ada", now=now)
    sink = sink_create("mail", "postgresql_kit", sink_options, actor="ada", now=now)
    pipeline = pipeline_create("orders-mail", source, sink, actor="ada", now=now, options=pipeline_options)
    return World(source_dsn, sink_dsn, source_options, sink_options, pipeline)
