"""Every path into the record is closed, or named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from recovery_api.domain.capabilities import Archetype
from recovery_api.domain.conditions import undisciplined_says
from tests.integration.kit.kit_world import KitWorld

DENIED = psycopg.errors.InsufficientPrivilege

RECOVERER_STEPS = [
    "SELECT {schema}.claim(0, NULL)",
    "SELECT {schema}.arm(0, 0, '0:0:0:0', NULL)",
    "SELECT {schema}.fire(0, 1)",
    "SELECT {schema}.settle(0)",
    "SELECT {schema}.release(0, 'me')",
    "SELECT {schema}.counter_raise(5)",
    "SELECT {schema}.generation_allocate('recoverer', 'me')",
    "INSERT INTO {schema}.staged (generation, arm, lane, position, ordinal, op) VALUES (0, 1, '0', 1, 0, 'insert')",
]
WRITES = [
    "INSERT INTO {schema}.accepted DEFAULT VALUES",
    "UPDATE {schema}.accepted SET key = 'x'",
    "DELETE FROM {schema}.accepted",
    "TRUNCATE {schema}.accepted",
    "UPDATE {schema}.standing SET fence = 0",
    "UPDATE {schema}.counter SET allocated = 0",
    "UPDATE {schema}.claim SET state = 'open'",
    "DELETE FROM {schema}.staged",
    "SELECT {schema}.fence_raise(9)",
    "SELECT {schema}.deliver_in_full(0, '0', 1, 0, NULL, 'insert', NULL, NULL, NULL, NULL)",
]
GUARDED = [
    ("UPDATE {schema}.accepted SET key = 'x'", "append-only"),
    ("UPDATE {schema}.accepted SET key = 'x' WHERE false", "append-only"),
    ("DELETE FROM {schema}.accepted", "append-only"),
    ("TRUNCATE {schema}.accepted", "append-only"),
    ("MERGE INTO {schema}.accepted a USING (SELECT 1) m ON true WHEN MATCHED THEN DELETE", "append-only"),
    ("UPDATE {schema}.standing SET fence = -1", "only rises"),
    ("DELETE FROM {schema}.standing", "only rises"),
    ("TRUNCATE {schema}.standing", "append-only"),
    ("UPDATE {schema}.counter SET allocated = -1", "only rises"),
    ("DELETE FROM {schema}.counter", "only rises"),
    ("TRUNCATE {schema}.counter", "append-only"),
    ("DELETE FROM {schema}.claim", "append-only"),
    ("TRUNCATE {schema}.generation CASCADE", "append-only"),
]


@pytest.mark.parametrize("step", RECOVERER_STEPS + WRITES)
def test_relay_cannot_claim_arm_fire_or_write(world: KitWorld, step: str) -> None:
    relay = world.connect(world.relay)
    world.deliver(relay, 0, 1)
    with pytest.raises(DENIED):
        relay.execute(world.sql(step))
    assert world.record() == [(1, 0)]


@pytest.mark.parametrize("step", WRITES)
def test_recoverer_and_auditor_cannot_write_past_the_protocol(world: KitWorld, step: str) -> None:
    for login in (world.recoverer, world.auditor):
        with pytest.raises(DENIED):
            world.connect(login).execute(world.sql(step))


def test_relay_cannot_read_the_record(world: KitWorld) -> None:
    with pytest.raises(DENIED):
        world.connect(world.relay).execute(world.sql("SELECT FROM {schema}.accepted"))


def test_stranger_cannot_use_the_kit_at_all(world: KitWorld) -> None:
    name = f"{world.names.owner.removesuffix('_owner')}_stranger"
    world.admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'password'").format(sql.Identifier(name)))
    stranger = world.connect(psycopg.conninfo.make_conninfo(world.dsn, user=name, password="password"))
    for step in ("SELECT {schema}.relay_start('me')", "SELECT FROM {schema}.accepted"):
        with pytest.raises(DENIED):
            stranger.execute(world.sql(step))
    world.admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@pytest.mark.parametrize(("statement", "says"), GUARDED)
def test_not_even_owner_or_superuser_changes_what_only_grows(world: KitWorld, statement: str, says: str) -> None:
    world.deliver(world.connect(world.relay), 0, 1)
    for becoming in ("SET ROLE {owner}", "SET session_replication_role = replica", "RESET ROLE"):
        with world.connect(world.dsn) as session:
            session.execute(world.sql(becoming, owner=world.names.owner))
            with pytest.raises(psycopg.errors.RestrictViolation, match=says):
                session.execute(world.sql(statement))
    assert world.record() == [(1, 0)]


def test_function_that_shadows_a_name_is_not_met(world: KitWorld) -> None:
    """The search path is pinned: what a login puts in its own is not called with the owner's rights."""
    relay = world.connect(world.relay)
    relay.execute("CREATE TEMPORARY TABLE protocol (fence bigint)")
    relay.execute(
        "CREATE FUNCTION pg_temp.sha256(bytea) RETURNS bytea LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'met with the rights of %', current_user; END $$"
    )
    relay.execute("SET search_path = pg_temp, pg_catalog")
    assert world.deliver(relay, 0, 1) == "accepted"


def test_function_of_a_schema_that_stands_first_is_not_met(world: KitWorld) -> None:
    """A schema of the login's own, before the server's: functions are looked for there as they are not in pg_temp."""
    schema = {"own": f"own of {world.schema}"}
    login = str(psycopg.conninfo.conninfo_to_dict(world.relay)["user"])
    world.admin.execute(world.sql("CREATE SCHEMA {own} AUTHORIZATION {login}", login=login, **schema))
    world.admin.execute(world.sql("GRANT USAGE ON SCHEMA {own} TO PUBLIC", **schema))
    try:
        relay = world.connect(world.relay)
        relay.execute(
            world.sql(
                "CREATE FUNCTION {own}.sha256(bytea) RETURNS bytea LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE EXCEPTION 'met with the rights of %', current_user; END $$",
                **schema,
            )
        )
        relay.execute(world.sql("SET search_path = {own}, pg_catalog", **schema))
        assert [world.deliver(relay, 0, 1) for _ in range(2)] == ["accepted", "absorbed"]
    finally:
        world.admin.execute(world.sql("DROP SCHEMA {own} CASCADE", **schema))


def test_installed_kit_leaves_only_superusers_past_admission(world: KitWorld) -> None:
    paths = {path for path, _, _ in world.sink.undisciplined_paths()}
    assert paths <= {"superuser"}


def test_each_path_past_admission_is_named(world_make: Callable[..., KitWorld]) -> None:
    world = world_make(
        prepare='DROP TABLE IF EXISTS "Letters"; CREATE TABLE "Letters" (id text PRIMARY KEY, body jsonb)',
        target="Letters",
        target_key="id",
        target_content="body",
    )
    relay = psycopg.conninfo.conninfo_to_dict(world.relay)["user"]
    names = {"owner": world.names.owner, "relay": str(relay), "target": "Letters"}
    for statement in (
        "GRANT INSERT ON {schema}.accepted TO {relay}",
        "GRANT UPDATE (key) ON {schema}.accepted TO {relay}",
        "GRANT DELETE ON {target} TO PUBLIC",
        "GRANT {owner} TO {relay}",
        "ALTER ROLE {owner} LOGIN",
        "GRANT SET ON PARAMETER session_replication_role TO {relay}",
        "ALTER TABLE {schema}.accepted ENABLE REPLICA TRIGGER rows_stay",
        "ALTER TABLE {schema}.standing DISABLE TRIGGER fence_stays",
        "DROP TRIGGER record_stays ON {schema}.accepted",
        "GRANT pg_write_all_data TO {relay}",
        "ALTER TABLE {schema}.applied OWNER TO CURRENT_USER",
    ):
        world.admin.execute(world.sql(statement, **names))
    try:
        found = world.sink.undisciplined_paths()
        said = [says for _, _, says in found]
        for part in (
            f"{relay} holds INSERT on",
            "UPDATE (key)",
            "everybody holds DELETE on public.",
            f"{relay} can become the owner",
            "can log in and owns the kit",
            "may set session_replication_role",
            "rows_stay of",
            "fence_stays of",
            "trigger record_stays",
            "may write every table",
            "belongs to",
        ):
            assert any(part in says for says in said), (part, said)
        assert undisciplined_says(found) in world.sink.capability().grounds
    finally:
        for statement in (
            "REVOKE {owner} FROM {relay}",
            "ALTER ROLE {owner} NOLOGIN",
            "REVOKE SET ON PARAMETER session_replication_role FROM {relay}",
            "REVOKE pg_write_all_data FROM {relay}",
            "DROP TABLE {target} CASCADE",
        ):
            world.admin.execute(world.sql(statement, **names))


def test_login_decides_what_the_sink_can_do(world: KitWorld, tmp_path: Path) -> None:
    assert world.sink.capability().archetype is Archetype.FENCED
    for login, archetype, problem in (
        (world.auditor, Archetype.QUERYABLE, None),
        (world.relay, Archetype.BLIND, "cannot read the record"),
    ):
        sink = world.sink_as(login, tmp_path)
        assert sink.capability().archetype is archetype
        assert bool(problem) != sink.test().is_usable
        assert problem is None or problem in " ".join(sink.test().problems)


def test_row_policy_that_hides_a_part_is_a_problem(world: KitWorld) -> None:
    world.admin.execute(
        world.sql(
            "ALTER TABLE {schema}.accepted ENABLE ROW LEVEL SECURITY; "
            "CREATE POLICY few ON {schema}.accepted USING (position > 5)"
        )
    )
    report = world.sink.test()
    assert not report.is_usable
    assert "policy hides part of the record" in " ".join(report.problems)
