"""A pipeline whose sink carries an older kit: audited and planned for, refused by its version, upgraded, recovered."""

from __future__ import annotations

import json

import psycopg
import pytest

from recovery_api.domain.errors import Refused
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import KitOptions, kit_options
from recovery_api.models import RecoveryOutcome
from tests.integration.recovery.world import World
from workers.connectors.sinks.kit import KIT_VERSION, kit_sql
from workers.connectors.sinks.kit.releases import releases
from workers.connectors.sinks.kit.upgrade import kit_upgrade

OLDER = [release for release in releases() if release.version < KIT_VERSION][-1]


def older_kit(world: World) -> KitOptions:
    """The newest earlier text in place of today's, as somebody who has not upgraded yet has it."""
    kit = kit_options(options_parse(kind_get("postgresql_kit"), world.sink_options))
    with psycopg.connect(world.sink_dsn) as admin:
        admin.execute("DROP SCHEMA fencepost CASCADE")
        admin.execute(kit_sql(kit, admin.info.dbname, OLDER.text).encode())
    return kit


def deliver(world: World, *keys: str) -> None:
    """As a relay does, which knows nothing of versions."""
    with psycopg.connect(world.sink_dsn, autocommit=True) as relay:
        for row in world.batch(keys).to_pylist():
            said = relay.execute(
                "SELECT fencepost.deliver(0, '0', %s, %s, %s, %s, %s, %s::jsonb)",
                [row["position"], row["ordinal"], row["event_id"], row["op"], row["key"], row["content"]],
            ).fetchone()
            assert said == ("accepted",)


def test_r7_older_kit_is_audited_and_planned_for_and_after_an_upgrade_recovered(world: World) -> None:
    kit = older_kit(world)
    for key in ("e1", "e2", "e3"):
        world.commit([key])
    deliver(world, "e1", "e3")
    audit = world.audit()
    assert (audit.status, audit.lost_count) == ("owed", 1)
    plan = world.plan()
    says = f"ersion {OLDER.version} of the sink kit is installed; this Fencepost writes version {KIT_VERSION}"
    assert says in json.dumps(plan.conditions)
    assert "--upgrade" in json.dumps(plan.conditions)
    with pytest.raises(Refused):
        world.approve(plan)
    with psycopg.connect(world.sink_dsn, autocommit=True) as admin:
        assert kit_upgrade(admin, kit)["upgraded"] is True
    recovery = world.recover()
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE, recovery.says
    assert world.accepted_keys() == ["e1", "e3", "e2"]
