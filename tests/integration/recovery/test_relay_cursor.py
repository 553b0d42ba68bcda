"""An audit beside the relay's own cursor: what it passed over, what it leaves ambiguous, and that it decides nothing."""

from __future__ import annotations

import psycopg

from tests.integration.recovery.world import World

CURSOR = {
    "cursor_table": "relay_cursor",
    "cursor_columns": ["position", "ordinal"],
    "cursor_where": {"relay": "letters"},
    "cursor_spelling": "held",
}


def cursor_register(world: World, key: str) -> None:
    """A cursor at the key's event, as the reference relay keeps it, in the options of the registered source."""
    at = world.batch([key]).to_pylist()[0]
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("CREATE TABLE relay_cursor (relay text, position bigint, ordinal bigint)")
        connection.execute(
            "INSERT INTO relay_cursor VALUES ('letters', %s, %s), ('bills', 1, 1)", [at["position"], at["ordinal"]]
        )
    source = world.pipeline.source
    source.options = {**source.options, **CURSOR}
    source.save()


def test_audit_says_what_the_cursor_passed_over_and_what_the_record_decides_beyond_it(world: World) -> None:
    world.commit([f"k{number}" for number in range(10)])
    world.deliver(["k0", "k2", "k3", "k4", "k6"])
    cursor_register(world, "k5")
    audit = world.audit()
    found = audit.lanes["0"]["cursor"]
    assert (found["says"], found["problem"]) == (world.coordinate("k5"), None)
    assert (found["lost_behind"], found["lost_beyond"]) == ("2", "3")  # k1 k5; k7 k8 k9
    assert (found["judged"], found["has_window"]) == ("window", True)
    assert (audit.status, audit.lost_count) == ("owed", 5)


def test_cursor_changes_neither_verdict_nor_digest_and_its_absence_stops_nothing(world: World) -> None:
    world.commit(["k0", "k1"])
    world.deliver(["k0"])
    plan = world.plan()
    cursor_register(world, "k1")
    assert (again := world.plan()).digest == plan.digest
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("DROP TABLE relay_cursor")
    assert world.plan().digest == again.digest
    found = world.audit().lanes["0"]["cursor"]
    assert found["says"] is None and "could not be read" in found["problem"]
