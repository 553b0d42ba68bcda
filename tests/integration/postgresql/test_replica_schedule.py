"""RC-06, left alone: a pipeline whose source is registered at a lagging replica is audited by its schedule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recovery_api.models import Audit
from tests.integration.postgresql.test_replica import Replica, replica
from tests.integration.recovery.test_schedules import OPTIONS, PERIOD, WINDOW, begins, passes, told, work
from tests.integration.recovery.world import World, world_make

__all__ = ["replica"]
pytestmark = pytest.mark.slow


@pytest.fixture
def world(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, settings: Any) -> World:
    settings.REDIS_URL = ""
    settings.SECURE_SSL_REDIRECT = False
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path / "evidence"
    return world_make(database_factory, tmp_path, **OPTIONS)


def test_rc06_a_source_at_a_lagging_replica_is_unknown_audit_after_audit_and_owed_at_its_primary(
    world: World,
    replica: Replica,
    tmp_path: Path,
) -> None:
    """51 and 53 are replayed and 52 is not; the sink has 54, too. No schedule calls that lost, premature or well."""
    address = conninfo_to_dict(replica.dsn)
    at_replica = make_conninfo(world.source_dsn, host=str(address["host"]), port=str(address["port"]))
    world.commit(["k51"])
    with psycopg.connect(world.source_dsn) as late:
        late.execute("INSERT INTO outbox (\"key\", content) VALUES ('k52', '{}')")
        world.commit(["k53"])
        replica.replay_up_to_now()
        replica.pause()
    world.commit(["k54"])
    world.deliver(["k51", "k53", "k54"])
    (tmp_path / "source.dsn").write_text(at_replica)
    begins(world)
    for _ in range(3):
        status = told(world)
        assert (status["status"], status["exit_code"]) == ("unknown", 3), status["says"]
        audit = Audit.objects.order_by("-finished_at")[0]
        assert (audit.lost_count, audit.premature_count, audit.duplicate_count) == (0, 0, 0)
        assert "replica" in " ".join([audit.says, *audit.weaknesses])
        passes(PERIOD)
        work(world)
    (tmp_path / "source.dsn").write_text(world.source_dsn)
    passes(PERIOD)
    work(world)
    passes(WINDOW + PERIOD)
    work(world)
    status = told(world)
    assert (status["status"], status["exit_code"]) == ("owed", 1), status["says"]
    assert "1 of 4 events" in status["says"]
