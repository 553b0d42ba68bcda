"""What a table of message ids must be told, what it shows, and how it is read."""

from __future__ import annotations

import pickle
import shlex
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from recovery_api.domain.errors import BadInput, Refused, SnapshotLost, TerminalError, Unsuitable
from recovery_api.domain.identity import NO_REUSE, IdType
from recovery_api.domain.outcomes import Status
from tests.integration.postgresql.id_tables import (
    FOR_EVER,
    MASSTRANSIT,
    OF_MASSTRANSIT,
    ONE,
    Inboxes,
    consumed,
    findings,
    id_of,
    processed,
)
from tests.integration.postgresql.mapped_tables import Bench, rows_of
from workers.connectors.readings import SourceIds
from workers.connectors.registry import record_make, source_make

README = Path(__file__).resolve().parents[3] / "README.md"


def test_types_that_can_never_be_equal_are_refused(inboxes: Inboxes) -> None:
    inboxes.commit(1)
    with pytest.raises(Unsuitable, match="uuid, and the record's id is bigint"):
        inboxes.audit(processed(inboxes, type_="bigint"))


def test_a_partitioned_inbox_is_read_whole(inboxes: Inboxes) -> None:
    run = inboxes.bench.run
    run.execute("CREATE TABLE seen (message_id uuid, day int) PARTITION BY LIST (day)")
    for day in range(3):
        run.execute(f"CREATE TABLE seen_{day} PARTITION OF seen FOR VALUES IN ({day})")
    inboxes.commit(*range(1, 1001))
    run.execute("INSERT INTO seen SELECT message_id, id % 3 FROM outbox WHERE id <> 500")
    found, verdict = inboxes.audit(inboxes.record(table="seen", event_id="message_id", **FOR_EVER))
    assert verdict.counts.accepted_rows == 999 and findings(found) == [("lost", None, 500)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "lifetime_seconds.*is not said"),
        ({"lifetime_seconds": 5, "is_append_only": True}, "rows stay"),
        ({"is_append_only": False}, "lifetime_seconds.*is not said"),
        ({"lifetime_seconds": 60}, "no longer than the margin"),
        ({**FOR_EVER, "is_effect": True}, "mark of an effect"),
        ({**FOR_EVER, "content": "body"}, "not read of a record that is met by id"),
        ({**FOR_EVER, "coordinate": ["id"]}, "not read"),
        ({**FOR_EVER, "event_id": None}, "event_id.*is missing"),
        ({**FOR_EVER, "event_id": "=7"}, "no column"),
        ({**FOR_EVER, "consumer": "a"}, "without its column"),
        ({**FOR_EVER, "accepted_when": "id >"}, "accepted_when"),
    ],
)
def test_what_must_be_said_of_a_record_of_ids_is_not_guessed(
    inboxes: Inboxes, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(BadInput, match=problem):
        record_make("postgresql_table", {**inboxes.record(table="seen", event_id="id"), **options})


def test_readmes_record_of_ids_can_be_read_as_it_stands_there(inboxes: Inboxes) -> None:
    section = README.read_text(encoding="utf-8").partition("## A sink that knows only message ids")[2]
    command = section.partition("./fencepost ")[2].partition("\n\n")[0].replace("\\\n", " ")
    options = dict(word.split("=", 1) for word in shlex.split(command) if "=" in word)
    processed(inboxes, id_of(1))
    report = record_make("postgresql_table", {**options, "connection": inboxes.bench.reference()}).test()
    assert report.is_usable and report.facts["id_type"] == "uuid"


def test_a_record_of_coordinates_takes_nothing_of_ids(bench: Bench) -> None:
    with pytest.raises(BadInput, match="of a record of ids alone"):
        bench.sink(content="content", lifetime_seconds=5)
    with pytest.raises(BadInput, match="identity=event_id"):
        bench.sink(coordinate=None, content="content")


def test_a_record_of_ids_says_what_it_is_and_is_never_fired_into(inboxes: Inboxes) -> None:
    inboxes.bench.run.execute(MASSTRANSIT)
    consumed(inboxes, 1)
    record = record_make("postgresql_table", inboxes.record(**OF_MASSTRANSIT))
    report = record.test()
    assert any("only one there" in one for one in report.weaknesses)
    assert report.is_usable and report.facts["consumer"] == str(ONE) and report.sample and report.sample["rows"]
    assert any("mark of an effect" in one for one in report.weaknesses)
    capability = record.capability()
    assert "mark of an effect" in capability.mark_because and not capability.has_fence
    with pytest.raises(Refused, match="no fence"), record.hold_snapshot(generation=3):
        pass


def test_a_null_in_a_condition_is_no_yes(inboxes: Inboxes) -> None:
    run = inboxes.bench.run
    run.execute("CREATE TABLE seen (message_id uuid, state text, tries int)")
    inboxes.commit(1, 2, 3)
    rows = [(id_of(1), "done", 1), (id_of(2), None, 9), (id_of(3), "open", None)]
    run.cursor().executemany("INSERT INTO seen VALUES (%s, %s, %s)", rows)
    record = inboxes.record(table="seen", event_id="message_id", **FOR_EVER)

    def lost(condition: str) -> list[int]:
        return [place for _, _, place in findings(inboxes.audit(record | {"accepted_when": condition})[0])]

    assert lost("state = 'done'") == [2, 3]
    assert sorted(lost("state in ('done', 'open')")) == [2]
    assert sorted(lost("state <> 'done'")) == [1]
    assert sorted(lost("tries < 5 and state = 'done'")) == [2, 3]


def test_a_source_says_of_its_ids_whether_they_can_stand_for_events(inboxes: Inboxes) -> None:
    source = source_make("postgresql_outbox", inboxes.source_options())
    with source.hold_snapshot() as reading:
        assert isinstance(reading.ids, SourceIds) and (reading.ids.id_type, reading.ids.problem) == (IdType.UUID, "")


def test_a_connection_test_shows_what_keeps_ids_from_standing_for_events(inboxes: Inboxes) -> None:
    assert source_make("postgresql_outbox", inboxes.source_options()).test().is_usable
    inboxes.bench.run.execute("ALTER TABLE outbox DROP CONSTRAINT outbox_message_id_key")
    report = source_make("postgresql_outbox", inboxes.source_options()).test()
    assert not report.is_usable and any("no UNIQUE constraint" in one for one in report.problems)
    assert source_make("postgresql_outbox", {**inboxes.source_options(), NO_REUSE: False}).test().is_usable


@pytest.mark.parametrize("options", [{"consumer": "orders"}, {"accepted_when": "ReceiveCount > 'many'"}])
def test_a_value_that_the_column_cannot_have_is_a_problem_and_no_crash(
    inboxes: Inboxes, options: dict[str, Any]
) -> None:
    inboxes.bench.run.execute(MASSTRANSIT)
    inboxes.commit(1)
    consumed(inboxes, 2)
    record = inboxes.record(**{**OF_MASSTRANSIT, **options})
    with pytest.raises(TerminalError):
        inboxes.audit(record)
    report = record_make("postgresql_table", record).test()
    assert not report.is_usable and report.problems


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_the_shares_of_a_record_are_disjoint_and_whole_and_of_one_snapshot(inboxes: Inboxes, parts: int) -> None:
    run = inboxes.bench.run
    run.execute("CREATE TABLE seen (message_id uuid, padding text)")
    fill = "INSERT INTO seen SELECT gen_random_uuid(), repeat('x', 700) FROM generate_series(1, 900)"
    run.execute(fill)
    record: Any = record_make("postgresql_table", inboxes.record(table="seen", event_id="message_id", **FOR_EVER))
    committed = {str(one) for (one,) in run.execute("SELECT message_id FROM seen").fetchall()}
    with record.hold_snapshot() as reading:
        run.execute(fill)
        again = pickle.loads(pickle.dumps(reading))
        shares = [rows_of(record.read_ids(again, part, parts)) for part in range(parts)]
    assert sorted(row["event_id"] for share in shares for row in share) == sorted(committed)
    assert all(row["is_accepted"] for share in shares for row in share) and all(shares)
    with pytest.raises(SnapshotLost):
        rows_of(record.read_ids(reading, 0, 1))


def test_a_role_that_may_read_some_columns_only_is_told_what_to_grant(inboxes: Inboxes) -> None:
    run, role = inboxes.bench.run, f"{inboxes.bench.run.info.dbname}_auditor"
    run.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'; CREATE TABLE seen (message_id uuid, secret text)")
    run.execute(f"GRANT SELECT (message_id) ON seen TO {role}")
    reference = inboxes.bench.reference(make_conninfo(inboxes.bench.dsn, user=role, password="x"), "auditor")
    options = {**inboxes.record(table="seen", event_id="message_id", **FOR_EVER), "connection": reference}
    record = record_make("postgresql_table", options)
    assert any("GRANT SELECT ON public.seen" in one for one in record.test().problems)
    run.execute(f"GRANT SELECT ON seen TO {role}")
    inboxes.commit(1)
    run.execute("INSERT INTO seen VALUES (%s)", [id_of(1)])
    _, verdict = inboxes.audit(options)
    assert verdict.status is Status.COMPLETE_BY_IDENTITY
