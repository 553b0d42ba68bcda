"""A claim waits for what is already inside the sink, for a bounded time, and names it; and nobody overtakes it."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from recovery_api.domain.errors import Refused, SinkBusy
from tests.integration.kit.kit_world import KitWorld
from tests.programs import program_missing
from workers.connectors.readings import CoordinateRange, Width


def test_relays_with_long_transactions_do_not_overtake_a_waiting_claim(world: KitWorld) -> None:
    """Four relays always overlap; each comes back for the lock at once. On a row lock the claim would starve."""
    first = world.connect(world.relay)
    generation = world.relay_start(first)
    stop, entered = threading.Event(), threading.Barrier(5)

    def deliver_on(number: int) -> int:
        relay = world.connect(world.relay, autocommit=False)
        position, word = number, world.deliver(relay, generation, number)
        entered.wait()
        while word == "accepted" and not stop.is_set():
            relay.execute("SELECT pg_sleep(0.02)")  # inside its transaction, as a slow relay is
            relay.commit()
            position += 4
            word = world.deliver(relay, generation, position)
        relay.rollback()
        return position

    relays = [world.later(lambda number=number: deliver_on(number)) for number in range(4)]
    entered.wait()
    try:
        claimed = world.claim()  # waits at most lock_wait_seconds, else SinkBusy
    finally:
        stop.set()
    refused = {relay.result() for relay in relays}
    assert world.sink.state().fence == claimed
    assert not refused & {position for position, _ in world.record()}


def test_idle_transaction_that_blocks_the_claim_is_named(world: KitWorld) -> None:
    idle = world.connect(world.relay, "forgotten relay", autocommit=False)
    generation = world.relay_start(idle)
    idle.commit()
    world.deliver(idle, generation, 1)
    recoverer = world.sink.generation_allocate("recoverer", "test").data["generation"]
    with pytest.raises(SinkBusy) as busy:
        world.sink.claim(recoverer, {}, wait_seconds=0.05)
    says = str(busy.value)
    for part in (str(idle.info.backend_pid), "forgotten relay", "idle in transaction since", "in a transaction since"):
        assert part in says
    assert world.sink.state().fence == generation
    idle.commit()
    assert world.sink.claim(recoverer, {}).word == "granted"
    assert world.record() == [(1, generation)]


def test_prepared_transaction_that_blocks_the_claim_is_named(world: KitWorld) -> None:
    if world.one(world.admin, "SHOW max_prepared_transactions") == "0":
        program_missing("the server allows no prepared transactions: set max_prepared_transactions")
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    relay.execute("BEGIN")
    world.deliver(relay, generation, 1)
    relay.execute(f"PREPARE TRANSACTION '{world.schema}'")
    recoverer = world.sink.generation_allocate("recoverer", "test").data["generation"]
    with pytest.raises(SinkBusy, match=f"prepared transaction '{world.schema}' of"):
        world.sink.claim(recoverer, {}, wait_seconds=0.05)
    relay.execute(f"ROLLBACK PREPARED '{world.schema}'")
    assert world.sink.claim(recoverer, {}).word == "granted"
    assert world.record() == []


def test_claim_gives_up_its_place_when_its_time_is_over(world: KitWorld) -> None:
    """Relays queue behind a waiting claim only as long as it waits."""
    idle, relay = world.connect(world.relay, autocommit=False), world.connect(world.relay)
    generation = world.relay_start(idle)
    idle.commit()
    world.deliver(idle, generation, 1)
    recoverer = world.sink.generation_allocate("recoverer", "test").data["generation"]
    claiming = world.connect(world.recoverer)
    claim = world.later(lambda: world.one(claiming, "SELECT answer FROM {schema}.claim(%s, NULL, 0.5)", recoverer))
    world.until_waiting(claiming.info.backend_pid)
    delivery = world.later(lambda: world.deliver(relay, generation, 2))
    assert claim.result() == "busy"
    assert delivery.result() == "accepted"


@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "in a list"])
@pytest.mark.parametrize("purpose", ["recoverer", "relay"])
def test_delivery_that_waited_for_a_raised_fence_is_fenced_by_it(world: KitWorld, purpose: str, is_alone: bool) -> None:
    """The fence that let it queue is not the fence that it meets: it is read again behind the lock."""
    several, event = "SELECT {schema}.deliver_many(%s, %s)", {"position": "1", "op": "delete", "key": "k"}
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    raising = world.connect(world.recoverer if purpose == "recoverer" else world.relay, autocommit=False)
    newer = world.one(raising, "SELECT generation FROM {schema}.generation_allocate(%s, 'test')", purpose)
    step = "claim(%s, NULL)" if purpose == "recoverer" else "begin(%s)"
    assert world.one(raising, f"SELECT answer FROM {{schema}}.{step}", newer) in ("granted", "started")
    delivery = world.later(
        lambda: (
            world.deliver(relay, generation, 1)
            if is_alone
            else world.one(relay, several, generation, Jsonb([event]))[0]
        )
    )
    world.until_waiting(relay.info.backend_pid)
    raising.commit()
    assert delivery.result() == "fenced"
    assert world.record() == []


def test_implicit_begin_waits_no_longer_than_a_claim_does(world: KitWorld) -> None:
    idle, relay = world.connect(world.relay, autocommit=False), world.connect(world.relay)
    generation = world.relay_start(idle)
    idle.commit()
    world.deliver(idle, generation, 1)
    newer = world.one(relay, "SELECT generation FROM {schema}.generation_allocate('relay', 'next')")
    with pytest.raises(psycopg.errors.LockNotAvailable) as busy:
        world.deliver(relay, newer, 2)
    assert str(idle.info.backend_pid) in (busy.value.diag.message_detail or "")


def test_no_lock_outlives_its_transaction(world: KitWorld) -> None:
    """RC-41: behind a transaction pooler every statement may meet another session."""
    sessions = [world.connect(world.recoverer) for _ in range(2)]
    generation = world.one(sessions[0], "SELECT generation FROM {schema}.generation_allocate('recoverer', 'test')")
    assert world.one(sessions[1], "SELECT answer FROM {schema}.claim(%s, NULL)", generation) == "granted"
    assert world.one(sessions[0], "SELECT answer FROM {schema}.arm(%s, 0, '0:0:0:0', NULL)", generation) == "armed"
    assert world.one(sessions[1], "SELECT answer FROM {schema}.fire(%s, 1)", generation) == "landed"
    pids = [session.info.backend_pid for session in sessions]
    held = world.one(
        world.admin, "SELECT count(*) FROM pg_locks WHERE locktype <> 'virtualxid' AND pid = ANY(%s)", pids
    )
    assert held == 0
    assert [world.one(session, "SHOW lock_timeout") for session in sessions] == ["0", "0"]


def test_kit_takes_no_session_lock_anywhere(world: KitWorld) -> None:
    query = """
        SELECT string_agg(p.prosrc, ' ') FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = %s"""
    source: str = world.one(world.admin, query, world.schema)
    assert "LOCK TABLE" in source
    assert "advisory" not in source


def test_part_whose_snapshot_does_not_show_the_claim_is_discarded(world: KitWorld) -> None:
    older = world.claim()
    with world.sink.hold_snapshot(older) as reading:
        newer = world.claim()
        with pytest.raises(Refused, match=f"shows the fence at {newer}"), world.sink.hold_snapshot(older):
            pass
        rows = list(world.sink.read_accepted(reading, CoordinateRange("0", None, None), Width.PAYLOAD))
        assert not rows  # the held snapshot still shows the older fence, as its claim left it
    relay_generation: Any = world.sink.generation_allocate("recoverer", "not claimed").data["generation"]
    with pytest.raises(Refused, match="Claim first"), world.sink.hold_snapshot(relay_generation):
        pass
