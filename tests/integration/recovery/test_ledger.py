"""What an audit once saw decides later ones, on real ends: rows purged, deleted on delivery, acceptances taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone
from psycopg.sql import SQL, Identifier

from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.verdicts import verdict_total
from recovery_api.models import LedgerItem, LedgerLane, RecoveryOutcome
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.services.audits import audit_request
from recovery_api.services.ledger import ledger_decide_below
from recovery_api.services.omissions import omission_acknowledge
from tests.integration.recovery.test_grounds import NUMBERED, deliver, source
from tests.integration.recovery.world import World, run, world_make
from workers.connectors.protocols.source import Source
from workers.connectors.readings import Reading
from workers.connectors.sources.postgresql_outbox import PostgresqlOutbox
from workers.evidence.ranges import EndSpec
from workers.evidence.read import evidence_read
from workers.recovery.ends import request_make
from workers.recovery.verdicts import lane_verdicts
from workers.spark.tasks import InProcess

KEYS = [f"e{number}" for number in range(1, 10)]


@pytest.fixture
def numbered(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    """The outbox with its number alone as the coordinate, proven by the share lock."""
    return numbered_make(database_factory, tmp_path)


@pytest.fixture
def deleting(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    """The same, registered as a source from which rows go once they were delivered."""
    return numbered_make(database_factory, tmp_path, retention="deletes_delivered")


@pytest.fixture
def marking(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    """A relay that marks what it sent: the filter leaves marked rows out, so they go from what is read."""
    return numbered_make(database_factory, tmp_path, retention="deletes_delivered", filter="sent_at IS NULL")


def numbered_make(database_factory: Callable[[str], str], directory: Path, **more: Any) -> World:
    world = world_make(database_factory, directory, source_more={**NUMBERED, **more})
    source(world, "ALTER TABLE outbox DROP CONSTRAINT outbox_pkey, ADD PRIMARY KEY (id), ADD sent_at timestamptz")
    return world


def commit(world: World, keys: Iterable[str]) -> None:
    for key in keys:
        world.commit([key])


def purge(world: World, *keys: str) -> None:
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute('DELETE FROM outbox WHERE "key" = ANY(%s)', [list(keys)])


def deliver_and_delete(world: World, *keys: str) -> None:
    deliver(world, list(keys))
    purge(world, *keys)


def deliver_and_mark(world: World, *keys: str) -> None:
    deliver(world, list(keys))
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute('UPDATE outbox SET sent_at = now() WHERE "key" = ANY(%s)', [list(keys)])


def audit_in_full(world: World) -> Any:
    intent = audit_request(world.pipeline, actor="ada", now=timezone.now(), is_full=True, wake=False)
    run(intent)
    return world.pipeline.audits.get(intent=intent)


def take_away(world: World, position: int) -> None:
    """What only a superuser can do to the kit's record."""
    with psycopg.connect(world.sink_dsn) as connection:
        (guards,) = connection.execute(
            "SELECT array_agg(tgname::text) FROM pg_trigger WHERE tgrelid = 'fencepost.accepted'::regclass AND NOT tgisinternal"
        ).fetchone() or ([],)
        connection.execute("ALTER TABLE fencepost.accepted DISABLE TRIGGER USER")
        connection.execute("DELETE FROM fencepost.accepted WHERE position = %s", [position])
        for guard in guards:
            connection.execute(SQL("ALTER TABLE fencepost.accepted ENABLE ALWAYS TRIGGER {}").format(Identifier(guard)))


def items(world: World) -> list[tuple[str, int, bool, str]]:
    rows = LedgerItem.objects.filter(pipeline=world.pipeline).order_by("position", "word")
    return [(one.word, one.position, one.is_content_gone, one.settled_by) for one in rows]


# -- T1 ---------------------------------------------------------------------------------------------------------------


def test_t1_an_event_once_found_owed_stays_owed_when_its_row_is_purged(numbered: World) -> None:
    world = numbered
    commit(world, KEYS)
    deliver(world, [key for key in KEYS if key != "e7"])
    first = world.audit()
    assert (first.status, first.lost_count) == ("owed", 1)
    assert items(world) == [("lost", 7, False, "")]
    purge(world, "e7")
    audit = world.audit()
    assert (audit.status, audit.exit_code, audit.lost_count) == ("owed", 1, 1), audit.says
    assert "1 of the missing is gone at the source, content and all: no recovery can send it." in audit.says
    assert "Harmless" not in audit.says and "rolled back" not in audit.says
    assert items(world) == [("lost", 7, True, "")]
    commit(world, ["e10", "e11", "e12"])
    deliver(world, ["e10", "e11", "e12"])
    audit = world.audit()
    assert (audit.status, audit.lost_count) == ("owed", 1), audit.says
    assert pipeline_status(world.pipeline, timezone.now()).status == "owed"
    item = LedgerItem.objects.get()
    assert item.first_audit == first and item.last_audit == audit and item.first_seen_at < item.last_seen_at


def test_t1_the_newest_row_purged_takes_nothing_back(numbered: World) -> None:
    """Its row was the head: without it the history ends below it, and the verdict does not."""
    world = numbered
    commit(world, KEYS)
    deliver(world, KEYS[:-1])
    assert world.audit().status == "owed"
    purge(world, "e9")
    audit = world.audit()
    assert (audit.status, audit.lost_count) == ("owed", 1), audit.says
    assert audit.frontier["0"]["position"] == "9"


def test_t1_what_is_gone_is_settled_by_its_acceptance_or_by_a_person(numbered: World) -> None:
    world = numbered
    commit(world, KEYS)
    held_back = world.batch(["e2"])
    deliver(world, [key for key in KEYS if key not in ("e2", "e7")])
    assert world.audit().lost_count == 2
    purge(world, "e2", "e7")
    assert world.audit().lost_count == 2
    deliver_rows(world, held_back)
    audit = world.audit()
    assert (audit.status, audit.lost_count) == ("owed", 1), audit.says
    assert items(world) == [("lost", 2, True, "accepted"), ("lost", 7, True, "")]
    omission_acknowledge(world.pipeline, "7", reason="it was a test", actor="grace", now=timezone.now())
    audit = world.audit()
    assert (audit.status, audit.lost_count, audit.acknowledged_count) == ("acknowledged", 1, 1), audit.says


def deliver_rows(world: World, batch: Any) -> None:
    position, ordinal = batch.column_names.index("position"), batch.column_names.index("ordinal")
    rows = batch.set_column(position, batch.schema.field(position), batch["ordinal"])
    rows = rows.set_column(ordinal, batch.schema.field(ordinal), [[0] * batch.num_rows])
    assert set(world.sink().deliver(0, rows)) == {"accepted"}


def test_t1_a_plan_sends_nothing_that_is_gone_and_the_recovery_that_lands_the_rest_ends_owed(numbered: World) -> None:
    world = numbered
    commit(world, KEYS)
    deliver(world, ["e1", "e3"])
    assert world.audit().lost_count == 7
    purge(world, "e2", "e7")
    plan = world.plan()
    assert plan.batch_count == 5, plan.says
    assert (plan.batch["provably missing"], plan.batch["unknowable"]) == ("5", "2")
    assert "Not sent: 2 unknowable." in plan.says
    recovery = world.request(world.approve(plan))
    run(recovery.intents.get())
    recovery.refresh_from_db()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.INCOMPLETE, 5), recovery.says
    assert "2 events whose content is gone at the source" in recovery.says
    assert "the next plan carries the rest" not in recovery.says
    assert pipeline_status(world.pipeline, timezone.now()).status == "owed"


def test_t1_a_relay_that_delivers_and_deletes_while_an_audit_reads_is_no_loss(deleting: World, tmp_path: Path) -> None:
    """Between the record's snapshot and the source's: neither shows the event any more, and the record has it."""
    world = deleting
    commit(world, KEYS[:3])
    deliver(world, ["e1"])
    assert world.audit().lost_count == 2

    class Meanwhile(PostgresqlOutbox):
        @contextmanager
        def hold_snapshot(self) -> Iterator[Reading]:
            deliver_and_delete(world, "e2")
            with super().hold_snapshot() as reading:
                yield reading

    class Between(EndSpec):
        def source(self) -> Source:
            return Meanwhile(options_parse(kind_get(self.kind), self.options))

    request = request_make(world.pipeline, str(tmp_path / "evidence" / "between"))
    request = replace(request, source=Between(request.source.kind, request.source.options))
    Path(request.evidence).mkdir(parents=True)
    with evidence_read(InProcess(), request, lambda **_: None) as found:
        counts = found.lanes["0"].counts
    assert (counts.lost, counts.lost_remembered) == (1, 0)
    assert verdict_total(lane_verdicts(found)).status == "owed"


# -- T2 ---------------------------------------------------------------------------------------------------------------


def test_t2_rows_purged_before_anybody_saw_them_are_unknown_until_somebody_decides(numbered: World) -> None:
    world = numbered
    commit(world, KEYS)
    deliver(world, KEYS[3:])
    purge(world, "e1", "e2", "e3")
    audit = world.audit()
    assert (audit.status, audit.exit_code) == ("unknown", 3)
    assert "Unknown below 4" in audit.says
    assert world.audit().status == "unknown" and audit_in_full(world).status == "unknown"
    ledger_decide_below(world.pipeline, "4", reason="they were test rows", actor="grace", now=timezone.now())
    audit = world.audit()
    assert audit.status == "exactly_once_given", audit.says
    assert audit.givens[0].startswith("that nothing below 4 is owed (grace on ")


def test_t2_rows_that_came_and_went_between_two_audits_are_unknown_too(numbered: World) -> None:
    world = numbered
    commit(world, KEYS[:3])
    deliver(world, KEYS[:3])
    assert world.audit().status == "exactly_once"
    purge(world, *KEYS[:3])
    commit(world, KEYS[3:6])
    purge(world, *KEYS[3:6])
    commit(world, KEYS[6:])
    deliver(world, KEYS[6:])
    audit = world.audit()
    assert audit.status == "unknown" and "Unknown above 3 and below 7" in audit.says


def test_t2_what_an_audit_saw_may_be_purged_and_numbers_rolled_back_are_harmless(numbered: World) -> None:
    world = numbered
    commit(world, KEYS[:3])
    deliver(world, KEYS[:3])
    assert world.audit().status == "exactly_once"
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute('INSERT INTO outbox ("key", content) VALUES (%s, %s)', ["never", "{}"])
        connection.rollback()
    commit(world, KEYS[4:])
    deliver(world, KEYS[4:])
    purge(world, "e1", "e2")
    audit = world.audit()
    assert audit.status == "exactly_once", audit.says


# -- T3 ---------------------------------------------------------------------------------------------------------------


def test_t3_what_an_audit_saw_committed_stays_justified_and_what_nobody_saw_is_no_hazard(deleting: World) -> None:
    world = deleting
    commit(world, KEYS[:6])
    deliver(world, ["e4", "e5", "e6"])
    audit = world.audit()
    assert (audit.status, audit.lost_count, audit.premature_count) == ("owed", 3, 0), audit.says
    purge(world, "e4", "e5", "e6")
    deliver_and_delete(world, "e1", "e2")
    commit(world, KEYS[6:])
    deliver_and_delete(world, "e7", "e8", "e9")
    audit = world.audit()
    assert (audit.status, audit.lost_count, audit.premature_count) == ("owed", 1, 0), audit.says
    counts = audit.lanes["0"]["counts"]
    assert (counts["justified_earlier"], counts["justification_unknown"]) == (3, 3)
    assert items(world) == [("lost", 1, False, "accepted"), ("lost", 2, False, "accepted"), ("lost", 3, False, "")]
    recovery = world.recover()
    assert recovery.outcome == RecoveryOutcome.NOTHING_OWED_OF_KEPT, recovery.says
    assert recovery.landed_count == 1
    audit = world.audit()
    assert (audit.status, audit.exit_code) == ("nothing_owed_of_kept", 4), audit.says
    assert "Of 9 acceptances 6 (66 %) are shown to be committed" in audit.says
    found = pipeline_status(world.pipeline, timezone.now())
    assert (found.status, found.exit_code) == ("nothing_owed_of_kept", 4)


def test_t3_a_relay_that_marks_is_judged_as_one_that_deletes(marking: World) -> None:
    world = marking
    commit(world, KEYS[:6])
    deliver(world, ["e4"])
    assert world.audit().lost_count == 5
    deliver_and_mark(world, "e1", "e2", "e5", "e6")
    commit(world, KEYS[6:])
    deliver_and_mark(world, "e7")
    audit = world.audit()
    assert (audit.status, audit.lost_count, audit.premature_count) == ("owed", 3, 0), audit.says
    deliver_and_mark(world, "e3", "e8", "e9")
    audit = world.audit()
    assert audit.status == "nothing_owed_of_kept", audit.says
    assert audit.lost_count == 0 and LedgerItem.objects.filter(settled_at__isnull=True).count() == 0


def test_t3_a_stuck_row_and_an_altered_one_are_found_at_a_source_that_deletes(deleting: World) -> None:
    world = deleting
    commit(world, KEYS[:4])
    deliver_and_delete(world, "e1", "e2")
    altered = world.batch(["e3"])
    content = altered.schema.get_field_index("content")
    deliver_rows(world, altered.set_column(content, "content", [['{"n": 2}']]))
    audit = world.audit()
    assert (audit.status, audit.premature_count, audit.lost_count) == ("hazard", 1, 2), audit.says
    purge(world, "e3", "e4")
    audit = world.audit()
    assert (audit.status, audit.premature_count, audit.lost_count) == ("hazard", 1, 2), audit.says


def test_t3_an_empty_outbox_is_what_a_deleting_relay_leaves_when_all_is_well(deleting: World) -> None:
    world = deleting
    commit(world, KEYS[:2])
    deliver(world, KEYS[:2])
    assert world.audit().status == "nothing_owed_of_kept"
    purge(world, *KEYS[:2])
    audit = world.audit()
    assert audit.status == "nothing_owed_of_kept", audit.says
    assert "it keeps no event now" in audit.says and "All 2 acceptances are shown to be committed." in audit.says


# -- T20 --------------------------------------------------------------------------------------------------------------


def test_t20_an_acceptance_taken_away_and_accepted_again_is_unknown_until_an_audit_in_full(numbered: World) -> None:
    world = numbered
    commit(world, KEYS[:3])
    deliver(world, KEYS[:3])
    assert world.audit().status == "exactly_once"
    take_away(world, 2)
    deliver(world, ["e2"])
    audit = world.audit()
    assert audit.status == "unknown", audit.says
    assert "An earlier audit saw 3 acceptances of which the record holds 2 now." in audit.says
    assert world.audit().status == "unknown"
    assert audit_in_full(world).status == "exactly_once"
    assert world.audit().status == "exactly_once"


def test_t20_what_a_vanished_acceptance_had_settled_is_open_again(numbered: World) -> None:
    world = numbered
    commit(world, KEYS[:3])
    deliver(world, ["e1", "e3"])
    assert world.audit().status == "owed"
    deliver(world, ["e2"])
    assert world.audit().status == "exactly_once"
    assert items(world) == [("lost", 2, False, "accepted")]
    purge(world, "e2")
    take_away(world, 2)
    audit = world.audit()
    assert (audit.status, audit.lost_count) == ("owed", 1), audit.says
    assert items(world) == [("lost", 2, True, "")]


# -- what changes void it ---------------------------------------------------------------------------------------------


def test_another_scope_keeps_what_was_open_and_takes_nothing_as_seen(numbered: World) -> None:
    world = numbered
    commit(world, KEYS[:4])
    deliver(world, KEYS[1:4])
    assert world.audit().status == "owed"
    purge(world, "e1", "e2")
    world.pipeline.scope = ["e1", "e3", "e4"]
    world.pipeline.save()
    audit = world.audit()
    assert audit.status == "unknown", audit.says
    assert "1 event that an earlier audit found missing cannot be judged by this scope" in audit.says
    assert items(world) == [("lost", 1, False, "")]
    assert LedgerLane.objects.count() == 2
