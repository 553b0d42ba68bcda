"""What settled items that went by age change at real ends: nothing that an audit says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from django.utils import timezone

from recovery_api.models import LedgerBlock, LedgerItem, SettledItems
from recovery_api.services.settled import settled_retire
from tests.integration.recovery.table_world import TableWorld, table_world_make
from tests.integration.recovery.test_grounds import deliver
from tests.integration.recovery.test_ledger import audit_in_full, commit, numbered_make, purge
from tests.integration.recovery.test_restored_table import audited
from tests.integration.recovery.world import World

KEYS = [f"e{number}" for number in range(1, 10)]


@pytest.fixture
def numbered(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    return numbered_make(database_factory, tmp_path)


@pytest.fixture
def table(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> TableWorld:
    return table_world_make(database_factory, tmp_path)


def test_audits_say_the_same_without_settled_items_and_the_blocks_keep_their_sums(numbered: World) -> None:
    """Two were found missing and arrived; then their rows went at the source, and with age what the ledger knew of them."""
    world = numbered
    commit(world, KEYS)
    deliver(world, [key for key in KEYS if key not in ("e2", "e7")])
    assert world.audit().lost_count == 2
    purge(world, "e7")
    assert world.audit().lost_count == 2
    deliver(world, ["e2"])
    assert world.audit().lost_count == 1
    purge(world, "e2")
    assert world.audit().lost_count == 1
    held = list(LedgerBlock.objects.values_list("low_position", "high_position", "counts", "committed", "accepted"))
    assert settled_retire(timezone.now(), 100, 9) == 1
    assert [(one.position, one.settled_by) for one in LedgerItem.objects.all()] == [(7, "")]
    assert SettledItems.objects.get().count == 1
    again = list(LedgerBlock.objects.values_list("low_position", "high_position", "counts", "committed", "accepted"))
    assert held == again
    for audit in (world.audit(), audit_in_full(world), world.audit()):
        assert (audit.status, audit.lost_count, audit.premature_count) == ("owed", 1, 0), audit.says
    assert audit.lanes["0"]["counts"]["justified_earlier"] == 1


def test_an_item_that_alone_shows_that_an_acceptance_was_committed_never_goes(table: TableWorld) -> None:
    """A record that does not show who admitted an entry: without the item its acceptance would look premature."""
    table.commit(KEYS[:1])
    table.commit(KEYS[1:2])
    table.commit(KEYS[2:4])
    table.deliver(["e1", "e3", "e4"])
    assert audited(table).lost_count == 1
    table.deliver(["e2"])
    assert audited(table).status == "exactly_once"
    with psycopg.connect(table.source_dsn) as connection:
        connection.execute("DELETE FROM outbox WHERE \"key\" = 'e2'")
    before = audited(table)
    assert before.premature_count == 0, before.says
    assert settled_retire(timezone.now(), 100, 9) == 0
    after = audited(table)
    assert (after.status, after.says) == (before.status, before.says)
