"""A plan binds to what its ends were read as: over the same rows, another mapping or filter is another plan."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from django.utils import timezone

from recovery_api.services.ends import sink_create, sink_update, source_create, source_update
from recovery_api.services.pipelines import pipeline_create
from tests.integration.recovery.table_at_hand import memory_history_kind, table_at_hand
from tests.integration.recovery.world import OUTBOX, World


def test_the_sources_mapping_and_filter_are_part_of_what_is_approved(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    """Into a sink in this process's memory, so that no engine is asked."""
    dsn, reference = database_factory("orders"), tmp_path / "source.dsn"
    reference.write_text(dsn)
    options: dict[str, Any] = {
        "connection": f"file:{reference}",
        "table": "outbox",
        "coordinate": ["tx", "id"],
        "coordinate_spelling": "xid8_bigint",
        "key": "key",
        "op": "op",
        "content": "content",
    }
    now = timezone.now()
    source = source_create("orders", "postgresql_outbox", options, actor="ada", now=now)
    sink = sink_create("mail", "memory", {"name": secrets.token_hex(8)}, actor="ada", now=now)
    world = World(dsn, "", options, {}, pipeline_create("orders-mail", source, sink, actor="ada", now=now))
    with psycopg.connect(dsn) as connection:
        connection.execute(OUTBOX)
    world.commit(["a", "b"])
    digests = []
    for more in ({}, {"filter": "op = insert"}, {"filter": "op in (insert, delete)"}, {"event_id": "event_id"}):
        source_update(source, {**options, **more}, actor="ada", now=timezone.now())
        world.pipeline.refresh_from_db()
        plan = world.plan()
        assert plan.batch_count == 2, plan.says
        digests.append(plan.digest)
    assert len(set(digests)) == 4


def test_the_sinks_mapping_is_part_of_what_is_approved(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    with memory_history_kind():
        table = table_at_hand(database_factory, tmp_path)
        first = table.plan()
        sink = table.pipeline.sink
        options = {name: value for name, value in sink.options.items() if name != "event_id"}
        sink_update(sink, options, actor="ada", now=timezone.now())
        table.pipeline.refresh_from_db()
        second = table.plan()
    assert (first.batch_count, second.batch_count) == (3, 3), (first.says, second.says)
    assert first.digest != second.digest
