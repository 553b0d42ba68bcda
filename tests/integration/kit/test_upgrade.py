"""From every text of the kit that was ever installed, in place: nothing accepted is lost, nothing lands past the fence."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from recovery_api.domain.errors import NotFound, SinkBusy, Unsuitable
from tests.contract.sink_engines import batch_make, digest_make
from tests.integration.kit.kit_world import CALL, KitWorld
from workers.connectors.sinks.kit import KIT_VERSION, lock_key, staging
from workers.connectors.sinks.kit.expected import differences
from workers.connectors.sinks.kit.facts import installed_read
from workers.connectors.sinks.kit.releases import Release, releases
from workers.connectors.sinks.kit.upgrade import ADVISORY_UNTIL, kit_upgrade, upgrade_finish
from workers.connectors.sinks.kit.versions import FACTS_TABLE

pytestmark = pytest.mark.slow

EARLIER = [release for release in releases() if release.version < KIT_VERSION]
ADVISORY = [release for release in EARLIER if release.version <= ADVISORY_UNTIL][-1]
"""The last text with an advisory lock, and with applied keys that are text."""
TARGET = 'DROP TABLE IF EXISTS "Letters"; CREATE TABLE "Letters" (id text PRIMARY KEY, body jsonb)'
EFFECT = """
    CREATE TABLE IF NOT EXISTS called (position bigint);
    GRANT INSERT ON called TO PUBLIC;
    CREATE OR REPLACE FUNCTION called_with(lane text, "position" bigint, ordinal bigint, op text, key text, content jsonb)
    RETURNS void LANGUAGE sql AS 'INSERT INTO public.called VALUES ($2)';
    TRUNCATE called"""
EFFECTS: dict[str, dict[str, Any]] = {
    "none": {},
    "target": {"prepare": TARGET, "target": "Letters", "target_key": "id", "target_content": "body"},
    "function": {"prepare": EFFECT, "effect_function": "called_with", "effect_order": "order-free"},
}


@pytest.fixture(params=EARLIER, ids=lambda release: f"{release.name}-{release.commit}")
def release(request: pytest.FixtureRequest) -> Release:
    return request.param  # type: ignore[no-any-return]


def accepted(world: KitWorld) -> list[tuple[Any, ...]]:
    return world.admin.execute(world.sql("SELECT a.* FROM {schema}.accepted a ORDER BY entry")).fetchall()


def lies(world: KitWorld) -> Any:
    """The file that holds the record."""
    return world.one(world.admin, "SELECT pg_relation_filepath(to_regclass(%s))", f'"{world.schema}".accepted')


def not_as_installed(world: KitWorld) -> list[str]:
    installed = installed_read(world.admin, world.kit, world.names)
    return [one.says for one in differences(installed, world.kit, world.admin.info.dbname, KIT_VERSION)]


def version_of(world: KitWorld, release: Release) -> Any:
    return world.admin.execute(
        world.sql("SELECT kit_version FROM {schema}.{facts}", facts=FACTS_TABLE[release.version])
    ).fetchone()


def armed(world: KitWorld, connection: psycopg.Connection[Any], *coordinates: int) -> tuple[int, int]:
    """An open claim with a batch armed and staged, by plain SQL: this Fencepost asks nothing of an older kit."""
    generation = world.one(connection, "SELECT generation FROM {schema}.generation_allocate('recoverer', 'test')")
    assert world.one(connection, "SELECT answer FROM {schema}.claim(%s, '{{}}')", generation) == "granted"
    batch = batch_make(*coordinates)
    digest = digest_make(batch)
    word, detail = world.one(
        connection, "SELECT answer, detail FROM {schema}.arm(%s, %s, %s, NULL)", generation, digest.count, digest.digest
    )
    assert word == "armed"
    staging.batch_stage(connection, world.schema, generation, detail["arm"], batch)
    return generation, detail["arm"]


def upgrade_while(world: KitWorld, call: Callable[[], Any], pid: int) -> Any:
    """Upgrades, and before that commits lets a session call into the old text: what became of the call."""
    with world.admin.transaction():
        report = kit_upgrade(world.admin, world.kit)
        assert (report["upgraded"], report["kit_version"]) == (True, KIT_VERSION)
        waiting = world.later(call)
        with psycopg.connect(world.dsn, autocommit=True) as looking:
            until_waiting(looking, pid)
    return waiting


def until_waiting(looking: psycopg.Connection[Any], pid: int) -> None:
    ticks = threading.Event()
    for _ in range(3000):
        row = looking.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE pid = %s AND NOT granted)", (pid,)).fetchone()
        if row == (True,):
            return
        ticks.wait(0.01)
    raise AssertionError("that session never waited")


@pytest.mark.parametrize("effect", EFFECTS)
def test_r7_upgrade_keeps_record_counters_and_an_open_claim_that_then_fires(
    world_make: Callable[..., KitWorld], release: Release, effect: str
) -> None:
    world = world_make(release=release, **EFFECTS[effect])
    relay, recoverer = world.connect(world.relay), world.connect(world.recoverer)
    first = world.relay_start(relay)
    for coordinate in (1, 2, 3):
        assert world.deliver(relay, first, coordinate) == "accepted"
    assert world.deliver(relay, first, 3, content='{"other": 1}') == "altered"
    generation, arm = armed(world, recoverer, 3, 4, 5)
    before, counter, place = (
        accepted(world),
        world.one(world.admin, "SELECT allocated FROM {schema}.counter"),
        lies(world),
    )

    call = relay.execute
    waiting = upgrade_while(
        world,
        lambda: call(world.sql(CALL), (first, 9, "event 9", "insert", "key 0", None)).fetchone(),
        relay.info.backend_pid,
    )
    with pytest.raises(psycopg.errors.UndefinedTable):
        waiting.result()

    assert accepted(world) == before
    assert lies(world) == place  # not copied
    assert upgrade_finish(world.admin, world.kit) == ""
    assert not_as_installed(world) == []  # object by object what a new installation is
    state = world.sink.state()
    assert (state.counter, state.fence, state.open_claim.generation) == (counter, generation, generation)
    assert world.one(world.admin, "SELECT count(*) FROM {schema}.altered") == 1
    assert world.deliver(relay, first, 9) == "fenced"  # the same session, by the new text
    assert world.one(relay, "SELECT answer FROM {schema}.relay_start('relay')") == "wait"
    start = {"0": {"position": "5", "ordinal": "0"}}
    answer, detail = world.one(
        recoverer, "SELECT answer, detail FROM {schema}.fire(%s, %s, %s)", generation, arm, Jsonb(start)
    )
    assert (answer, detail["landed_count"], detail["absorbed_count"]) == ("landed", 2, 1)
    after = world.relay_start(relay)
    assert [world.deliver(relay, after, coordinate) for coordinate in (5, 6)] == ["absorbed", "accepted"]
    assert world.record() == [(1, first), (2, first), (3, first), (4, generation), (5, generation), (6, after)]
    if effect == "target":
        assert world.one(world.admin, "SELECT count(*), max(body ->> 'number') FROM \"Letters\"") == (3, "6.50")
    elif effect == "function":
        assert world.one(world.admin, "SELECT array_agg(position ORDER BY position) FROM called") == [1, 2, 3, 4, 5, 6]


def test_r7_delivery_that_waited_inside_the_old_text_is_not_accepted_past_the_new_lock(
    world_make: Callable[..., KitWorld], release: Release
) -> None:
    world = world_make(release=release)
    relay, other = world.connect(world.relay), world.connect(world.relay)
    generation = world.relay_start(relay)
    assert world.deliver(relay, generation, 1) == "accepted"
    arguments = (generation, 2, "event 2", "insert", "key 2", '{"number": 2.50}')
    for _ in range(3):  # both ways: by a plan that is kept, and by one that is made while it waits
        assert relay.execute(
            world.sql(CALL), (generation, 1, "event 1", "insert", "key 1", '{"number": 1.50}'), prepare=True
        )
    waiting = []
    with world.admin.transaction():
        kit_upgrade(world.admin, world.kit)
        with psycopg.connect(world.dsn, autocommit=True) as looking:
            for session in (relay, other):
                waiting.append(
                    world.later(lambda s=session: s.execute(world.sql(CALL), arguments, prepare=True).fetchone())
                )
                until_waiting(looking, session.info.backend_pid)
    for call in waiting:
        with pytest.raises(psycopg.errors.UndefinedTable):
            call.result()
    assert world.record() == [(1, generation)]
    for session in (relay, other):  # and goes on in the same session, under the new text
        assert world.deliver(session, generation, 2) in ("accepted", "absorbed")
    assert world.record() == [(1, generation), (2, generation)]


@pytest.mark.parametrize("release", [EARLIER[0], EARLIER[-1]], ids=lambda release: release.name)
def test_r7_upgrade_waits_for_open_deliveries_for_a_bounded_time_and_names_them(
    world_make: Callable[..., KitWorld], release: Release
) -> None:
    world = world_make(release=release)
    relay = world.connect(world.relay, "relay in the middle", autocommit=False)
    generation = world.relay_start(relay)
    relay.commit()
    assert world.deliver(relay, generation, 1) == "accepted"
    with pytest.raises(SinkBusy, match=f"session {relay.info.backend_pid} .relay in the middle"):
        kit_upgrade(world.admin, world.kit)
    assert world.deliver(relay, generation, 2) == "accepted"  # the old kit works on
    relay.commit()
    assert kit_upgrade(world.admin, world.kit)["upgraded"]
    assert world.deliver(relay, generation, 3) == "accepted"
    relay.commit()
    assert world.record() == [(1, generation), (2, generation), (3, generation)]


def test_r7_upgrade_again_changes_nothing(world: KitWorld) -> None:
    world.deliver(world.connect(world.relay), 0, 1)
    report = kit_upgrade(world.admin, world.kit)
    assert (report["upgraded"], report["from_version"]) == (False, KIT_VERSION)
    assert world.record() == [(1, 0)]


@pytest.mark.parametrize(
    ("statement", "application"),
    [
        ("SELECT pg_advisory_lock({key})", "anybody with the old key"),
        ("BEGIN; LOCK TABLE {schema}.staged IN ROW EXCLUSIVE MODE", "a stager"),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM {schema}.accepted", "an auditor"),
    ],
    ids=["key", "stager", "auditor"],
)
def test_r7_upgrade_names_whoever_holds_it_up(
    world_make: Callable[..., KitWorld], statement: str, application: str
) -> None:
    world = world_make(release=ADVISORY)
    holder = world.connect(world.dsn, application)
    holder.execute(world.sql(statement.replace("{key}", str(lock_key(world.schema)))))
    with pytest.raises(SinkBusy, match=f"session {holder.info.backend_pid} .{application}"):
        kit_upgrade(world.admin, world.kit)
    holder.execute("SELECT pg_advisory_unlock_all(); ROLLBACK")
    assert world.deliver(world.connect(world.relay), 0, 1) == "accepted"
    assert kit_upgrade(world.admin, world.kit)["upgraded"]


@pytest.mark.parametrize("release", [EARLIER[0], EARLIER[-1]], ids=lambda release: release.name)
def test_r7_upgrade_that_dies_in_the_middle_leaves_the_old_kit_working(
    world_make: Callable[..., KitWorld], release: Release
) -> None:
    world = world_make(release=release)
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    world.deliver(relay, generation, 1)
    dying = world.connect(world.dsn, autocommit=False)
    dying.execute("SELECT 1")
    kit_upgrade(dying, world.kit)
    dying.close()  # its transaction is open: the server rolls it back
    assert world.deliver(relay, generation, 2) == "accepted"
    assert version_of(world, release) == (release.version,)


def test_r7_kit_newer_than_this_fencepost_is_refused_as_such(world: KitWorld) -> None:
    world.admin.execute(world.sql("UPDATE {schema}.standing SET kit_version = 99"))
    with pytest.raises(Unsuitable, match="version 99 of the sink kit is installed.*Upgrade Fencepost"):
        kit_upgrade(world.admin, world.kit)


def test_r7_upgrade_keeps_the_roles_that_the_kit_was_installed_with(world_make: Callable[..., KitWorld]) -> None:
    """Also where its options would name others now, as in a copy of the database under another name."""
    world = world_make(release=EARLIER[-1])
    report = kit_upgrade(world.admin, replace(world.kit, prefix=None))
    assert (report["upgraded"], report["roles"]["relay"]) == (True, world.names.relay)
    assert world.deliver(world.connect(world.relay), 0, 1) == "accepted"
    assert not_as_installed(world) == []


def test_r7_upgrade_where_no_kit_is_says_to_install_one(world: KitWorld) -> None:
    with pytest.raises(NotFound, match="without --upgrade"):
        kit_upgrade(world.admin, replace(world.kit, schema="nothing here"))


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("CREATE TABLE {schema}.notes (id int)", "table notes"),
        ("CREATE FUNCTION {schema}.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'", "function mine"),
        ("CREATE VIEW public.claims_seen AS SELECT * FROM {schema}.claim", "claims_seen"),
    ],
)
def test_r7_upgrade_drops_nothing_that_is_not_the_kits(
    world_make: Callable[..., KitWorld], statement: str, says: str
) -> None:
    world = world_make(release=EARLIER[-1])
    world.admin.execute(world.sql(statement))
    try:
        with pytest.raises(Unsuitable, match=says):
            kit_upgrade(world.admin, world.kit)
    finally:
        world.admin.execute("DROP VIEW IF EXISTS public.claims_seen")
    assert version_of(world, EARLIER[-1]) == (EARLIER[-1].version,)


def test_r7_other_logins_keep_what_they_could_read(world_make: Callable[..., KitWorld]) -> None:
    world = world_make(release=EARLIER[-1])
    reader = f"{world.names.owner}_reader"
    world.admin.execute(world.sql("CREATE ROLE {reader}", reader=reader))
    for statement in (
        "GRANT USAGE ON SCHEMA {schema} TO {reader}",
        "GRANT SELECT ON {schema}.accepted, {schema}.claim TO {reader}",
        "GRANT INSERT ON {schema}.hand_over TO {reader}",
    ):
        world.admin.execute(world.sql(statement, reader=reader))
    try:
        report = kit_upgrade(world.admin, world.kit)
        assert report["not_carried"] == [f"{reader} had INSERT on hand_over; it was not given again."]
        with world.admin.transaction(force_rollback=True):
            world.admin.execute(world.sql("SET LOCAL ROLE {reader}", reader=reader))
            for table in ("accepted", "claim"):
                world.admin.execute(world.sql("SELECT FROM {schema}.{table}", table=table))
    finally:
        world.admin.execute(world.sql("DROP OWNED BY {reader}", reader=reader))
        world.admin.execute(world.sql("DROP ROLE {reader}", reader=reader))


def typed_world(world_make: Callable[..., KitWorld], release: Release, key_type: str) -> KitWorld:
    prepare = f"DROP TABLE IF EXISTS typed; CREATE TABLE typed (id {key_type} PRIMARY KEY, body jsonb)"
    return world_make(prepare=prepare, release=release, target="typed", target_key="id", target_content="body")


@pytest.mark.parametrize(
    ("key_type", "settings", "spellings"),
    [
        ("bigint", "", ("1", "2")),
        ("numeric", "", ("1", "1.0")),
        ("character(4)", "", ("a", "b")),
        ("bytea", "SET bytea_output = 'escape'", ("\\x00ff41", "B")),
        (
            "timestamp with time zone",
            "SET TimeZone = 'Asia/Kolkata'",
            ("2026-11-28 10:00:00+00", "2026-11-28 11:00:00+00"),
        ),
        ("date", "", ("2026-02-03", "2026-02-04")),
        ("uuid", "", ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002")),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_r7_applied_keys_take_the_targets_own_type(
    world_make: Callable[..., KitWorld], key_type: str, settings: str, spellings: tuple[str, str]
) -> None:
    """An older event of a key that was applied under another spelling stays behind the newer one."""
    world = typed_world(world_make, ADVISORY, key_type)
    relay = world.connect(world.relay)
    if settings:
        relay.execute(settings)  # type: ignore[call-overload]
    generation = world.relay_start(relay)
    for position, key in ((8, spellings[0]), (7, spellings[1])):
        assert world.deliver(relay, generation, position, content=f'{{"at": {position}}}', key=key) == "accepted"
    was = world.admin.execute("SELECT id, body FROM typed ORDER BY 1").fetchall()
    assert kit_upgrade(world.admin, world.kit)["upgraded"]
    assert world.admin.execute("SELECT id, body FROM typed ORDER BY 1").fetchall() == was
    assert not_as_installed(world) == []
    keys = "SELECT count(DISTINCT a.key), max(a.position) FROM {schema}.applied a JOIN typed t ON t.id = a.key"
    distinct = 1 if key_type == "numeric" else 2
    assert world.one(world.admin, keys) == (distinct, 8)
    fresh = world.connect(world.relay)
    assert world.deliver(fresh, generation, 5, content='{"at": 5}', key=spellings[0]) == "accepted"
    assert world.admin.execute("SELECT id, body FROM typed ORDER BY 1").fetchall() == was


def test_r7_applied_keys_that_could_be_two_values_are_counted_and_nothing_changes(
    world_make: Callable[..., KitWorld],
) -> None:
    world = typed_world(world_make, ADVISORY, "date")
    relay = world.connect(world.relay)
    relay.execute("SET DateStyle = 'SQL, DMY'")
    generation = world.relay_start(relay)
    assert world.deliver(relay, generation, 3, key="2026-02-01", content="{}") == "accepted"
    assert world.deliver(relay, generation, 4, key="2026-02-13", content="{}") == "accepted"
    with pytest.raises(Unsuitable, match=r"2 applied keys cannot be read as one value .* lane 0 at 3:0, lane 0 at 4:0"):
        kit_upgrade(world.admin, world.kit)
    assert version_of(world, ADVISORY) == (ADVISORY.version,)
    assert world.deliver(relay, generation, 5, key="2026-02-14", content="{}") == "accepted"
