"""An effect function that needs each key's events in order: the plan lists what was overtaken, and a person confirms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.domain.errors import Refused
from recovery_api.models import Plan, PlanState, Recovery, RecoveryOutcome
from recovery_api.services.recoveries import recovery_request
from tests.integration.recovery.world import World, run, world_make

EFFECT = """
CREATE TABLE state ("key" text PRIMARY KEY, content jsonb);
CREATE FUNCTION remember(lane text, "position" bigint, ordinal bigint, op text, key text, content jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER AS $$
    INSERT INTO public.state VALUES (key, content) ON CONFLICT ("key") DO UPDATE SET content = EXCLUDED.content
$$;
"""


@pytest.fixture
def make(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any
) -> Callable[[str], World]:
    def with_order(order: str) -> World:
        effect = {"effect_function": "remember", "effect_order": order}
        return world_make(database_factory, tmp_path, sink_sql=EFFECT, sink_more=effect)

    return with_order


def overtaken(world: World, keys: list[str]) -> None:
    """Two events of each key are committed, and the second alone is delivered."""
    for content in (1, 2):
        for key in keys:
            world.commit([key], content)
    batch = world.batch(keys)
    world.sink().deliver(0, batch.slice(len(keys)))


def order_of(plan: Plan) -> dict[str, Any]:
    (found,) = [condition for condition in plan.conditions if condition["name"] == "order"]
    return dict(found)


def request(world: World, plan: Plan, *attestations: str) -> Recovery:
    return recovery_request(
        plan.id, "it died", world.pipeline.name, "ada", now=timezone.now(), attestations=attestations, wake=False
    )


def test_overtaken_keys_are_listed_and_applied_only_when_a_person_confirms(make: Callable[[str], World]) -> None:
    world = make("ordered")
    overtaken(world, ["b", "a"])
    world.commit(["alone"], 1)
    world.commit(["alone"], 2)
    world.commit(["before"], 1)
    world.sink().deliver(0, world.batch(["before"]))
    world.commit(["before"], 2)
    plan = world.plan()
    assert plan.state == PlanState.READY
    assert plan.batch_count == 5
    assert plan.pins["later_keys"] == {"count": "2", "first": ["a", "b"]}
    found = order_of(plan)
    assert found["holds"] is False
    assert '2 keys of the batch have a later event accepted: "a", "b".' in found["says"]
    world.approve(plan)
    for attestations in ((), ("something else",)):
        with pytest.raises(Refused, match="2 keys of the batch have a later event accepted"):
            request(world, plan, *attestations)
    plan.refresh_from_db()
    assert plan.state == PlanState.APPROVED
    recovery = request(world, plan, "later-events-confirmed")
    assert recovery.attestations == ["later-events-confirmed"]
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    with psycopg.connect(world.sink_dsn) as connection:
        state: dict[str, int] = dict(connection.execute('SELECT "key", content FROM state').fetchall())
    assert state == {"a": 1, "b": 1, "alone": 2, "before": 2}  # what was confirmed: the older event came last


def test_every_overtaken_key_is_counted_and_the_first_fifty_are_named(make: Callable[[str], World]) -> None:
    world = make("ordered")
    overtaken(world, [f"key {number:03}" for number in range(60)])
    plan = world.plan()
    assert plan.pins["later_keys"] == {"count": "60", "first": [f"key {number:03}" for number in range(50)]}
    assert "and 10 more." in order_of(plan)["says"]


def test_an_ordered_effect_with_nothing_overtaken_needs_no_confirmation(make: Callable[[str], World]) -> None:
    world = make("ordered")
    world.commit(["a"], 1)
    world.sink().deliver(0, world.batch(["a"]))
    world.commit(["a"], 2)
    plan = world.plan()
    assert order_of(plan)["holds"] is True
    assert request(world, world.approve(plan)).attestations == []


@pytest.mark.parametrize("order", ["order-free", "guarded"])
def test_an_effect_that_needs_no_order_lists_nothing(make: Callable[[str], World], order: str) -> None:
    world = make(order)
    overtaken(world, ["a"])
    plan = world.plan()
    assert order_of(plan)["holds"] is True
    assert plan.pins["later_keys"] is None


def test_a_right_to_write_the_record_is_named_in_the_plan(make: Callable[[str], World]) -> None:
    world = make("ordered")
    world.commit(["a"], 1)
    with psycopg.connect(world.sink_dsn) as connection:
        connection.execute("GRANT INSERT ON fencepost.accepted TO PUBLIC")
    plan = world.plan()
    (found,) = [condition for condition in plan.conditions if condition["name"] == "C1"]
    assert found["holds"] is False
    assert "everybody holds INSERT on fencepost.accepted" in found["says"]
    assert plan.state == PlanState.READY


def test_a_key_that_is_overtaken_between_plan_and_claim_refuses_the_fire(make: Callable[[str], World]) -> None:
    world = make("ordered")
    world.commit(["a"], 1)
    plan = world.approve(world.plan())
    world.commit(["a"], 2)
    world.sink().deliver(0, world.batch(["a"]).slice(1))
    recovery = request(world, plan)
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert recovery.outcome == RecoveryOutcome.REFUSED
    assert "later event" in recovery.says
    assert world.sink().state().open_claim is None
    assert world.accepted_keys() == ["a"]
