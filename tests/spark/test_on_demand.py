"""What is judged in this process is judged as on the engine; and what turns out large is judged on the engine after all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recovery_api.models import Audit, Intent
from tests.integration.recovery.world import World, world_make

pytestmark = pytest.mark.spark

SAME = (
    "status",
    "says",
    "frontier",
    "lost_count",
    "premature_count",
    "duplicate_count",
    "obligation_count",
    "accepted_count",
    "groups",
    "evidence_rows",
    "matching",
    "suspected_count",
)


@pytest.fixture(autouse=True)
def _settings(settings: Any, tmp_path: Path) -> None:
    settings.REDIS_URL = ""
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path / "evidence"


@pytest.fixture
def made(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path, spark: Any) -> Any:
    return lambda **more: world_make(database_factory, tmp_path, **more)


def judged_on_engine(audit: Audit) -> bool:
    return Intent.objects.get(pk=audit.intent_id).spark_session_id != ""


def test_small_sides_are_judged_here_as_the_engine_judges_them(made: Callable[..., World], settings: Any) -> None:
    world = made()
    world.commit([f"k{number}" for number in range(300)])
    world.deliver([f"k{number}" for number in range(300) if number % 7])
    altered = world.batch(["k7", "k70"])
    world.sink().deliver(0, altered.set_column(6, "content", [['"other"'] * 2]))
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("DELETE FROM outbox WHERE \"key\" IN ('k8', 'k9')")
    found = []
    for rows in (50_000, 0):
        settings.FENCEPOST_IN_PROCESS_ROWS = rows
        found.append(world.audit())
    here, engine = found
    assert (judged_on_engine(here), judged_on_engine(engine)) == (False, True)
    assert here.lost_count == 43 and here.premature_count == 4
    assert [getattr(here, name) for name in SAME] == [getattr(engine, name) for name in SAME]
    for lane, row in here.lanes.items():
        assert {name: row[name] for name in ("counts", "history", "status")} == {
            name: engine.lanes[lane][name] for name in ("counts", "history", "status")
        }
    pages = [sorted(one.findings, key=lambda row: (row["coordinate"], row["finding"])) for one in found]
    assert pages[0] == pages[1] != []  # in the order of their parts, of which the engine makes several
    rows_of = [list(one.listing.order_by("number").values_list("finding", "position", "ordinal")) for one in found]
    assert rows_of[0] == rows_of[1] != []


def test_statistics_that_are_out_of_date_do_not_fill_this_process(made: Callable[..., World], settings: Any) -> None:
    """The planner believes that the filter leaves one row; by now it leaves a thousand."""
    world = made(source_more={"filter": "kind = mail"})
    with psycopg.connect(world.source_dsn, autocommit=True) as connection:
        connection.execute("ALTER TABLE outbox SET (autovacuum_enabled = off)")
        connection.execute("ALTER TABLE outbox ADD kind text NOT NULL DEFAULT 'other'")
        connection.execute("INSERT INTO outbox (\"key\", content) SELECT n, '1' FROM generate_series(1, 1000) n")
        connection.execute("UPDATE outbox SET kind = 'mail' WHERE \"key\" = '1'")
        connection.execute("ANALYZE outbox")
        connection.execute("UPDATE outbox SET kind = 'mail'")
    settings.FENCEPOST_IN_PROCESS_ROWS = 100
    audit = world.audit()
    assert judged_on_engine(audit) and (audit.lost_count, audit.obligation_count) == (1000, 1000)
