"""The kit is told the source's lanes, and refuses a delivery that names another (R9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.integration.kit.kit_world import KitWorld
from workers.connectors.sinks.kit.install import kit_install

TARGET = "DROP TABLE IF EXISTS laned CASCADE; CREATE TABLE laned (k text PRIMARY KEY, body jsonb)"
MAPPED = {"prepare": TARGET, "target": "laned", "target_key": "k", "target_content": "body"}
ONE = "SELECT {schema}.deliver(%s, %s, %s, 0, NULL, 'insert', 'key', %s::jsonb)"


def test_r9_an_older_event_in_a_lane_that_the_source_does_not_have_overwrites_nothing(
    world_make: Callable[..., KitWorld],
) -> None:
    world = world_make(lanes=["0"], **MAPPED)
    relay = world.connect(world.relay)
    assert world.one(relay, ONE, 0, "0", 7, "7") == "accepted"
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="'1' is no lane of this source: it has 0"):
        world.one(relay, ONE, 0, "1", 5, "5")
    events = [{"lane": "0", "position": "8", "op": "insert", "key": "other", "content": 8}]
    strange = {"lane": "x", "position": "5", "op": "insert", "key": "key", "content": 5}
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="'x' is no lane"):
        world.one(relay, "SELECT {schema}.deliver_many(0, %s)", Jsonb([*events, strange]))
    assert world.one(relay, "SELECT {schema}.deliver_many(0, %s)", Jsonb(events)) == ["accepted"]
    assert world.admin.execute("SELECT k, body FROM laned ORDER BY k").fetchall() == [("key", 7), ("other", 8)]


def test_r9_a_kit_that_was_not_told_checks_no_lane_and_says_so(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    assert world.one(relay, ONE, 0, "any", 1, "1") == "accepted"
    assert world.one(relay, "SELECT {schema}.deliver_many(0, %s)", Jsonb([_event("other")])) == ["accepted"]
    assert world.sink.facts()["lanes"] is None
    assert "a delivery's lane is not checked" in " ".join(world.sink.capability().grounds)
    world.sink.claim_open("recovery", {"0": {"position": "1", "ordinal": "0"}})
    assert world.sink.facts()["lanes"] is None  # a frontier widens what was told, and tells nothing by itself


def test_r9_lanes_are_told_and_a_claims_frontier_widens_them(world_make: Callable[..., KitWorld]) -> None:
    world = world_make(lanes=["a", "b"])
    relay = world.connect(world.relay)
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        world.one(relay, ONE, 0, "c", 1, "1")
    place = {"position": "1", "ordinal": "0"}
    generation = world.sink.claim_open("recovery", {"c": place, "a": place}).data["generation"]
    world.sink.release(generation, "test")
    assert world.sink.facts()["lanes"] == ["a", "b", "c"]
    assert world.one(relay, ONE, world.relay_start(relay), "c", 1, "1") == "accepted"
    assert "the lanes a, b and c" in " ".join(world.sink.capability().grounds)
    world.one(world.connect(world.recoverer), "SELECT {schema}.lanes_tell(ARRAY['c'])")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        world.one(relay, ONE, world.sink.state().fence, "a", 2, "1")
    world.one(world.connect(world.recoverer), "SELECT {schema}.lanes_tell(NULL)")
    assert world.one(relay, ONE, world.sink.state().fence, "a", 2, "1") == "accepted"


def test_r9_installing_again_with_lanes_tells_the_kit_that_is_there(world: KitWorld) -> None:
    told = replace(world.kit, lanes=("a", "b"))
    assert kit_install(world.admin, told)["lanes_told"] == ["a", "b"]
    assert world.sink.facts()["lanes"] == ["a", "b"]
    assert "lanes_told" not in kit_install(world.admin, told)
    assert "lanes_told" not in kit_install(world.admin, world.kit)
    assert world.sink.facts()["lanes"] == ["a", "b"]


def _event(lane: str) -> dict[str, Any]:
    return {"lane": lane, "position": "1", "op": "delete", "key": "k"}
