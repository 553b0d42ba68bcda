"""An audit that goes on from the one before it: what it reads, what it says, and when everything is read again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.models import LedgerBlock
from recovery_api.services.audits import audit_request
from tests.integration.recovery.world import World, run

pytestmark = pytest.mark.spark

COUNTS = (
    "status",
    "lost_count",
    "premature_count",
    "duplicate_count",
    "obligation_count",
    "accepted_count",
    "frontier",
)


def audit_in_full(world: World, frontier: str | None = None) -> Any:
    intent = audit_request(world.pipeline, actor="ada", now=timezone.now(), frontier=frontier, is_full=True, wake=False)
    run(intent)
    return world.pipeline.audits.get(intent=intent)


def grounds(audit: Any) -> str:
    return " ".join(ground for lane in audit.lanes.values() for ground in lane["grounds"])


def is_whole(audit: Any) -> bool:
    """Whether it says that it read both ends in full."""
    return "Both ends were read in full" in grounds(audit)


def said(audit: Any) -> dict[str, Any]:
    return {name: getattr(audit, name) for name in COUNTS} | {"findings": audit.findings, "groups": audit.groups}


def test_an_audit_reads_what_is_new_and_says_what_one_in_full_says(world: World) -> None:
    for key in ("e1", "e2", "e3"):
        world.commit([key])
    world.deliver(["e1", "e3"])
    first = world.audit()
    assert (first.status, first.lost_count, is_whole(first)) == ("owed", 1, True)
    assert "No earlier audit is remembered" in grounds(first)

    world.commit(["e4", "e5"])
    world.deliver(["e5"])
    second = world.audit()
    assert (second.status, second.lost_count) == ("owed", 2)
    assert [row["finding"] for row in second.findings] == ["lost", "lost"]
    assert said(audit_in_full(world)) == said(second)

    world.deliver(["e2", "e4"])  # one of them below what was judged: its block is judged anew
    third = world.audit()
    assert (third.status, third.lost_count, third.obligation_count) == ("exactly_once", 0, 5)
    assert said(audit_in_full(world)) == said(third)
    assert third.listing.count() == 0


def test_rows_that_the_source_dropped_stay_what_an_audit_saw_of_them(world: World) -> None:
    for key in ("e1", "e2"):
        world.commit([key])
    world.deliver(["e1", "e2"])
    assert world.audit().status == "exactly_once"
    with psycopg.connect(world.source_dsn) as source:
        source.execute("DELETE FROM outbox WHERE \"key\" = 'e1'")
    audit = world.audit()
    assert audit.status == "exactly_once"
    assert said(audit_in_full(world)) == said(audit)


def test_entries_of_the_last_increment_that_are_gone_make_the_audit_read_everything(world: World) -> None:
    world.commit(["e1"])
    world.deliver(["e1"])
    world.audit()
    world.commit(["e2"])
    world.deliver(["e2"])
    assert world.audit().status == "exactly_once"
    with psycopg.connect(world.sink_dsn) as sink:
        sink.execute("ALTER TABLE fencepost.accepted DISABLE TRIGGER USER")
        sink.execute("DELETE FROM fencepost.accepted WHERE \"key\" = 'e2'")
    audit = world.audit()
    assert is_whole(audit) and "restored or changed" in grounds(audit)
    assert (audit.status, audit.lost_count) == ("owed", 1)


def test_a_block_that_was_changed_is_found_in_its_turn_and_everything_is_read(world: World) -> None:
    world.commit(["e1"])
    world.deliver(["e1"])
    world.audit()
    LedgerBlock.objects.update(derived_at=timezone.now() - timedelta(days=8))
    with psycopg.connect(world.sink_dsn) as sink:
        sink.execute("ALTER TABLE fencepost.accepted DISABLE TRIGGER USER")
        sink.execute("UPDATE fencepost.accepted SET payload_digest = sha256('another')")
    audit = world.audit()
    assert is_whole(audit) and "the acceptance record does not hold any more what an earlier audit" in grounds(audit)
    assert (audit.status, audit.premature_count) == ("hazard", 1)


def test_another_scope_goes_on_from_nothing(world: World) -> None:
    world.commit(["e1", "e2"])
    world.deliver(["e1"])
    world.audit()
    world.pipeline.scope = ["e1"]
    world.pipeline.save()
    audit = world.audit()
    assert is_whole(audit) and (audit.status, audit.obligation_count) == ("exactly_once", 1)


def test_a_restored_sink_voids_what_was_judged(world: World, database_factory: Any) -> None:
    world.commit(["e1", "e2"])
    world.deliver(["e1"])
    backup = world.sink_backup(database_factory)
    world.audit()
    world.deliver(["e2"])
    assert world.audit().status == "exactly_once"
    world.sink_restore(backup)
    audit = world.audit()
    assert is_whole(audit) and (audit.status, audit.lost_count) == ("owed", 1)
