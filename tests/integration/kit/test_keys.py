"""The mapped target's guard goes by the key column's own type, equality and collation, whatever a session has set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from recovery_api.domain.errors import Unsuitable
from tests.contract.sink_engines import digest_make, event_make, kit_make, rows_make
from tests.integration.kit.kit_world import KitWorld
from tests.system_server import system_server
from workers.connectors.sinks.kit.install import kit_install

NOCASE = "CREATE COLLATION IF NOT EXISTS nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"

SPELLINGS = [
    ("timestamptz", "", "2026-01-01 12:00:00+00", "2026-01-01 14:00:00+02", "SET TimeZone = 'Asia/Tokyo'"),
    ("date", "", "2026-03-04", "March 4, 2026", "SET DateStyle = 'German, DMY'"),
    ("bytea", "", "\\x41", "A", "SET bytea_output = 'escape'"),
    ("interval", "", "1 day", "P1D", "SET intervalstyle = 'iso_8601'"),
    ("numeric", "", "1", "1.0", "SET extra_float_digits = -15"),
    ("float8", "", "0.1", "1e-1", "SET extra_float_digits = -15"),
    ("citext", "CREATE EXTENSION IF NOT EXISTS citext;", "Ada", "ADA", "SET search_path = pg_temp"),
    ("char(5)", "", "ab", "ab   ", "SET standard_conforming_strings = off"),
    ('text COLLATE "nocase"', NOCASE, "Ada", "ada", "SET enable_sort = off"),
]


@pytest.fixture(scope="module")
def icu_dsn(lasting_database_factory: Callable[[str], str]) -> Iterator[str]:
    """A database where collations of ICU can be made: the run's, or one of a server of the system's packages."""
    dsn = lasting_database_factory("icu")
    with psycopg.connect(dsn, autocommit=True) as admin:
        try:
            admin.execute(NOCASE)
        except psycopg.errors.FeatureNotSupported:
            dsn = ""
    if dsn:
        yield dsn
        return
    with system_server() as dsn:
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute(NOCASE)
        yield dsn


@pytest.fixture
def kit_dsn(request: pytest.FixtureRequest) -> str:
    """The run's own server, but for keys that are told apart by ICU."""
    callspec = getattr(request.node, "callspec", None)
    is_icu = callspec is not None and callspec.params.get("before") == NOCASE
    return str(request.getfixturevalue("icu_dsn" if is_icu else "run_dsn"))


@pytest.fixture(scope="module")
def run_dsn(lasting_database_factory: Callable[[str], str]) -> str:
    return lasting_database_factory("keys")


@pytest.mark.parametrize("op", ["insert", "delete"])
@pytest.mark.parametrize(
    ("key_type", "before", "one", "other", "hostile"), SPELLINGS, ids=lambda value: str(value)[:12]
)
def test_r1_an_older_event_under_another_spelling_of_its_key_overwrites_nothing(
    kit_dsn: str,
    world_make: Callable[..., KitWorld],
    key_type: str,
    before: str,
    one: str,
    other: str,
    hostile: str,
    op: str,
) -> None:
    """Event 7 delivered under one spelling in a session with settings of its own, then the fire of 5 under another; and
    a fire of 8 under the first meets the same row."""
    world = _world(kit_dsn, world_make, key_type, before)
    relay = world.connect(world.relay)
    relay.execute(hostile)  # type: ignore[call-overload]
    assert world.deliver(relay, 0, 7, '{"total": 7}', key=one) == "accepted"
    _fire(world, event_make(5, key=other, content=None if op == "delete" else '{"total": 5}', op=op))
    assert _totals(world) == [7]
    _fire(world, event_make(8, key=one, content=None if op == "delete" else '{"total": 8}', op=op))
    assert _totals(world) == ([] if op == "delete" else [8])
    assert world.one(world.admin, "SELECT count(*) FROM {schema}.applied") == 1
    word = world.deliver(relay, world.relay_start(relay), 6, '{"total": 6}', key=other)
    assert (word, _totals(world)) == ("accepted", [] if op == "delete" else [8])


@pytest.mark.parametrize(
    ("key_type", "before", "one", "other", "hostile"), SPELLINGS, ids=lambda value: str(value)[:12]
)
def test_r1_a_deletion_under_another_spelling_meets_the_row(
    kit_dsn: str, world_make: Callable[..., KitWorld], key_type: str, before: str, one: str, other: str, hostile: str
) -> None:
    world = _world(kit_dsn, world_make, key_type, before)
    relay = world.connect(world.relay)
    world.deliver(relay, 0, 1, '{"total": 1}', key=one)
    relay.execute(hostile)  # type: ignore[call-overload]
    assert world.deliver(relay, 0, 2, op="delete", key=other) == "accepted"
    assert _totals(world) == []
    rows = [event_make(3, key=other, content='{"total": 3}'), event_make(4, key=one, content='{"total": 4}')]
    _fire(world, *rows)
    assert _totals(world) == [4]


def test_r1_what_a_relay_writes_is_what_a_fire_writes_whatever_its_session_has_set(
    kit_dsn: str,
    world_make: Callable[..., KitWorld],
) -> None:
    """Texts without a zone or an order of their own: the functions decide how they are read, not who calls."""
    world = _world(kit_dsn, world_make, "timestamptz", "")
    relay = world.connect(world.relay)
    relay.execute("SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'German, DMY'")
    world.deliver(relay, 0, 1, '{"total": 1}', key="2026-02-03 04:05:06")
    _fire(world, event_make(2, key="2026-02-03 04:05:06", content='{"total": 2}'))
    assert _totals(world) == [2]


def test_r1_an_index_of_another_collation_serves_where_both_tell_texts_apart_alike(kit_dsn: str) -> None:
    with psycopg.connect(kit_dsn, autocommit=True) as admin:
        admin.execute(
            'CREATE TABLE IF NOT EXISTS alike (k text, c jsonb); CREATE UNIQUE INDEX IF NOT EXISTS alike_k ON alike (k COLLATE "C")'
        )
        kit = kit_make(schema="alike", prefix=admin.info.dbname, target="alike", target_key="k", target_content="c")
        assert kit_install(admin, kit)["installed"]


def test_r1_a_target_whose_unique_index_compares_otherwise_than_its_column_is_refused(icu_dsn: str) -> None:
    with psycopg.connect(icu_dsn, autocommit=True) as admin:
        admin.execute(
            'CREATE TABLE IF NOT EXISTS apart (k text COLLATE "nocase", c jsonb);'
            'CREATE UNIQUE INDEX IF NOT EXISTS apart_k ON apart (k COLLATE "C")'
        )
        kit = kit_make(schema="apart", prefix=admin.info.dbname, target="apart", target_key="k", target_content="c")
        with pytest.raises(Unsuitable, match="compares keys otherwise than the column does"):
            kit_install(admin, kit)


def _world(kit_dsn: str, world_make: Callable[..., KitWorld], key_type: str, before: str) -> KitWorld:
    table = f"DROP TABLE IF EXISTS spelled CASCADE; CREATE TABLE spelled (k {key_type} PRIMARY KEY, total numeric)"
    options: dict[str, Any] = {"target": "spelled", "target_key": "k", "target_columns": {"total": "total"}}
    return world_make(prepare=before + table, **options)


def _fire(world: KitWorld, *events: dict[str, Any]) -> None:
    generation, batch = world.claim(), rows_make(list(events))
    arm = int(world.sink.arm(generation, digest_make(batch), {}).data["arm"])
    world.sink.stage(generation, arm, iter([batch]))
    assert world.sink.fire(generation, arm).word == "landed"


def _totals(world: KitWorld) -> list[Any]:
    return [total for (total,) in world.admin.execute(sql.SQL("SELECT total FROM spelled ORDER BY 1"))]
