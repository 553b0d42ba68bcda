"""Effects: applied with the acceptance or not at all, and an older event never undoes a newer one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from tests.contract.sink_engines import digest_make, event_make, rows_make
from tests.integration.kit.kit_world import KitWorld

TARGET = """
    DROP TABLE IF EXISTS public."Order" CASCADE;
    CREATE TABLE public."Order" ("select" integer PRIMARY KEY, total numeric(10, 2), "Note" text)"""
MAPPED = {
    "prepare": TARGET,
    "target": "Order",
    "target_key": "select",
    "target_columns": {"total": "total", "no'te": "Note"},
}

CALLS = """
    DROP TABLE IF EXISTS public.calls;
    CREATE TABLE public.calls (number bigint GENERATED ALWAYS AS IDENTITY, position bigint, op text, content jsonb);
    CREATE OR REPLACE FUNCTION public."Effect"(
        lane text, "position" bigint, ordinal bigint, op text, key text, content jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
        IF key = 'refused' THEN RAISE EXCEPTION 'the effect refuses'; END IF;
        INSERT INTO public.calls (position, op, content) VALUES ("Effect".position, "Effect".op, "Effect".content);
    END $$"""


@pytest.fixture
def mapped(world_make: Callable[..., KitWorld]) -> KitWorld:
    return world_make(**MAPPED)


def test_older_event_that_comes_late_does_not_undo_a_newer_one(mapped: KitWorld) -> None:
    relay = mapped.connect(mapped.relay)
    assert mapped.deliver(relay, 0, 7, '{"total": 7, "no\'te": "newer"}', key="1") == "accepted"
    assert mapped.deliver(relay, 0, 5, '{"total": 5, "no\'te": "older"}', key="1") == "accepted"
    assert _target(mapped) == [(1, 7, "newer")]
    assert [position for position, _ in mapped.record()] == [7, 5]


def test_fired_event_that_is_older_than_an_accepted_one_of_its_key_leaves_the_target(mapped: KitWorld) -> None:
    relay = mapped.connect(mapped.relay)
    mapped.deliver(relay, 0, 7, '{"total": 7}', key="1")
    _fire(mapped, [_event(5, "1", '{"total": 5}'), _event(6, "2", '{"total": 6}'), _event(8, "2", '{"total": 8}')])
    assert _target(mapped) == [(1, 7, None), (2, 8, None)]
    assert sorted(position for position, _ in mapped.record()) == [5, 6, 7, 8]


def test_deleted_key_stays_deleted_for_older_events_delivered_or_fired(mapped: KitWorld) -> None:
    relay = mapped.connect(mapped.relay)
    mapped.deliver(relay, 0, 3, '{"total": 3}', key="1")
    mapped.deliver(relay, 0, 9, op="delete", key="1")
    mapped.deliver(relay, 0, 4, '{"total": 4}', op="update", key="1")
    assert _target(mapped) == []
    _fire(mapped, [_event(5, "1", '{"total": 5}'), _event(6, "1", '{"total": 6}')])
    assert _target(mapped) == []
    _fire(mapped, [_event(10, "1", '{"total": 10}')])
    assert _target(mapped) == [(1, 10, None)]


def test_delete_in_a_batch_is_applied_in_its_place(mapped: KitWorld) -> None:
    relay = mapped.connect(mapped.relay)
    for position, key in ((1, "1"), (2, "2"), (3, "3")):
        mapped.deliver(relay, 0, position, f'{{"total": {position}}}', key=key)
    _fire(
        mapped,
        [
            _event(4, "1", None, op="delete"),
            _event(5, "2", None, op="delete"),
            _event(6, "2", '{"total": 6}'),
            _event(7, "3", '{"total": 7}', op="update"),
            _event(8, "3", None, op="delete"),
        ],
    )
    assert _target(mapped) == [(2, 6, None)]
    assert mapped.one(mapped.admin, "SELECT count(*) FROM {schema}.applied WHERE is_tombstone") == 2


def test_two_spellings_of_a_key_are_one_key_of_the_target(mapped: KitWorld) -> None:
    """RC-31's kind: the order guard goes by what the target takes for the key."""
    relay = mapped.connect(mapped.relay)
    mapped.deliver(relay, 0, 2, '{"total": 2}', key="01")
    mapped.deliver(relay, 0, 1, '{"total": 1}', key="1")
    _fire(mapped, [_event(3, "1", '{"total": 3}'), _event(4, "001", '{"total": 4}')])
    assert _target(mapped) == [(1, 4, None)]


def test_effect_that_fails_takes_its_acceptance_with_it(mapped: KitWorld) -> None:
    relay = mapped.connect(mapped.relay)
    with pytest.raises(psycopg.DataError):
        mapped.deliver(relay, 0, 1, '{"total": "not a number"}', key="1")
    with pytest.raises(psycopg.errors.NotNullViolation, match="without a key"):
        mapped.one(relay, "SELECT {schema}.deliver(0, '0', 1, 0, NULL, 'insert', NULL, '{}')".replace("{}", "{{}}"))
    assert (mapped.record(), _target(mapped)) == ([], [])


def test_absorbed_event_is_not_applied_again(mapped: KitWorld) -> None:
    relay = mapped.connect(mapped.relay)
    mapped.deliver(relay, 0, 1, '{"total": 1}', key="1")
    mapped.admin.execute('UPDATE "Order" SET total = 99')
    mapped.deliver(relay, 0, 1, '{"total": 1}', key="1")
    _fire(mapped, [_event(1, "1", '{"total": 1}'), _event(2, "2", '{"total": 2}')])
    assert _target(mapped) == [(1, 99, None), (2, 2, None)]


def test_relay_may_not_write_the_target_itself(mapped: KitWorld) -> None:
    for login in (mapped.relay, mapped.recoverer):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            mapped.connect(login).execute('INSERT INTO "Order" VALUES (1)')


def test_whole_content_goes_into_one_column(world_make: Callable[..., KitWorld]) -> None:
    world = world_make(
        prepare="DROP TABLE IF EXISTS doc CASCADE; CREATE TABLE doc (k text PRIMARY KEY, body jsonb)",
        target="doc",
        target_key="k",
        target_content="body",
    )
    world.deliver(world.connect(world.relay), 0, 1, '{"a": [1.50]}', key="x")
    _fire(world, [_event(2, "y", '"text"')])
    found = world.admin.execute("SELECT k, body::text FROM doc ORDER BY k").fetchall()
    assert found == [("x", '{"a": [1.50]}'), ("y", '"text"')]


def test_named_effect_is_called_once_an_entry_in_coordinate_order(world_make: Callable[..., KitWorld]) -> None:
    world = world_make(prepare=CALLS, effect_function="Effect", effect_order="ordered")
    relay = world.connect(world.relay)
    world.deliver(relay, 0, 2)
    world.deliver(relay, 0, 2)
    _fire(world, [event_make(position) for position in (9, 1, 2, 5)])
    found = world.admin.execute("SELECT position FROM calls ORDER BY number").fetchall()
    assert [position for (position,) in found] == [2, 1, 5, 9]
    assert world.sink.facts()["effect"]["order"] == "ordered"


def test_later_accepted_keys_are_those_above_their_own_lowest_coordinate_in_the_same_lane(
    world_make: Callable[..., KitWorld],
) -> None:
    world = world_make(prepare=CALLS, effect_function="Effect", effect_order="ordered")
    events = [(2, "before"), (6, "overtaken"), (7, "overtaken"), (8, "not asked"), (9, "twice")]
    for position, key in events:
        world.deliver(world.connect(world.relay), 0, position, key=key)
    asked = [(1, "other"), (3, "before"), (5, "overtaken"), (4, "twice"), (10, "twice"), (1, None)]
    columns = {
        "position": pa.array([position for position, _ in asked], pa.int64()),
        "ordinal": pa.array([0 for _ in asked], pa.int64()),
        "key": pa.array([key for _, key in asked], pa.string()),
    }
    with world.sink.hold_snapshot() as reading:
        world.deliver(world.connect(world.relay), 0, 11, key="other")  # after the snapshot
        assert sorted(world.sink.later_accepted(reading, "0", pa.table(columns)).to_pylist()) == ["overtaken", "twice"]
        assert world.sink.later_accepted(reading, "1", pa.table(columns)).to_pylist() == []


def test_named_effect_that_refuses_leaves_the_claim_open_and_nothing_landed(
    world_make: Callable[..., KitWorld],
) -> None:
    world = world_make(prepare=CALLS, effect_function="Effect", effect_order="guarded")
    with pytest.raises(Exception, match="P0001"):
        _fire(world, [event_make(1), event_make(2, key="refused")])
    assert world.record() == []
    assert world.one(world.admin, "SELECT count(*) FROM calls") == 0
    assert world.sink.state().open_claim is not None


def _event(position: int, key: str, content: str | None, op: str = "insert") -> dict[str, Any]:
    return event_make(position, key=key, content=content, op=op)


def _fire(world: KitWorld, events: list[dict[str, Any]]) -> None:
    generation, batch = world.claim(), rows_make(events)
    arm = int(world.sink.arm(generation, digest_make(batch), {}).data["arm"])
    world.sink.stage(generation, arm, iter([batch]))
    assert world.sink.fire(generation, arm).word == "landed"


def _target(world: KitWorld) -> list[tuple[Any, ...]]:
    return world.admin.execute('SELECT "select", total, "Note" FROM "Order" ORDER BY 1').fetchall()
