"""Whatever a step waits for at the sink, it waits for a bounded time and names whom; and no stranger can hold it up."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from psycopg import sql

from recovery_api.domain.errors import SinkBusy
from tests.integration.kit.kit_world import PASSWORD, KitWorld
from workers.connectors.sinks.kit import MOST_WAIT_SECONDS, lock_key

START = "SELECT answer, detail FROM {schema}.relay_start('another', %s)"


def test_r2_a_relay_idle_after_it_drew_a_number_is_named_and_holds_nobody_up_for_good(world: KitWorld) -> None:
    idle = world.connect(world.relay, "idle relay", autocommit=False)
    drawn = "SELECT answer FROM {schema}.generation_allocate('relay', 'idle')"
    assert world.one(idle, drawn) == "allocated"
    pid = str(idle.info.backend_pid)
    with pytest.raises(SinkBusy) as busy:
        world.sink.generation_allocate("recoverer", "test")
    assert pid in str(busy.value) and "idle relay" in str(busy.value)
    with pytest.raises(SinkBusy, match=pid):
        world.sink.claim_open("test", {}, wait_seconds=0.05)
    answer, detail = world.one(world.connect(world.relay), START, 0.05)
    assert (answer, str(detail["waits_for"][0]["pid"])) == ("wait", pid)
    answer, detail = world.one(world.connect(world.relay), drawn.replace("answer", "answer, detail"))
    assert (answer, str(detail["waits_for"][0]["pid"])) == ("wait", pid)
    with pytest.raises(psycopg.errors.LockNotAvailable) as raising:
        world.one(world.connect(world.recoverer), "SELECT {schema}.counter_raise(9)")
    assert pid in (raising.value.diag.message_detail or "")
    idle.commit()
    assert world.sink.claim_open("test", {}).word == "granted"


def test_r2_deliveries_go_on_while_somebody_waits_for_a_number(world: KitWorld) -> None:
    """A number is waited for before the lock that deliveries share, not under it."""
    relay, idle = world.connect(world.relay), world.connect(world.relay, autocommit=False)
    generation = world.relay_start(relay)
    world.one(idle, "SELECT answer FROM {schema}.generation_allocate('relay', 'idle')")
    starting = world.connect(world.relay)
    start = world.later(lambda: world.one(starting, START, 30))
    world.until_waiting(starting.info.backend_pid)
    assert world.deliver(relay, generation, 1) == "accepted"
    idle.rollback()
    assert start.result()[0] == "started"


def test_r2_a_fire_that_waits_for_a_row_of_the_target_is_bounded_and_names_who_holds_the_target(
    world_make: Callable[..., KitWorld],
) -> None:
    """The wait of a row inside: what is pinned is shortened here, since the test is of its being there and being named."""
    world = world_make(
        prepare="DROP TABLE IF EXISTS held CASCADE; CREATE TABLE held (k text PRIMARY KEY, body jsonb)",
        target="held",
        target_key="k",
        target_content="body",
    )
    pinned = "SELECT proconfig::text FROM pg_proc WHERE pronamespace = {schema_text}::regnamespace AND proname = %s"
    schema_text = sql.Literal(sql.Identifier(world.schema).as_string())
    for name in ("deliver", "deliver_many", "fire", "claim_open", "staged_purge"):
        (settings,) = world.admin.execute(sql.SQL(pinned).format(schema_text=schema_text), (name,)).fetchone() or ("",)
        assert f"lock_timeout={MOST_WAIT_SECONDS}s" in settings, name
    world.admin.execute("INSERT INTO held VALUES ('key 1', '0')")
    fire = "ALTER FUNCTION {schema}.fire(bigint, bigint, jsonb, double precision) SET lock_timeout = '50ms'"
    world.admin.execute(world.sql(fire))
    generation, arm = world.staged(1)
    holder = world.connect(world.dsn, "who holds the row", autocommit=False)
    holder.execute("UPDATE held SET body = '1'")
    with pytest.raises(SinkBusy, match="who holds the row"):
        world.sink.fire(generation, arm)
    assert world.record() == []
    holder.rollback()
    assert world.sink.fire(generation, arm).word == "landed"


def test_r3_a_login_without_grants_finds_nothing_to_lock(world: KitWorld) -> None:
    """What the kit locks is a table of its own: neither its name nor a number from pg_locks lets a stranger hold it."""
    name = f"{world.names.owner.removesuffix('_owner')}_locker"
    world.admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(name), PASSWORD))
    stranger = world.connect(psycopg.conninfo.make_conninfo(world.dsn, user=name, password=PASSWORD))
    try:
        stranger.execute("SELECT pg_advisory_lock(%s)", (lock_key(world.schema),))
        relay = world.connect(world.relay)
        assert world.deliver(relay, world.relay_start(relay), 1) == "accepted"
        assert world.sink.claim_open("test", {}).word == "granted"
        for login in (stranger, relay, world.connect(world.auditor), world.connect(world.recoverer)):
            for lock in ("ROW SHARE", "EXCLUSIVE"):
                for table in ("lock", "counter", "claim"):
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        login.execute(world.sql(f"DO $$ BEGIN LOCK TABLE {{schema}}.{table} IN {lock} MODE; END $$"))
    finally:
        stranger.close()
        world.admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_r3_a_dump_of_the_sink_holds_no_claim_up(world: KitWorld) -> None:
    dump = world.connect(world.dsn, autocommit=False)
    dump.execute(
        world.sql("LOCK TABLE {schema}.lock, {schema}.counter, {schema}.standing, {schema}.claim IN ACCESS SHARE MODE")
    )
    assert world.sink.claim_open("test", {}, wait_seconds=0.05).word == "granted"
    dump.rollback()


def test_r4_a_wait_of_weeks_is_cut_to_the_sinks_own_bound(world: KitWorld) -> None:
    held = world.one(world.admin, "SELECT {schema}.wait_held(%s)", 2_000_000)
    assert held == str(MOST_WAIT_SECONDS * 1000)
    nonsense = [world.one(world.admin, "SELECT {schema}.wait_held(%s)", value) for value in (-1.0, 0.0, float("nan"))]
    assert nonsense == ["1", "1", str(MOST_WAIT_SECONDS * 1000)]


def test_r4_healthy_deliveries_queue_no_longer_than_the_bound_behind_a_start_that_waits(world: KitWorld) -> None:
    """The bound itself is shortened here."""
    idle, relay, starting = (
        world.connect(world.relay, autocommit=False),
        world.connect(world.relay),
        world.connect(world.relay),
    )
    generation = world.relay_start(idle)
    idle.commit()
    world.deliver(idle, generation, 1)
    world.admin.execute(
        world.sql(
            "CREATE OR REPLACE FUNCTION {schema}.wait_held(wait_seconds double precision) RETURNS text LANGUAGE sql "
            "IMMUTABLE AS $$ SELECT greatest(1, (least(wait_seconds, 0.2) * 1000)::bigint)::text $$"
        )
    )
    start = world.later(lambda: world.one(starting, START, 2_000_000))
    world.until_waiting(starting.info.backend_pid)
    delivery = world.later(lambda: world.deliver(relay, generation, 2))
    assert start.result()[0] == "wait"
    assert delivery.result() == "accepted"
