"""Cases of the case book in which totals agree, or names do, and the truth is another; on real ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.models import PlanState
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.fleet import pipeline_status
from tests.integration.recovery.table_world import MAILS, UNIQUE, TableWorld, table_world_make
from tests.integration.recovery.test_grounds import deliver
from tests.integration.recovery.test_ledger import commit, numbered_make, purge
from tests.integration.recovery.world import World


@pytest.fixture
def numbered(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    return numbered_make(database_factory, tmp_path)


def runs(audit: Any) -> list[tuple[str, str, str]]:
    """The stretches of the audit's lost events: first, last, how many."""
    (group,) = [one for one in audit.groups if one["finding"] == "lost"]
    return [(one["first_says"], one["last_says"], one["count"]) for one in group["runs"]]


def test_totals_that_agree_hide_no_loss_thirty_inserts_and_thirty_deletes_are_sixty_lost(world: World) -> None:
    """A CDC consumer dropped as many inserts as deletes: its table has as many rows as it should have."""
    with psycopg.connect(world.source_dsn) as source:
        for op, first, last in (("insert", 1, 90), ("delete", 1, 30)):
            source.execute(
                'INSERT INTO outbox (op, "key", content) SELECT %s, %s || n, %s FROM generate_series(%s::int, %s) n',
                [op, f"{op[0]}", json.dumps({"n": 1}), first, last],
            )
    dropped = {f"i{n}" for n in range(61, 91)} | {f"d{n}" for n in range(1, 31)}
    kept = [f"i{n}" for n in range(1, 61)]
    world.deliver(kept)
    audit = world.audit()
    assert (audit.status, audit.lost_count, audit.obligation_count) == ("owed", 60, 120), audit.says
    assert (audit.premature_count, audit.duplicate_count) == (0, 0)
    plan = world.plan()
    assert plan.batch_count == len(dropped) == 60


def test_accepted_twelve_times_because_archiving_failed_is_eleven_too_many_and_nothing_to_send(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    """Each cycle the sink accepted the event, the outbox could not archive it, and the next cycle sent it again."""
    world = table_world_make(database_factory, tmp_path, sink_sql=MAILS)
    world.commit(["before", "again"])
    world.deliver(["before", *["again"] * 12])
    audit = world.audit()
    assert (audit.status, audit.lost_count, audit.premature_count) == ("hazard", 0, 0), audit.says
    counts = audit.lanes["0"]["counts"]
    assert (audit.duplicate_count, counts["duplicate_copies"]) == (1, 11)
    (finding,) = audit.findings
    assert (finding["finding"], finding["accepted_count"]) == ("duplicate", 12)
    plan = world.plan()
    assert plan.state == PlanState.NOTHING_OWED and not plan.batch_count, plan.says


def test_numbers_400_to_700_of_1000_missing_at_lag_0_are_exactly_301_owed(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    """The cursor stands at the head, and the source's own column says that retries are exhausted: neither is an omission."""
    cursor = {"cursor_table": "relay_cursor", "cursor_columns": ["checkpoint"]}
    world = numbered_make(database_factory, tmp_path, **cursor)
    with psycopg.connect(world.source_dsn) as source:
        source.execute("CREATE TABLE relay_cursor AS SELECT 1000::bigint AS checkpoint")
        source.execute("ALTER TABLE outbox ADD attempts int NOT NULL DEFAULT 0")
        source.execute(
            'INSERT INTO outbox ("key", content, attempts)'
            " SELECT 'k' || n, '{}', CASE WHEN n BETWEEN 400 AND 700 THEN 10 ELSE 1 END FROM generate_series(1, 1000) n"
        )
    deliver(world, [f"k{n}" for n in range(1, 1001) if not 400 <= n <= 700])
    audit = world.audit()
    assert (audit.status, audit.lost_count, audit.acknowledged_count) == ("owed", 301, 0), audit.says
    assert runs(audit) == [("400", "700", "301")]
    assert (audit.premature_count, audit.duplicate_count, audit.obligation_count) == (0, 0, 1000)
    behind = audit.lanes["0"]["cursor"]
    assert (behind["says"], behind["lost_behind"], behind["lost_beyond"]) == ("1000", "301", "0")


def test_rc64_a_consumer_that_goes_on_at_the_tip_has_lost_what_was_written_meanwhile(numbered: World) -> None:
    """RC-64, on an outbox: no slot is read, so the consumer that comes back at the newest event stands for the slot that
    was made anew there. What an earlier audit saw bounds it; pruned rows are unknown, with the range named."""
    world = numbered
    keys = [f"e{n}" for n in range(1, 21)]
    commit(world, keys[:10])
    deliver(world, keys[:10])
    assert world.audit().status == "exactly_once"
    commit(world, keys[10:])
    deliver(world, keys[19:])
    audit = world.audit()
    assert (audit.status, audit.lost_count) == ("owed", 9), audit.says
    assert runs(audit) == [("11", "19", "9")]


def test_rc64_rows_that_were_pruned_before_anybody_looked_are_unknown_with_their_range(numbered: World) -> None:
    world = numbered
    keys = [f"e{n}" for n in range(1, 21)]
    commit(world, keys[:10])
    deliver(world, keys[:10])
    assert world.audit().status == "exactly_once"
    commit(world, keys[10:])
    deliver(world, keys[19:])
    purge(world, *keys[:19])
    audit = world.audit()
    assert (audit.status, audit.exit_code, audit.lost_count) == ("unknown", 3, 0), audit.says
    assert "Unknown above 10 and below 20" in audit.says


@pytest.fixture
def table(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> TableWorld:
    return table_world_make(database_factory, tmp_path, sink_sql=f"{MAILS}; {UNIQUE}")  # type: ignore[arg-type]


def test_rc60_a_record_made_anew_under_its_old_name_shows_nothing_of_the_one_before(table: TableWorld) -> None:
    """RC-60, on a table of acceptances that was dropped and made again, in the place of a topic: what the first one held
    is not called lost before somebody settles that it is another, and what an audit found of it is void."""
    keys = [f"e{n}" for n in range(1, 10)]
    table.commit(keys)
    table.deliver(keys)
    assert table.audit().status == "exactly_once"
    table.alter("DROP TABLE mails")
    with psycopg.connect(table.sink_dsn) as connection:
        connection.execute(MAILS)
        connection.execute(UNIQUE)
    table.commit(["n1", "n2"])
    table.deliver(["n1", "n2"])
    table.audit()
    found = pipeline_status(pipeline_get(table.pipeline.name), timezone.now())
    assert (found.status, found.exit_code) == ("unknown", 3), found.says
    assert "restored or replaced" in found.says
