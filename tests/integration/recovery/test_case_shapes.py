"""Cases of the case book whose history or record has a shape of its own: several servers' numbers, a snapshot that is read
again, rows that are marked as deleted, entries that were trimmed. Through registered ends, on real PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from django.utils import timezone

from recovery_api.domain.headroom.terms import Forgets
from recovery_api.domain.identity import NO_REUSE
from recovery_api.models import Audit, PlanState, RecoveryOutcome
from recovery_api.selectors.headroom import pipeline_headroom
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from tests.contract.sink_engines import event_make, rows_make
from tests.integration.recovery.table_world import MAILS, table_world_make
from tests.integration.recovery.test_archive_files import Archive, archive
from tests.integration.recovery.test_id_records import Ids
from tests.integration.recovery.world import World, run

__all__ = ["archive"]

UA, UB = "aaaaaaaa-0000-0000-0000-000000000001", "bbbbbbbb-0000-0000-0000-000000000002"


def gtids(server: str, *numbers: int) -> list[dict[str, Any]]:
    return [event_make(n, lane=server) for n in numbers]


def gtid_lines(events: list[dict[str, Any]]) -> str:
    """As an exporter writes them: server and number in one, in any spelling."""
    return "".join(
        json.dumps(
            {
                "coordinate": f"{one['lane'].upper()}: {one['position']}",
                "value": json.loads(one["content"]),
                **{name: one[name] for name in ("op", "key", "event_id")},
            }
        )
        + "\n"
        for one in events
    )


def lost(audit: Any) -> dict[str, list[str]]:
    """By lane the coordinates of the lost events, in order."""
    found: dict[str, list[int]] = {}
    for row in audit.findings:
        assert row["finding"] == "lost", row
        found.setdefault(row["lane"], []).append(int(row["coordinate"]))
    return {lane: [str(number) for number in sorted(numbers)] for lane, numbers in found.items()}


def test_rc_15_holes_of_one_server_are_owed_and_what_its_log_purged_is_unknown(archive: Archive) -> None:
    """RC-15, with a log exported to files: executed uA:1-100 and uB:1-7, of which uA:1-40 are purged; accepted are
    uA:41-60:65 and uB:1-7."""
    archive.pipeline.source.options |= {"retention": "purges"}
    archive.pipeline.source.save()
    history = gtids(UA, *range(41, 101)) + gtids(UB, *range(1, 8))
    (archive.folder / "binlog.jsonl").write_text(gtid_lines(history))
    taken = gtids(UA, *range(41, 61), 65) + gtids(UB, *range(1, 8))
    archive.sink().deliver(0, pa.Table.from_batches([rows_make(taken)]))
    audit = archive.audit()
    owed = [str(n) for n in (*range(61, 65), *range(66, 101))]
    assert lost(audit) == {UA: owed} and audit.lost_count == 39, "never 40 more"
    assert audit.status == "owed" and archive.plan().batch_count == 39
    rest = gtids(UA, *range(61, 65), *range(66, 101))
    archive.sink().deliver(0, pa.Table.from_batches([rows_make(rest)]))
    audit = archive.audit()
    assert (audit.status, audit.exit_code, audit.findings) == ("unknown", 3, []), audit.says
    assert f"In lane {UA}: unknown below 41: the source's rows there were gone before any audit saw them" in audit.says
    assert f"nothing-owed-below PIPELINE 41 --lane {UA} --reason TEXT" in audit.says


CHANGES = """
CREATE TABLE changes (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, lsn pg_lsn NOT NULL, op text NOT NULL, snapshot text,
    id bigint NOT NULL, event_id text UNIQUE NOT NULL, committed_at timestamptz NOT NULL DEFAULT now());
INSERT INTO changes (lsn, op, snapshot, id, event_id) VALUES
    ('0/1F4', 'r', 'first', 1, 'orders/1'), ('0/1F4', 'r', 'true', 2, 'orders/2'), ('0/1F4', 'r', 'last', 3, 'orders/3'),
    ('0/1FE', 'c', 'false', 4, 'orders/4'), ('0/26C', 'r', 'incremental', 2, 'orders/2 read again');
CREATE TABLE orders (id text);
INSERT INTO orders SELECT 'orders/' || id FROM unnest(ARRAY[1, 2, 2, 3, 4]) AS id
"""


@pytest.mark.django_db(transaction=True)
def test_rc_24_rows_of_a_snapshot_are_events_of_their_own_and_a_second_reading_of_one_is_none(
    database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    """RC-24, with a connector's change log kept in a table: three rows share the snapshot's log position."""
    dsn, now = database_factory("log"), timezone.now()
    (tmp_path / "log").write_text(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute(CHANGES)

    def audited(name: str, coordinate: str, spelling: str, **more: Any) -> Any:
        options = {
            "connection": f"file:{tmp_path / 'log'}",
            "table": "changes",
            "event_id": "event_id",
            NO_REUSE: True,
            "coordinate": [coordinate],
            "coordinate_spelling": spelling,
            "grace_seconds": 0,
            **more,
        }
        source = source_create(f"log-{name}", "postgresql_outbox", options, actor="ada", now=now)
        given = {
            "connection": f"file:{tmp_path / 'log'}",
            "table": "orders",
            "identity": "event_id",
            "event_id": "id",
            "is_append_only": True,
        }
        sink = sink_create(f"orders-{name}", "postgresql_table", given, actor="ada", now=now)
        pipeline = pipeline_create(name, source, sink, actor="ada", now=now)
        return Audit.objects.get(intent=run(audit_request(pipeline, actor="ada", now=timezone.now(), wake=False)))

    audit = audited("by-arrival", "seq", "bigint", filter="snapshot <> 'incremental'")
    assert (audit.obligation_count, audit.lost_count, audit.premature_count) == (4, 0, None or 0)
    assert (audit.status, audit.duplicate_count) == ("hazard", 1), audit.says
    (finding,) = audit.findings
    assert (finding["finding"], finding["coordinate"], finding["accepted_count"]) == ("duplicate", "2", 2)


def test_rc_61_what_a_soft_deletion_hides_is_lost_and_is_never_brought_back(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    """RC-61: 1 is there, 2 is marked as deleted, 3 is absent. Nothing is written where a row may be marked."""
    world = table_world_make(
        database_factory,
        tmp_path,
        sink_sql=f"{MAILS}; ALTER TABLE mails ADD deleted_at timestamptz",  # type: ignore[arg-type]
    )
    world.commit(["e1", "e2", "e3"])
    world.deliver(["e1", "e2"])
    world.alter("UPDATE mails SET deleted_at = now() WHERE \"key\" = 'e2'")
    audit = world.audit()
    assert audit.lost_count == 1, "not declared: 2 counts as present"
    assert any("'deleted_at' marks as deleted counts as accepted" in one for one in audit.weaknesses), audit.weaknesses

    options = {**world.sink_options, "filter": "deleted_at is null"}
    sink = sink_create("living", "postgresql_table", options, actor="ada", now=timezone.now())
    world.pipeline.retired_at = timezone.now()
    world.pipeline.save()
    source = world.pipeline.source
    world.pipeline = pipeline_create("orders-living", source, sink, actor="ada", now=timezone.now())
    audit = world.audit()
    assert (audit.status, audit.lost_count) == ("owed", 2), audit.says
    assert not any("marks as deleted" in one for one in audit.weaknesses)
    plan = world.plan()
    assert plan.state == PlanState.REFUSED, plan.says
    assert "a row that is written may not meet it" in json.dumps(plan.conditions)
    with psycopg.connect(world.sink_dsn) as connection:
        assert connection.execute("SELECT count(*) FROM mails").fetchone() == (2,)


def test_rc_61_an_older_event_that_lands_late_does_not_bring_back_what_a_newer_one_deleted(
    world_with_target: World,
) -> None:
    """RC-61: the recovery lands the creation of 2 after its deletion was accepted; 4 was created and deleted, both arrived."""
    world = world_with_target
    world.commit(["2", "4"])
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute(
            "INSERT INTO outbox (\"key\", op, content) VALUES ('2', 'delete', NULL), ('4', 'delete', NULL)"
        )
    two, four = world.batch(["2"]), world.batch(["4"])
    assert world.sink().deliver(0, four) == ["accepted", "accepted"]
    assert world.sink().deliver(0, two.slice(1)) == ["accepted"], "the deletion"
    recovery = world.recover()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.EXACTLY_ONCE, 1), recovery.says
    with psycopg.connect(world.sink_dsn) as connection:
        assert connection.execute('SELECT "key" FROM mail').fetchall() == []
    assert world.audit().status == "exactly_once"


@pytest.mark.django_db(transaction=True)
def test_rc_66_what_a_record_trimmed_before_anybody_looked_is_undecided_and_only_the_rest_is_lost(
    database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    """RC-66, with an inbox whose rows go after 30 minutes in the place of a stream: e1 and e2 are trimmed, e3 to e5 are
    there, e6 never came."""
    ids = Ids(database_factory, tmp_path)
    ids.attest()
    ids.register()
    for number, age in ((1, 50), (2, 40), (3, 20), (4, 10), (5, 5), (6, 1)):
        ids.commit(number, minutes_ago=age)
    for number in (3, 4, 5):
        ids.consume(number)
    audit = ids.audit()
    found = sorted((row["coordinate"], row["finding"], row["cause"]) for row in audit.findings)
    assert found == [("1", "unknown", "record trimmed"), ("2", "unknown", "record trimmed"), ("6", "lost", None)]
    assert (audit.status, audit.lost_count) == (
        "owed",
        1,
    ) and "2 events have no entry in the record any more" in audit.says
    plan = ids.plan()
    assert (plan.batch["provably missing"], plan.batch["trimmed"]) == ("1", "2"), "nothing trimmed is sent"
    terms = pipeline_headroom(ids.pipeline, timezone.now()).found.terms
    (record,) = [one for one in terms if one.term.forgets is Forgets.RECORD]
    assert record.term.says.startswith("The record keeps rows for 29 min, as declared."), "its life less the margin"
