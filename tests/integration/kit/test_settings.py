"""No setting of a session decides what the kit answers, digests or stores (R8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from tests.contract.sink_engines import batch_make, digest_make
from tests.integration.kit.kit_world import KitWorld
from workers.connectors.readings import CoordinateRange, Width

HOSTILE = {
    "standard_conforming_strings": "off",
    "backslash_quote": "off",
    "escape_string_warning": "on",
    "TimeZone": "Asia/Kathmandu",
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "search_path": "pg_temp",
    "lock_timeout": "1ms",
}
PINNED = {
    "standard_conforming_strings",
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "bytea_output",
    "extra_float_digits",
    "search_path",
}


@pytest.fixture
def hostile(world: KitWorld) -> Any:
    """Every login of the kit has them as its own, so that the connector's sessions have them, too."""
    logins = [
        f"{world.names.owner.removesuffix('_owner')}_{trade}_login" for trade in ("relay", "recoverer", "auditor")
    ]
    for login in logins:
        for name, value in HOSTILE.items():
            set_ = sql.SQL("ALTER ROLE {} SET {} = {}").format(*map(sql.Identifier, (login, name)), sql.Literal(value))
            world.admin.execute(set_)
    yield world
    for login in logins:
        world.admin.execute(sql.SQL("ALTER ROLE {} RESET ALL").format(sql.Identifier(login)))


def test_r8_the_whole_protocol_goes_the_same_way_in_a_session_with_other_settings(hostile: KitWorld) -> None:
    world = hostile
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    assert [world.deliver(relay, generation, 1) for _ in range(2)] == ["accepted", "absorbed"]
    assert world.deliver(relay, generation, 1, '{"other": 1}') == "altered"
    generation, arm = world.staged(2, 3)
    assert world.sink.fire(generation, arm).word == "landed"
    with world.sink.hold_snapshot(generation) as reading:
        rows = [
            row
            for batch in world.sink.read_accepted(reading, CoordinateRange("0", None, None), Width.FULL)
            for row in batch.to_pylist()
        ]
    wanted = digest_make(batch_make(1, 2, 3))
    assert sorted(row["position"] for row in rows) == [1, 2, 3]
    assert wanted.count == 3
    calm = world.connect(world.dsn)
    query = "SELECT {schema}.payload_digest('insert', %s, %s::jsonb)"
    for row in rows:
        number = row["position"]
        assert row["payload_digest"] == world.one(calm, query, f"key {number % 3}", f'{{"number": {number}.50}}')


def test_r8_digests_are_the_same_in_a_session_that_reads_backslashes_otherwise(hostile: KitWorld) -> None:
    corpus = Path(__file__).parents[2] / "contract" / "canonical_corpus.json"
    cases = [case for case in json.loads(corpus.read_text(encoding="utf-8"))["cases"] if case["in_jsonb"]]
    other, calm = hostile.connect(hostile.recoverer), hostile.connect(hostile.dsn)
    query = "SELECT {schema}.payload_digest('update', %s, %s::jsonb)"
    entry = "SELECT ({schema}.entry_digest('0', 1, 0, 'update', %s, %s::jsonb)).limb0"
    for case in cases:
        for call in (query, entry):
            arguments = (case["says"], case["json"])
            assert hostile.one(other, call, *arguments) == hostile.one(calm, call, *arguments), case


def test_r8_every_function_that_somebody_is_granted_pins_what_its_result_depends_on(
    world_make: Callable[..., KitWorld],
) -> None:
    world = world_make()
    found = world.admin.execute(
        world.sql(
            "SELECT p.proname, p.proconfig FROM pg_proc p WHERE p.pronamespace = (SELECT n.oid FROM pg_namespace n "
            "WHERE n.nspname = %s) AND p.prosecdef"
        ),
        (world.schema,),
    ).fetchall()
    assert len(found) > 15
    for name, settings in found:
        assert {one.partition("=")[0] for one in settings or ()} >= PINNED, name


def test_r8_the_kit_installs_alike_where_backslashes_are_read_otherwise(kit_dsn: str, world: KitWorld) -> None:
    from tests.contract.sink_engines import kit_make
    from workers.connectors.sinks.kit.install import kit_install

    other = world.connect(kit_dsn)
    other.execute("SET standard_conforming_strings = off")
    schema = world.schema + r" with \ and '"
    kit_install(other, kit_make(schema=schema, prefix=world.options["prefix"]))
    try:
        bodies = "SELECT array_agg(prosrc ORDER BY proname, prosrc) FROM pg_proc WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)"
        found = [world.one(world.admin, bodies, name) for name in (world.schema, schema)]
        assert len(found[0]) == len(found[1])
        said = world.admin.execute(
            sql.SQL("SELECT {}.deliver(0, '0', 1, 0, NULL, 'insert', 'k', '1.50')").format(sql.Identifier(schema))
        ).fetchone()
        assert said == ("accepted",)
    finally:
        world.admin.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
