"""What a relay's delivery is answered, and whom it may not get past."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.integration.kit.kit_world import KitWorld

HIGHEST = 2**63 - 1


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
def test_relay_that_goes_on_in_an_older_snapshot_is_refused(world: KitWorld, level: psycopg.IsolationLevel) -> None:
    relay = world.connect(world.relay, autocommit=False)
    generation = world.relay_start(relay)
    relay.commit()
    relay.set_isolation_level(level)
    relay.execute("SELECT 1")  # its snapshot is older than the claim
    world.claim()
    with pytest.raises(psycopg.errors.InvalidTransactionState, match=level.name.replace("_", " ")) as refused:
        world.deliver(relay, generation, 1)
    assert "READ COMMITTED" in (refused.value.diag.message_hint or "")
    assert world.record() == []


def test_event_of_one_transaction_is_fenced_when_the_claim_came_between(world: KitWorld) -> None:
    """RC-39, RC-44: who stalled past its authority is rejected where the write lands, before any effect."""
    stalled, relay = world.connect(world.relay), world.connect(world.relay)
    generation = world.relay_start(stalled)
    assert world.deliver(stalled, generation, 7) == "accepted"
    newer = world.relay_start(relay)
    assert [world.deliver(relay, newer, position) for position in (7, 8)] == ["absorbed", "accepted"]
    assert [world.deliver(stalled, generation, position) for position in (8, 9)] == ["fenced", "fenced"]
    assert world.record() == [(7, generation), (8, newer)]


@pytest.mark.parametrize("number", [2, 1000, HIGHEST])
def test_generation_never_allocated_is_refused_and_the_fence_stays(world: KitWorld, number: int) -> None:
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    assert world.deliver(relay, number, 1) == "unallocated"
    assert world.one(relay, "SELECT answer FROM {schema}.begin(%s)", number) == "unallocated"
    assert world.sink.claim(number, {}).word == "unallocated"
    assert world.sink.state().fence == generation
    assert world.deliver(relay, generation, 1) == "accepted"


def test_generation_of_another_login_is_not_allocated_to_this_one(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    generation = world.claim()
    assert world.deliver(relay, generation, 1) == "unallocated"
    world.sink.release(generation, "test")
    relays = world.one(relay, "SELECT generation FROM {schema}.generation_allocate('relay', 'next')")
    assert world.sink.claim(relays, {}).word == "unallocated"


def test_a_relays_generation_is_its_logins_own_while_the_fence_stands_there(world: KitWorld) -> None:
    """The common case reads the fence's owner, too: another relay's login, with every right, delivers nothing under it."""
    other = world.connect(world.login_make("other", world.names.relay))
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    assert world.deliver(relay, generation, 1) == "accepted"
    assert world.deliver(other, generation, 2) == "unallocated"
    event = {"position": "3", "op": "insert", "key": "k"}
    assert world.one(other, "SELECT {schema}.deliver_many(%s, %s)", generation, Jsonb([event])) == ["unallocated"]
    assert world.record() == [(1, generation)]


def test_coordinates_at_the_ends_of_64_bits_are_accepted_once(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    for position in (HIGHEST, -HIGHEST - 1):
        assert [world.deliver(relay, generation, position) for _ in range(2)] == ["accepted", "absorbed"]
    generation, arm = world.staged(HIGHEST - 1, -HIGHEST)
    assert world.sink.fire(generation, arm).data["landed_count"] == 2


def test_relay_waits_while_a_claim_is_open_and_starts_where_the_fire_handed_over(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    generation, arm = world.staged(4, 5)
    answer, number, detail = world.one(relay, "SELECT answer, generation, detail FROM {schema}.relay_start('relay')")
    assert (answer, number, detail["claim"]) == ("wait", None, generation)
    start = {"0": {"position": "5", "ordinal": "0"}}
    assert world.sink.fire(generation, arm, start).word == "landed"
    answer, number, found = world.one(relay, "SELECT answer, generation, start FROM {schema}.relay_start('relay')")
    assert (answer, number) == ("started", generation + 1)
    assert found == {"0": start["0"] | {"generation": str(generation)}}, "and says whose hand-over it is"
    assert world.sink.hand_over() == start


def test_claim_left_open_past_the_bound_holds_no_relay_up(world_make: Callable[..., KitWorld]) -> None:
    world = world_make(relay_wait_seconds=1)
    world.claim()
    relay = world.connect(world.relay)
    world.until("SELECT {schema}.relay_must_wait() IS NULL")
    world.relay_start(relay)
    assert world.sink.state().open_claim is None


def test_altered_event_is_absorbed_and_recorded_once_a_digest(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    contents = ['{"a": 1.0}', '{"a": 1}', '{"a": 2}', '{"a": 2.00}', '{"a": "1"}', None]
    words = [world.deliver(relay, generation, 1, content, op="update" if content else "delete") for content in contents]
    assert words == ["accepted", "absorbed", "altered", "altered", "altered", "altered"]
    assert world.one(world.admin, "SELECT count(*) FROM {schema}.altered") == 3
    assert len(world.record()) == 1


def test_absent_content_null_and_the_empty_text_are_three(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    query = "SELECT {schema}.deliver_many(%s, %s)"
    events = [{"position": "1", "op": "update", **content} for content in ({}, {"content": None}, {"content": ""})]
    assert world.one(relay, query, generation, Jsonb(events)) == ["accepted", "altered", "altered"]
    assert world.one(world.admin, "SELECT count(*) FROM {schema}.altered") == 2


def test_batch_of_events_is_one_transaction(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    events = [{"position": "1", "op": "insert"}, {"position": "2", "op": "no such op"}]
    with pytest.raises(psycopg.errors.CheckViolation):
        world.one(relay, "SELECT {schema}.deliver_many(%s, %s)", generation, Jsonb(events))
    assert world.record() == []


def test_raising_the_fence_after_delivering_in_one_transaction_is_refused_and_does_not_deadlock(
    world: KitWorld,
) -> None:
    relay = world.connect(world.relay, autocommit=False)
    older = world.relay_start(relay)
    relay.commit()
    newer = world.one(relay, "SELECT generation FROM {schema}.generation_allocate('relay', 'next')")
    relay.commit()
    assert world.deliver(relay, older, 1) == "accepted"
    with pytest.raises(psycopg.errors.InvalidTransactionState, match="would raise the fence"):
        world.deliver(relay, newer, 2)
    relay.rollback()
    assert world.deliver(relay, newer, 2) == "accepted"
    relay.commit()
    assert world.record() == [(2, newer)]


def test_two_relays_that_deliver_one_coordinate_at_once_are_accepted_and_absorbed(world: KitWorld) -> None:
    first, second = world.connect(world.relay, autocommit=False), world.connect(world.relay)
    generation = world.relay_start(first)
    first.commit()
    assert world.deliver(first, generation, 1) == "accepted"
    answer = world.later(lambda: world.deliver(second, generation, 1))
    world.until_waiting(second.info.backend_pid)
    first.commit()
    assert answer.result() == "absorbed"


def test_position_of_an_unsigned_source_is_held_in_order(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    query = "SELECT {schema}.held('0/0'::pg_lsn), {schema}.held('FFFFFFFF/FFFFFFFF'::pg_lsn), {schema}.held('7'::xid8)"
    assert world.one(relay, query) == (-(2**63), HIGHEST, 7 - 2**63)
