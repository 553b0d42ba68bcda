"""Whole audits of tables as they are: through filter, path and join, and through a view; what another filter voids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.models import Audit, Pipeline, PlanState
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import sink_create, source_create, source_update
from recovery_api.services.pipelines import pipeline_create
from tests.integration.recovery.world import run, world_make

SOURCE = """
CREATE TABLE orders (id bigint PRIMARY KEY, number text);
INSERT INTO orders VALUES (7, 'A-7'), (8, 'A-8');
CREATE TABLE messages (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, order_id bigint, headers text, body bytea
);
CREATE VIEW mail AS
    SELECT m.id, m.headers::json ->> 'id' AS event_id, o.number, convert_from(m.body, 'UTF8')::json -> 'event' AS doc
    FROM messages m LEFT JOIN orders o ON o.id = m.order_id WHERE m.kind = 'mail'
"""
MAPPED = {
    "table": "messages",
    "coordinate": ["id"],
    "event_id": "headers->id",
    "key": "joined.number",
    "content": "body",
    "content_format": "json_bytes",
    "joined_table": "orders",
    "joined_on": {"order_id": "id"},
    "filter": "kind = 'mail'",
    "share_lock": True,
}
VIEWED = {
    "table": "mail",
    "coordinate": ["id"],
    "event_id": "event_id",
    "key": "number",
    "content": "doc",
    "grace_seconds": 0,
}
RECORD = "CREATE TABLE accepted (id bigint PRIMARY KEY, key text, content text)"


class Mapped:
    """One source of messages, of which those of kind mail are owed, and a record in another database."""

    def __init__(self, source_dsn: str, sink_dsn: str, directory: Path, options: dict[str, Any]) -> None:
        self.source_dsn, self.sink_dsn = source_dsn, sink_dsn
        (directory / "source.dsn").write_text(source_dsn)
        (directory / "sink.dsn").write_text(sink_dsn)
        self.at(source_dsn, SOURCE)
        self.at(sink_dsn, RECORD)
        self.reference = f"file:{directory / 'source.dsn'}"
        now = timezone.now()
        source = source_create(
            "messages", "postgresql_outbox", {"connection": self.reference, **options}, actor="ada", now=now
        )
        sink_options = {
            "connection": f"file:{directory / 'sink.dsn'}",
            "table": "accepted",
            "coordinate": ["id"],
            "key": "key",
            "content": "content",
        }
        sink = sink_create("accepted", "postgresql_table", sink_options, actor="ada", now=now)
        self.pipeline: Pipeline = pipeline_create("messages-accepted", source, sink, actor="ada", now=now)

    def at(self, dsn: str, text: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(text.encode())

    def commit(self, count: int, kind: str = "mail", is_rolled_back: bool = False) -> None:
        with psycopg.connect(self.source_dsn) as connection:
            connection.execute(
                "INSERT INTO messages (kind, order_id, headers, body) SELECT %s, 7 + n %% 3, json_build_object('id', n),"
                """ convert_to(format('{"event": {"n": %%s.0}}', n), 'UTF8') FROM generate_series(1, %s) AS n""",
                [kind, count],
            )
            if is_rolled_back:
                connection.rollback()

    def accept(self, where: str) -> None:
        """As a relay that sends what `where` chooses, escaped and spelled in its own way."""
        with psycopg.connect(self.source_dsn) as connection:
            rows = connection.execute(
                "SELECT m.id, o.number, convert_from(body, 'UTF8')::jsonb FROM messages m LEFT JOIN orders o"
                f" ON o.id = m.order_id WHERE {where}".encode()
            ).fetchall()
        whole = self.pipeline.source.options["table"] == "messages"
        sent = [(one, key, f'{{"event": {{"n":{body["event"]["n"]:.0f}}}}}') for one, key, body in rows]
        with psycopg.connect(self.sink_dsn) as connection:
            for one, key, body in sent:
                content = body if whole else body.removeprefix('{"event": ').removesuffix("}")
                connection.execute("INSERT INTO accepted VALUES (%s, %s, %s)", [one, key, content])

    def audit(self) -> Audit:
        intent = audit_request(self.pipeline, actor="ada", now=timezone.now(), wake=False)
        run(intent)
        return self.pipeline.audits.get(intent=intent)


@pytest.fixture
def made(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any
) -> Callable[[dict[str, Any]], Mapped]:
    return lambda options: Mapped(database_factory("messages"), database_factory("accepted"), tmp_path, options)


def causes(audit: Audit) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in audit.findings:
        found.setdefault(one["finding"], []).append(one["coordinate"])
    return found


def test_an_audit_through_filter_path_and_join_is_of_the_rows_that_are_owed(made: Any) -> None:
    mapped = made(MAPPED)
    mapped.commit(6)
    mapped.commit(4, kind="metrics")
    mapped.commit(2, is_rolled_back=True)
    mapped.commit(3)
    mapped.accept("kind = 'mail'")
    audit = mapped.audit()
    assert (audit.status, audit.says) == ("exactly_once", audit.says), audit.says
    mapped.commit(2)
    mapped.accept("m.id = (SELECT max(id) FROM messages)")
    owed = mapped.audit()
    assert owed.status == "owed", owed.says
    assert causes(owed) == {"lost": ["16"]}
    assert any("Only rows with kind = 'mail' are owed" in one for one in owed.weaknesses)


def test_what_a_filter_hides_is_never_called_premature_without_naming_the_filter(made: Any) -> None:
    mapped = made(MAPPED)
    mapped.commit(3)
    mapped.commit(1, kind="metrics")
    mapped.accept("true")
    audit = mapped.audit()
    assert audit.status == "hazard", audit.says
    assert causes(audit) == {"premature": ["4"]}
    assert any("look at the filter before you call it premature" in one for one in audit.weaknesses)
    assert any("1 of the 1 entries" in one and "leaves out (4)" in one for one in audit.weaknesses)
    mapped.at(mapped.sink_dsn, "DELETE FROM accepted WHERE id = 4; INSERT INTO accepted VALUES (99, 'k', '{}')")
    invented = mapped.audit()
    assert causes(invented) == {"premature": ["99"]}
    assert any("None of the 1 entries" in one for one in invented.weaknesses)


def test_an_audit_through_a_view_is_right_and_on_an_assumed_ground(made: Any) -> None:
    viewed = made(VIEWED)
    viewed.commit(5)
    viewed.commit(2, kind="metrics")
    viewed.commit(5)
    viewed.accept("kind = 'mail' AND m.id <> 3")
    owed = viewed.audit()
    assert (owed.status, causes(owed)) == ("owed", {"lost": ["3"]})
    viewed.accept("m.id = 3")
    audit = viewed.audit()
    assert audit.status == "exactly_once_given", audit.says
    assert any("is a view over public.messages and public.orders" in one for one in audit.weaknesses)


def test_under_another_filter_audits_are_void_and_nothing_is_late(made: Any) -> None:
    mapped = made(MAPPED)
    mapped.commit(3)
    mapped.commit(1, kind="metrics")
    mapped.accept("kind = 'mail'")
    audit = mapped.audit()
    assert audit.status == "exactly_once"
    options = {"connection": mapped.reference, **MAPPED, "filter": "kind in (mail, metrics)"}
    source_update(mapped.pipeline.source, options, actor="ada", now=timezone.now())
    mapped.pipeline.refresh_from_db()
    audit.refresh_from_db()
    assert audit.void_since is not None and "filter" in audit.void_says
    owed = mapped.audit()
    assert (owed.status, causes(owed)) == ("owed", {"lost": ["4"]})
    assert not any("Late" in one for one in [owed.says, *owed.weaknesses]), "another filter is no late row"


def test_a_plan_under_another_filter_is_another_plan_though_the_same_rows_are_owed(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any
) -> None:
    world = world_make(database_factory, tmp_path, source_more={"filter": "op = insert"})
    world.commit(["a", "b"])
    first = world.plan()
    assert (first.state, first.batch_count) == (PlanState.READY, 2)
    approved = world.approve(first)
    options = {**world.source_options, "filter": "op in (insert, delete)"}
    source_update(world.pipeline.source, options, actor="ada", now=timezone.now())
    world.pipeline.refresh_from_db()
    approved.refresh_from_db()
    assert approved.state == PlanState.LAPSED
    second = world.plan()
    assert second.batch_count == 2 and second.digest != first.digest
