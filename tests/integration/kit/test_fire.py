"""The fire: all of what was armed, once, or nothing; and what is left when its caller dies."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from recovery_api.domain.claims import Settlement, settlement
from recovery_api.domain.errors import Refused, SinkBusy, Unsuitable
from tests.contract.sink_engines import batch_make, digest_make, event_make, rows_make
from tests.integration.kit.kit_world import KitWorld
from workers.connectors.readings import BatchDigest
from workers.connectors.sinks.kit import staging

HELD_EFFECT = """
    CREATE OR REPLACE FUNCTION public.held_effect(
        lane text, "position" bigint, ordinal bigint, op text, key text, content jsonb) RETURNS void
    LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(4711); END $$"""


def test_zombie_stager_that_commits_between_arm_and_fire_makes_the_batch_another_one(world: KitWorld) -> None:
    generation, arm = world.staged(1, 2)
    world.sink.stage(generation, arm, iter([batch_make(3)]))
    answer = world.sink.fire(generation, arm)
    assert (answer.word, answer.data["staged_count"]) == ("mismatch", 3)
    assert world.record() == []
    assert settlement(world.sink.settle(generation)) is Settlement.OPEN
    batch = batch_make(1, 2)
    again = world.arm(generation, batch)
    world.sink.stage(generation, again, iter([batch]))
    assert world.sink.fire(generation, again).data["landed_count"] == 2


def test_zombie_stager_that_commits_while_the_fire_lands_changes_nothing(
    world_make: Callable[..., KitWorld],
) -> None:
    world = _held_world(world_make)
    generation, arm = world.staged(1, 2)
    zombie, holder = world.connect(world.recoverer, autocommit=False), world.connect(world.dsn)
    holder.execute("SELECT pg_advisory_lock(4711)")
    zombie.execute("SELECT 1")  # begins a transaction that stays open
    staging.batch_stage(zombie, world.schema, generation, arm, batch_make(3))
    firing = world.connect(world.recoverer)
    fired = world.later(lambda: world.one(firing, "SELECT detail FROM {schema}.fire(%s, %s)", generation, arm))
    world.until_waiting(firing.info.backend_pid)  # checked and landed, and in its effects
    zombie.commit()
    holder.execute("SELECT pg_advisory_unlock(4711)")
    assert fired.result()["landed_count"] == 2
    assert world.record() == [(1, generation), (2, generation)]


def test_worker_killed_while_its_fire_runs_is_settled_by_waiting_for_it(world_make: Callable[..., KitWorld]) -> None:
    world = _held_world(world_make)
    generation, arm = world.staged(1, 2)
    holder = world.connect(world.dsn)
    holder.execute("SELECT pg_advisory_lock(4711)")
    context = multiprocessing.get_context("spawn")
    pid: Any = context.Queue()
    worker = context.Process(target=_fire, args=(world.recoverer, world.schema, generation, arm, pid))
    worker.start()
    session = pid.get(timeout=60)
    world.until_waiting(session)
    worker.kill()
    worker.join()
    with pytest.raises(SinkBusy, match=str(session)):
        world.sink.settle(generation, wait_seconds=0.05)
    settled = world.later(lambda: world.sink.settle(generation, wait_seconds=30))
    holder.execute("SELECT pg_advisory_unlock(4711)")
    claim = settled.result()
    assert settlement(claim, generation) is Settlement.FIRED
    assert (claim.landed_count, claim.absorbed_count) == (2, 0)
    assert world.record() == [(1, generation), (2, generation)]


def test_plain_reading_of_a_claim_whose_fire_runs_settles_nothing(world_make: Callable[..., KitWorld]) -> None:
    world = _held_world(world_make)
    generation, arm = world.staged(1)
    holder, firing = world.connect(world.dsn), world.connect(world.recoverer)
    holder.execute("SELECT pg_advisory_lock(4711)")
    fired = world.later(lambda: world.one(firing, "SELECT answer FROM {schema}.fire(%s, %s)", generation, arm))
    world.until_waiting(firing.info.backend_pid)
    read = world.sink.state().open_claim
    assert settlement(read, generation, is_locked=False) is Settlement.UNKNOWN
    relay = world.connect(world.relay)
    assert world.deliver(relay, 0, 1) == "fenced"  # answered at once, though a fire runs
    holder.execute("SELECT pg_advisory_unlock(4711)")
    assert fired.result() == "landed"


def test_two_fires_of_one_claim_land_once_and_tell_the_same_figures(world_make: Callable[..., KitWorld]) -> None:
    world = _held_world(world_make)
    generation, arm = world.staged(1, 2)
    holder = world.connect(world.dsn)
    holder.execute("SELECT pg_advisory_lock(4711)")
    sessions = [world.connect(world.recoverer) for _ in range(2)]
    query = "SELECT answer, detail FROM {schema}.fire(%s, %s, NULL, 30)"
    fires = [world.later(lambda session=session: world.one(session, query, generation, arm)) for session in sessions]
    for session in sessions:
        world.until_waiting(session.info.backend_pid)
    holder.execute("SELECT pg_advisory_unlock(4711)")
    answers = sorted(fire.result() for fire in fires)
    assert [word for word, _ in answers] == ["already fired", "landed"]
    assert answers[0][1] == answers[1][1]
    assert len(world.record()) == 2


def test_fire_of_an_earlier_arm_lands_nothing(world: KitWorld) -> None:
    generation, arm = world.staged(1)
    batch = batch_make(1, 2)
    newer = world.arm(generation, batch)
    assert world.sink.fire(generation, arm).word == "not armed"
    assert world.sink.fire(generation, newer).word == "mismatch"  # the earlier arm's row is not this one's
    world.sink.stage(generation, newer, iter([batch]))
    assert world.sink.fire(generation, newer).data["landed_count"] == 2


@pytest.mark.parametrize("change", [{"content": '{"number": 2}'}, {"key": "another"}, {"op": "update"}])
def test_batch_altered_on_its_way_does_not_land(world: KitWorld, change: dict[str, str]) -> None:
    """RC-30's kind: what is staged is digested at the sink, so that a transport that alters is found out."""
    generation = world.claim()
    arm = world.arm(generation, batch_make(1, 2))
    world.sink.stage(generation, arm, iter([rows_make([event_make(1), event_make(2, **change)])]))
    assert world.sink.fire(generation, arm).word == "mismatch"
    assert world.record() == []


def test_obligation_that_the_sink_holds_altered_is_absorbed_told_and_recorded(world: KitWorld) -> None:
    relay = world.connect(world.relay)
    world.deliver(relay, 0, 1, '{"number": "another"}')
    generation, arm = world.staged(1, 2)
    fired = world.sink.fire(generation, arm)
    assert [fired.data[name] for name in ("landed_count", "absorbed_count", "altered_count")] == [1, 1, 1]
    assert world.one(world.admin, "SELECT position, generation FROM {schema}.altered") == (1, generation)
    assert world.sink.fire(generation, arm).data["altered_count"] == 1


def test_batch_lands_in_coordinate_order_however_it_was_staged(world: KitWorld) -> None:
    generation = world.claim()
    arm = world.arm(generation, batch_make(*range(1, 41)))
    for start in (31, 11, 1, 21):
        world.sink.stage(generation, arm, iter([batch_make(*reversed(range(start, start + 10)))]))
    assert world.sink.fire(generation, arm).word == "landed"
    assert [position for position, _ in world.record()] == list(range(1, 41))


def test_attempts_of_one_staging_task_at_the_same_time_leave_one_batch(world: KitWorld) -> None:
    """RC-45: a speculative attempt sends the same rows, one is killed, and a stage retry sends others again."""
    generation = world.claim()
    arm = world.arm(generation, batch_make(*range(1, 31)))
    slow = world.connect(world.recoverer, autocommit=False)
    slow.execute("SELECT 1")  # begins a transaction that stays open
    staging.batch_stage(slow, world.schema, generation, arm, batch_make(*range(21, 27)))
    fast = world.connect(world.recoverer)
    attempt = world.later(lambda: staging.batch_stage(fast, world.schema, generation, arm, batch_make(*range(21, 31))))
    world.until_waiting(fast.info.backend_pid)
    slow.commit()
    attempt.result()
    for start in (1, 11, 11):
        assert world.sink.stage(generation, arm, iter([batch_make(*range(start, start + 10))])) == 10
    killed = world.connect(world.recoverer, autocommit=False)
    killed.execute("SELECT 1")
    staging.batch_stage(killed, world.schema, generation, arm, batch_make(99))
    killed.close()
    fired = world.sink.fire(generation, arm)
    assert (fired.word, fired.data["landed_count"]) == ("landed", 30)
    assert [position for position, _ in world.record()] == list(range(1, 31))


def test_staged_rows_of_finished_claims_are_purged_and_those_of_the_open_arm_stay(world: KitWorld) -> None:
    generation, arm = world.staged(1, 2)
    world.sink.fire(generation, arm)
    open_generation, open_arm = world.staged(3)
    assert world.sink.staged_purge() == 2
    assert world.sink.fire(open_generation, open_arm).data["landed_count"] == 1


def test_staged_rows_of_an_earlier_arm_are_purged_while_its_claim_is_open(world: KitWorld) -> None:
    generation, _ = world.staged(1, 2)
    newer = world.arm(generation, batch_make(3))
    world.sink.stage(generation, newer, iter([batch_make(3)]))
    assert world.sink.staged_purge() == 2
    assert world.sink.fire(generation, newer).data["landed_count"] == 1


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
def test_no_step_of_a_claim_is_taken_in_an_older_snapshot(world: KitWorld, level: psycopg.IsolationLevel) -> None:
    """A snapshot from before a newer claim shows a fence that stands no more, and an arm that counts no more."""
    generation, arm = world.staged(1)
    older = world.connect(world.recoverer, autocommit=False)
    older.set_isolation_level(level)
    steps = [
        ("arm(%s, 1, 'x', NULL)", (generation,)),
        ("fire(%s, %s)", (generation, arm)),
        ("release(%s, 'why')", (generation,)),
        ("settle(%s)", (generation,)),
    ]
    for step, arguments in steps:
        with pytest.raises(psycopg.errors.InvalidTransactionState, match=level.name.replace("_", " ")):
            world.one(older, f"SELECT answer FROM {{schema}}.{step}", *arguments)
        older.rollback()
    assert world.record() == []
    assert settlement(world.sink.settle(generation)) is Settlement.OPEN


@pytest.mark.parametrize(
    ("content", "is_held"),
    [
        ('{"note": "a\\u0000b"}', False),
        ('{"note": "\\ud83d"}', False),
        ('{"note": "\\ude80\\ud83d"}', False),
        ('{"note": "a\x00b"}', False),
        ('{"n": 1e131073}', False),
        ('{"note": "caf\\u00e9 \\ud83d\\ude80", "path": "a\\\\u0000b"}', True),
        ('{"note": "café 🚀", "n": 1e300}', True),
        (None, True),
    ],
)
def test_content_the_sink_cannot_represent_is_named_before_and_while_staging(
    world: KitWorld, content: str | None, is_held: bool
) -> None:
    """RC-30."""
    batch = rows_make([event_make(1), event_make(2, content=content), event_make(3)])
    assert world.sink.unrepresentable(batch).to_pylist() == [False, not is_held, False]
    generation = world.claim()
    if is_held:
        arm = world.arm(generation, batch)
        world.sink.stage(generation, arm, iter([batch]))
        assert world.sink.fire(generation, arm).word == "landed"
    else:
        arm = int(world.sink.arm(generation, BatchDigest(3, "0:0:0:0"), {}).data["arm"])
        with pytest.raises(Unsuitable, match="the event at 0:2:0"):
            world.sink.stage(generation, arm, iter([batch]))


def test_texts_of_every_awkward_kind_are_staged_as_they_are(world: KitWorld) -> None:
    awkward = ["", " ", "\\.", "a\n\\.\nb", '"', "a,b", "\t\r\n", "\\N", "NULL", "é🚀", "\x7f\x01", None]
    rows = [event_make(at, key=text, event_id=text) for at, text in enumerate(awkward)]
    batch, generation = rows_make(rows), world.claim()
    arm = world.arm(generation, batch)
    for row in rows:
        world.sink.stage(generation, arm, iter([rows_make([row])]))
    assert world.sink.fire(generation, arm).word == "landed"
    found = world.admin.execute(world.sql("SELECT key, event_id FROM {schema}.accepted ORDER BY position")).fetchall()
    assert found == [(text, text) for text in awkward]


def test_batch_above_the_limit_is_refused_when_it_is_armed(world_make: Callable[..., KitWorld]) -> None:
    world = world_make(batch_limit=2)
    generation = world.claim()
    with pytest.raises(Refused, match="at most 2"):
        world.sink.arm(generation, digest_make(batch_make(1, 2, 3)), {})


def test_released_claim_neither_arms_nor_fires_and_is_not_granted_again(world: KitWorld) -> None:
    generation, arm = world.staged(1)
    assert world.sink.release(generation, "gave up").word == "released"
    assert world.sink.fire(generation, arm).word == "not armed"
    assert world.sink.arm(generation, digest_make(batch_make(1)), {}).word == "no claim"
    assert world.sink.claim(generation, {}).word == "refused"
    assert settlement(world.sink.settle(generation)) is Settlement.RELEASED
    assert world.sink.state().fence == generation
    assert world.record() == []


def _held_world(world_make: Callable[..., KitWorld]) -> KitWorld:
    """A kit whose effect waits for whoever holds the advisory lock 4711: a barrier inside the fire."""
    return world_make(prepare=HELD_EFFECT, effect_function="held_effect", effect_order="order-free")


def _fire(dsn: str, schema: str, generation: int, arm: int, pid: Any) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        pid.put(connection.info.backend_pid)
        connection.execute(f'SELECT "{schema}".fire(%s, %s)', (generation, arm))
