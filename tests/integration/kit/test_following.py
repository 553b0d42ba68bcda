"""What is new in the kit's record: found by its index, which an upgrade makes without holding anybody up."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from recovery_api.domain.errors import Refused
from tests.integration.kit.kit_world import KitWorld
from workers.connectors.sinks.kit import FOLLOWED_INDEX, KIT_VERSION
from workers.connectors.sinks.kit.releases import Release, releases, releases_of
from workers.connectors.sinks.kit.upgrade import kit_upgrade

RELEASED = [release for release in releases() if release.version == KIT_VERSION - 1]
MANY = 200_000
FILLED = """
    INSERT INTO {schema}.accepted (lane, position, ordinal, generation, accepted_at, admitted_in, payload_digest, op)
    SELECT '0', n, 0, 0, now(), pg_current_xact_id(), sha256(n::text::bytea), 'insert' FROM generate_series(%s::int, %s::int) n"""


def index_state(world: KitWorld) -> Any:
    query = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"
    return world.admin.execute(query, (f'"{world.schema}".{FOLLOWED_INDEX}',)).fetchone()


def new(world: KitWorld, since: str) -> list[int]:
    with world.sink.hold_snapshot() as reading:
        return [row["position"] for batch in world.sink.read_since(reading, since) for row in batch.to_pylist()]


def snapshot(world: KitWorld) -> str:
    with world.sink.hold_snapshot() as reading:
        return str(reading.following.snapshot)


def test_a_hundred_new_entries_are_read_without_the_blocks_of_the_others(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    world.admin.execute(world.sql(FILLED), (1, MANY))
    world.admin.execute(world.sql("VACUUM ANALYZE {schema}.accepted"))
    since = snapshot(world)
    generation = world.relay_start(relay)
    for position in range(MANY + 1, MANY + 101):
        world.deliver(relay, generation, position)
    assert new(world, since) == list(range(MANY + 1, MANY + 101))
    oldest = since.partition(":")[0]
    query = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT FROM {schema}.accepted a WHERE a.admitted_in::text::bigint >= %s"
    plan = world.one(world.admin, query, int(oldest))[0]["Plan"]
    pages = world.one(world.admin, "SELECT pg_relation_size(to_regclass(%s)) / 8192", f'"{world.schema}".accepted')
    assert FOLLOWED_INDEX in json.dumps(plan)
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < pages / 10, (plan, pages)


def test_more_than_a_block_is_read_whole_and_in_order(world: KitWorld) -> None:
    since = snapshot(world)
    world.admin.execute(world.sql(FILLED), (30_001, 60_000))
    world.admin.execute(world.sql(FILLED), (1, 30_000))
    assert new(world, since) == [*range(30_001, 60_001), *range(1, 30_001)]


@pytest.mark.parametrize("release", RELEASED, ids=lambda release: release.name)
def test_a_released_kit_is_read_in_full_until_its_upgrade_made_the_index(
    world_make: Callable[..., KitWorld], release: Release
) -> None:
    world = world_make(release=release)
    world.deliver(world.connect(world.relay), 0, 1)
    with world.sink.hold_snapshot() as reading:
        assert "--upgrade" in reading.following.problem
        with pytest.raises(Refused):
            list(world.sink.read_since(reading, "1:1:"))
    assert any("reads it in full" in weakness for weakness in world.sink.test().weaknesses)
    report = kit_upgrade(world.admin, world.kit)
    assert (report["upgraded"], report["not_indexed"], index_state(world)) == (True, "", (True,))
    assert new(world, "1:1:") == [1]
    assert not any("reads it in full" in weakness for weakness in world.sink.test().weaknesses)


def test_an_upgrade_in_a_callers_transaction_leaves_the_index_to_be_made(world_make: Callable[..., KitWorld]) -> None:
    world = world_make(release=releases_of(4)[-1])
    world.deliver(world.connect(world.relay), 0, 1)
    with world.admin.transaction():
        kit_upgrade(world.admin, world.kit)
    assert index_state(world) is None
    assert world.sink.capability().has_fence, "nothing that the kit decides rests on the index"
    assert not [path for path, _, _ in world.sink.undisciplined_paths() if path == "kit"]
    assert kit_upgrade(world.admin, world.kit)["not_indexed"] == ""
    assert index_state(world) == (True,)


def test_an_index_that_was_left_half_made_is_made_again(world: KitWorld) -> None:
    world.admin.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)",
        (f'"{world.schema}".{FOLLOWED_INDEX}',),
    )
    with world.sink.hold_snapshot() as reading:
        assert "--upgrade" in reading.following.problem
    assert kit_upgrade(world.admin, world.kit)["not_indexed"] == ""
    assert index_state(world) == (True,)


def test_deliveries_go_on_while_the_index_waits_for_an_older_transaction(
    world_make: Callable[..., KitWorld],
) -> None:
    world = world_make(release=releases_of(4)[-1])
    relay = world.connect(world.relay)
    world.deliver(relay, 0, 1)
    with world.admin.transaction():
        kit_upgrade(world.admin, world.kit)
    older, upgrader = world.connect(world.dsn), world.connect(world.dsn)
    older.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT")
    making = world.later(lambda: kit_upgrade(upgrader, world.kit))
    world.until_waiting(upgrader.info.backend_pid)
    assert world.deliver(relay, 0, 2) == "accepted"
    older.execute("ROLLBACK")
    assert making.result()["not_indexed"] == ""
    assert new(world, "1:1:") == [1, 2]
