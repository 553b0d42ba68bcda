"""A sink that is a record and no delivery: it is audited and planned, and never fired into."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.domain.abilities import Ability
from recovery_api.domain.errors import Refused
from recovery_api.models import PlanState
from recovery_api.services.ends import sink_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.sinks import sink_settle_request
from tests.integration.recovery.world import World, run
from workers.connectors.registry import delivery_find, delivery_make

RECORD = """
CREATE TABLE accepted (tx xid8, id bigint, op text, "key" text, content jsonb, PRIMARY KEY (tx, id))
"""


@pytest.fixture
def alone(world: World) -> World:
    """The world's source beside a table that only records what was accepted."""
    with psycopg.connect(world.sink_dsn) as connection:
        connection.execute(RECORD)
    names = ("coordinate", "coordinate_spelling", "key", "op", "content")
    options: dict[str, Any] = {name: world.source_options[name] for name in names}
    options |= {"connection": world.sink_options["connection"], "table": "accepted"}
    now = timezone.now()
    sink = sink_create("inbox", "postgresql_table", options, actor="ada", now=now)
    world.pipeline = pipeline_create("orders-inbox", world.pipeline.source, sink, actor="ada", now=now)
    world.sink_options = options
    return world


def test_a_record_alone_is_audited_and_planned_for_and_its_plan_says_what_is_owed(alone: World) -> None:
    alone.commit(["a", "b"])
    assert alone.audit().lost_count == 2
    plan = alone.plan()
    assert plan.state == PlanState.REFUSED, plan.says
    assert plan.audit is not None and plan.audit.lost_count == 2
    assert [row["name"] for row in plan.conditions if row["blocks"] and not row["holds"]] == ["P2"]


def test_whoever_asks_a_record_alone_for_a_delivery_is_refused_in_words(alone: World) -> None:
    assert delivery_find("postgresql_table", alone.sink_options) is None
    with pytest.raises(Refused, match="mark of an effect, and not the effect"):
        delivery_make("postgresql_table", alone.sink_options)
    with pytest.raises(Refused, match="mark of an effect"):
        delivery_make("postgresql_table", alone.sink_options, Ability.FENCED)


def test_a_table_made_anew_voids_what_was_audited_before_until_it_is_settled(alone: World) -> None:
    alone.commit(["a"])
    first = alone.audit()
    with psycopg.connect(alone.sink_dsn) as connection:
        connection.execute("DROP TABLE accepted")
        connection.execute(RECORD)
    alone.audit()
    first.refresh_from_db()
    alone.pipeline.sink.refresh_from_db()
    assert first.void_since is not None and "restored or replaced" in alone.pipeline.sink.restored_says

    run(sink_settle_request(alone.pipeline.sink, actor="ada", now=timezone.now(), wake=False))
    alone.pipeline.sink.refresh_from_db()
    assert alone.pipeline.sink.restored_at is None
    assert alone.audit().void_since is None
