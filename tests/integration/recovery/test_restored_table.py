"""A table put back to an earlier state where it stands: nothing names it another one, so only its rows can tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.models import Audit
from recovery_api.services.ends import source_update
from tests.integration.recovery.table_world import TableWorld, table_world_make
from workers.evidence.read import evidence_read
from workers.recovery.ends import evidence_place, request_make, sink_compare
from workers.recovery.verdicts import audit_write
from workers.spark.tasks import InProcess

KEYS = ["e1", "e2", "e3", "e4"]


@pytest.fixture
def table(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> TableWorld:
    world = table_world_make(database_factory, tmp_path)
    world.commit(KEYS)
    world.deliver(KEYS)
    return world


def audited(world: TableWorld) -> Audit:
    """As an audit's intent does it, its tasks in this process."""
    world.until_safe()
    assert not sink_compare(world.pipeline).is_restored, "server, timeline, database and table are the same"
    started_at = timezone.now()
    request = request_make(world.pipeline, evidence_place("audits", "again"))
    with evidence_read(InProcess(), request, lambda **_: None) as found:
        pass
    return audit_write(world.pipeline, found, started_at=started_at, is_full=True)


def restored(world: TableWorld, held: list[str]) -> None:
    """As from a dump of the rows alone, made when these had been accepted."""
    with psycopg.connect(world.sink_dsn) as connection:
        connection.execute('DELETE FROM mails WHERE "key" <> ALL(%s)', [held])


def dropped(world: TableWorld, keys: list[str]) -> None:
    """What the source's retention takes away, which is said of it."""
    options: dict[str, Any] = {**world.source_options, "retention": "purges"}
    source_update(world.pipeline.source, options, actor="ada", now=timezone.now())
    world.pipeline.refresh_from_db()
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute('DELETE FROM outbox WHERE "key" = ANY(%s)', [keys])


def test_what_an_earlier_audit_saw_and_the_table_lost_is_owed_again(table: TableWorld) -> None:
    assert audited(table).status == "exactly_once"
    restored(table, ["e1"])
    found = audited(table)
    assert (found.status, found.lost_count) == ("owed", 3), found.says
    table.deliver(["e4"])
    found = audited(table)
    assert (found.status, found.lost_count) == ("owed", 2), found.says


@pytest.mark.parametrize("held", [[], ["e1"], ["e1", "e2", "e3"]])
def test_what_the_source_dropped_too_is_never_exactly_once_by_what_an_earlier_audit_saw(
    table: TableWorld, held: list[str]
) -> None:
    """e1 to e3 were found accepted once; the source has dropped them since, and the table holds `held` of them."""
    assert audited(table).status == "exactly_once"
    dropped(table, KEYS[:3])
    restored(table, held)
    table.deliver(["e4"])
    found = audited(table)
    assert (found.status, found.exit_code) == ("unknown", 3), found.says
    assert "below the floor" in found.says
