"""Records that know only message ids, as libraries make them, met with an outbox by id."""

from __future__ import annotations

from datetime import UTC

import pytest

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.identity import NO_REUSE
from recovery_api.domain.outcomes import Status
from tests.integration.postgresql.id_tables import (
    EVENTUATE,
    FOR_EVER,
    MASSTRANSIT,
    OF_MASSTRANSIT,
    ONE,
    OTHER,
    Inboxes,
    consumed,
    findings,
    id_of,
    processed,
)
from workers.evidence.grounds import Earlier
from workers.evidence.read import Certified


def test_a_plain_list_of_processed_ids_is_complete_by_identity(inboxes: Inboxes) -> None:
    inboxes.commit(1, 2, 3)
    found, verdict = inboxes.audit(processed(inboxes, *map(id_of, (1, 2, 3))))
    assert (verdict.status, verdict.exit_code) == (Status.COMPLETE_BY_IDENTITY, 4)
    assert verdict.says[0].startswith("Complete by identity at 3, given ") and "ana on 2026-11-28" in verdict.says[0]
    assert "contents and premature entries were not judged" in verdict.says[1]
    assert verdict.matching == "by identity (uuid)" and not findings(found)
    assert verdict.counts.coordinates_ascending and verdict.counts.obligations_retained == 3


def test_an_absent_id_of_a_record_that_is_kept_is_lost_and_would_be_sent(inboxes: Inboxes) -> None:
    inboxes.commit(1, 2, 3, minutes_ago=90)
    found, verdict = inboxes.audit(processed(inboxes, id_of(2)))
    assert verdict.status is Status.OWED and findings(found) == [("lost", None, 1), ("lost", None, 3)]
    assert found.batch_count == 2 and verdict.says[0].startswith("2 of 3 events up to 3 never reached the sink")


def test_masstransit_counts_what_one_consumer_consumed(inboxes: Inboxes) -> None:
    """InboxState: the row is committed before the message is consumed, and an inbox may be shared."""
    inboxes.bench.run.execute(MASSTRANSIT)
    inboxes.commit(1, 2, 3)
    consumed(inboxes, 1)
    consumed(inboxes, 2, is_consumed=False)
    consumed(inboxes, 2, 3, consumer=OTHER)
    with pytest.raises(Unsuitable, match=f"{ONE}.*{OTHER}"):
        inboxes.audit(inboxes.record(**OF_MASSTRANSIT))
    with pytest.raises(Unsuitable, match="ConsumerId"):
        inboxes.audit(inboxes.record(**{**OF_MASSTRANSIT, "consumer_column": None}))
    found, verdict = inboxes.audit(inboxes.record(**OF_MASSTRANSIT, consumer=f"{{{ONE}}}".upper()))
    assert findings(found) == [("lost", "received, not accepted", 2), ("lost", None, 3)]
    assert verdict.status is Status.OWED and f"ConsumerId is {{{ONE}}}".lower() in " ".join(verdict.says).lower()
    _, verdict = inboxes.audit(inboxes.record(**OF_MASSTRANSIT, consumer=str(id_of(5))))
    assert any("No row is of consumer" in one and str(OTHER) in one for one in inboxes.weaknesses)
    inboxes.bench.run.execute('UPDATE "InboxState" SET "Consumed" = now() WHERE "ConsumerId" = %s', [ONE])
    consumed(inboxes, 3)
    _, verdict = inboxes.audit(inboxes.record(**OF_MASSTRANSIT, consumer=str(ONE)))
    assert verdict.status is Status.COMPLETE_BY_IDENTITY


def test_rc_68_a_lifetime_shorter_than_the_period_makes_absences_unknown_and_never_sends_them(inboxes: Inboxes) -> None:
    """The row is deleted 30 minutes after delivery: past that an absence shows nothing."""
    inboxes.bench.run.execute(MASSTRANSIT)
    inboxes.commit(1, minutes_ago=31)  # delivered and trimmed, or lost: nothing shows which
    inboxes.commit(2, minutes_ago=29.5)  # inside the lifetime, not inside the margin
    inboxes.commit(3, minutes_ago=2)
    found, verdict = inboxes.audit(inboxes.record(**OF_MASSTRANSIT))
    assert findings(found) == [("unknown", "record trimmed", 1), ("unknown", "record trimmed", 2), ("lost", None, 3)]
    assert found.batch_count == 1 and verdict.status is Status.OWED
    row = inboxes.bench.run.execute("SELECT written_at + interval '29 minutes' FROM outbox WHERE id = 3").fetchone()
    assert row and f"From {row[0].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC on" in " ".join(verdict.says)
    consumed(inboxes, 3)
    found, verdict = inboxes.audit(inboxes.record(**OF_MASSTRANSIT))
    assert (verdict.status, found.batch_count) == (Status.UNKNOWN, 0)
    assert "record trimmed" in verdict.unknown_because[0] and "1,740 s" in verdict.unknown_because[0]


def test_an_audit_goes_on_from_what_an_earlier_one_found_complete(inboxes: Inboxes) -> None:
    inboxes.bench.run.execute(MASSTRANSIT)
    inboxes.commit(1, 2, minutes_ago=50)
    inboxes.commit(3, minutes_ago=40)
    _, verdict = inboxes.audit(inboxes.record(**OF_MASSTRANSIT), certified=Certified(Coordinate(2, 0), None))
    assert verdict.counts.absent_trimmed == 1 and verdict.status is Status.UNKNOWN
    _, verdict = inboxes.audit(inboxes.record(**OF_MASSTRANSIT), certified=Certified(Coordinate(3, 0), None))
    assert verdict.status is Status.COMPLETE_BY_IDENTITY


def test_a_late_row_takes_away_what_was_found_complete_before(inboxes: Inboxes) -> None:
    """A certificate of a frontier that a row came in below shows nothing of that row."""
    inboxes.bench.run.execute(MASSTRANSIT)
    inboxes.commit(2, 3, minutes_ago=50)
    found, _ = inboxes.audit(inboxes.record(**OF_MASSTRANSIT))
    lane = found.lanes["0"]
    earlier = Earlier(lane.frontier, lane.fingerprint, lane.reading.safe.incarnation, "the audit before")
    certified = Certified(Coordinate(3, 0), None)
    _, verdict = inboxes.audit(inboxes.record(**OF_MASSTRANSIT), certified=certified, earlier={"0": earlier})
    assert verdict.status is Status.COMPLETE_BY_IDENTITY
    inboxes.commit(1, minutes_ago=50)
    found, verdict = inboxes.audit(inboxes.record(**OF_MASSTRANSIT), certified=certified, earlier={"0": earlier})
    assert found.lanes["0"].late is not None and verdict.status is Status.UNKNOWN
    assert verdict.counts.absent_trimmed == 3


def test_without_a_commit_time_an_absence_in_a_trimmed_record_is_unknown(inboxes: Inboxes) -> None:
    inboxes.bench.run.execute(MASSTRANSIT)
    inboxes.source = {"committed_at": None}
    inboxes.commit(1)
    found, verdict = inboxes.audit(inboxes.record(**OF_MASSTRANSIT))
    assert verdict.status is Status.UNKNOWN and findings(found) == [("unknown", "commit time not known", 1)]


def test_eventuate_compares_in_the_sources_type(inboxes: Inboxes) -> None:
    """received_messages holds ids as text: upper case and braces are the same id, and a second row of it is a duplicate."""
    inboxes.bench.run.execute(EVENTUATE)
    inboxes.commit(1, 2)
    written = [("orders", str(id_of(1)).upper()), ("orders", f"{{{id_of(2)}}}"), ("stock", str(id_of(2)))]
    for row in written:
        inboxes.bench.run.execute("INSERT INTO received_messages (consumer_id, message_id) VALUES (%s, %s)", row)
    record = inboxes.record(
        table="received_messages", event_id="message_id", consumer_column="consumer_id", consumer="orders", **FOR_EVER
    )
    _, verdict = inboxes.audit(record)
    assert verdict.status is Status.COMPLETE_BY_IDENTITY
    inboxes.bench.run.execute(
        "INSERT INTO received_messages (consumer_id, message_id) VALUES ('orders', %s)", [str(id_of(2))]
    )
    found, verdict = inboxes.audit(record)
    assert verdict.status is Status.HAZARD and findings(found) == [("duplicate", None, 2)]


def test_rc_31_ids_are_compared_exactly_whatever_the_sink_takes_for_one_id(inboxes: Inboxes) -> None:
    """A sink whose key ignores case and trailing blanks discards three of these five as repetitions."""
    run = inboxes.bench.run
    run.execute(
        "DROP TABLE outbox; CREATE TABLE outbox (id bigint PRIMARY KEY, message_id text UNIQUE NOT NULL, body jsonb,"
        " written_at timestamptz DEFAULT now()); CREATE TABLE processed_messages (id text);"
        "CREATE UNIQUE INDEX blunt ON processed_messages (lower(rtrim(translate(id, '🌵🚲', '??'))))"
    )
    for number, text in enumerate(["evt-🌵", "evt-🚲", "evt-a", "EVT-A", "evt-a "], 1):
        run.execute("INSERT INTO outbox (id, message_id) VALUES (%s, %s)", [number, text])
        run.execute("INSERT INTO processed_messages VALUES (%s) ON CONFLICT DO NOTHING", [text])
    found, verdict = inboxes.audit(processed(inboxes))
    assert findings(found) == [("lost", None, 2), ("lost", None, 4), ("lost", None, 5)]
    assert verdict.matching == "by identity (text)"
    assert any("'blunt'" in one and "different ids for one" in one for one in found.sink_reading.weaknesses)


def test_rc_31_a_typed_id_accepted_in_two_spellings_is_one_event_twice(inboxes: Inboxes) -> None:
    inboxes.commit(1)
    record = processed(inboxes, str(id_of(1)), str(id_of(1)).upper(), type_="text PRIMARY KEY")
    found, verdict = inboxes.audit(record)
    assert (verdict.status, findings(found)) == (Status.HAZARD, [("duplicate", None, 1)])
    inboxes.bench.run.execute("ALTER TABLE outbox ALTER message_id TYPE text")
    found, verdict = inboxes.audit(record)
    assert (verdict.counts.ids_unmatched, verdict.matching) == (1, "by identity (text)")
    assert verdict.status is Status.COMPLETE_BY_IDENTITY and not findings(found)


def test_rc_48_a_message_stored_three_times_is_two_too_many(inboxes: Inboxes) -> None:
    inboxes.commit(1, 2)
    found, verdict = inboxes.audit(processed(inboxes, id_of(1), *[id_of(2)] * 3, type_="uuid"))
    assert (verdict.counts.duplicate_payloads, verdict.counts.duplicate_copies) == (1, 2)
    assert findings(found) == [("duplicate", None, 2)] and "2 copies too many" in " ".join(verdict.says)


def test_rc_61_a_row_that_is_marked_as_deleted_is_no_acceptance(inboxes: Inboxes) -> None:
    run = inboxes.bench.run
    run.execute("CREATE TABLE applied (message_id uuid, deleted_at timestamptz)")
    inboxes.commit(1, 2, 3)
    run.execute("INSERT INTO applied VALUES (%s, NULL), (%s, now())", [id_of(1), id_of(2)])
    record = inboxes.record(table="applied", event_id="message_id", **FOR_EVER)
    found, _ = inboxes.audit(record | {"accepted_when": "deleted_at is null"})
    assert sorted(place for _, _, place in findings(found)) == [2, 3]
    assert ("lost", "received, not accepted", 2) in findings(found)
    found, _ = inboxes.audit(record)
    assert findings(found) == [("lost", None, 3)]
    assert any("no acceptance condition" in one for one in found.sink_reading.weaknesses)


def test_rc_05_an_envelopes_id_is_no_identity(inboxes: Inboxes) -> None:
    """One id of several events: acceptance is established per event, and never per carrier."""
    run = inboxes.bench.run
    run.execute(
        "DROP TABLE outbox; CREATE TABLE outbox (id bigint PRIMARY KEY, message_id text, body jsonb, written_at timestamptz)"
    )
    for number in (1, 2, 5):
        run.execute("INSERT INTO outbox VALUES (%s, 'tx-900', '{}', now())", [number])
    with pytest.raises(Unsuitable, match="no UNIQUE constraint.*per event"):
        inboxes.audit(processed(inboxes, "tx-900", type_="text"))


@pytest.mark.parametrize(
    ("constraint", "problem"),
    [
        ("", "no UNIQUE"),
        ("ALTER TABLE outbox ADD UNIQUE (message_id) DEFERRABLE", "deferrable"),
        ("CREATE UNIQUE INDEX half ON outbox (message_id) WHERE id > 1", "some rows only"),
        ("CREATE UNIQUE INDEX two ON outbox (message_id, id)", "no UNIQUE"),
        ("CREATE UNIQUE INDEX CONCURRENTLY broken ON outbox (message_id)", "not valid"),
    ],
)
def test_only_a_constraint_that_always_holds_makes_an_id_an_identity(
    inboxes: Inboxes, constraint: str, problem: str
) -> None:
    run = inboxes.bench.run
    run.execute("ALTER TABLE outbox DROP CONSTRAINT outbox_message_id_key")
    inboxes.commit(1)
    if "broken" in constraint:
        run.execute("INSERT INTO outbox SELECT 2, message_id FROM outbox")
        with pytest.raises(Exception, match="could not create unique index"):
            run.execute(constraint)
        run.execute("DELETE FROM outbox WHERE id = 2")
    elif constraint:
        run.execute(constraint)
    with pytest.raises(Unsuitable, match=problem):
        inboxes.audit(processed(inboxes))


def test_nobody_has_attested_that_ids_do_not_come_again(inboxes: Inboxes) -> None:
    inboxes.commit(1)
    inboxes.source = {NO_REUSE: False}
    with pytest.raises(Unsuitable, match="used again"):
        inboxes.audit(processed(inboxes))


def test_two_text_ids_that_are_one_uuid_are_refused(inboxes: Inboxes) -> None:
    """A text column may hold one uuid in two spellings; a record of uuids cannot tell them apart."""
    run = inboxes.bench.run
    run.execute("ALTER TABLE outbox ALTER message_id TYPE text")
    text = "6f1c0b7e-1d2a-4c55-9a3e-0d9f5b7e2a10"
    run.execute("INSERT INTO outbox VALUES (1, %s), (2, %s)", [text, text.upper()])
    with pytest.raises(Unsuitable, match="of two events"):
        inboxes.audit(processed(inboxes, text))


def test_an_id_that_cannot_be_the_sources_is_told_and_what_is_absent_may_be_it(inboxes: Inboxes) -> None:
    inboxes.commit(1, 2)
    record = processed(inboxes, str(id_of(1)), "order-7", type_="text")
    found, verdict = inboxes.audit(record)
    assert verdict.status is Status.UNKNOWN and "order-7" in verdict.unknown_because[0]
    assert findings(found) == [("unknown", "the record holds ids that cannot be read", 2)]
    processed(inboxes, str(id_of(2)), type_="text")
    _, verdict = inboxes.audit(record)
    assert verdict.status is Status.COMPLETE_BY_IDENTITY and any("order-7" in one for one in verdict.weaknesses)
    _, verdict = inboxes.audit(record | {"filter": "id <> 'order-7'"})
    assert not verdict.counts.ids_unreadable


def test_an_accepted_id_that_the_source_dropped_is_unknown_and_never_premature(inboxes: Inboxes) -> None:
    inboxes.commit(2)
    _, verdict = inboxes.audit(processed(inboxes, id_of(1), id_of(2)))
    assert verdict.status is Status.COMPLETE_BY_IDENTITY and verdict.counts.premature == 0
    assert verdict.is_hazard_free is None and any("not at the source" in one for one in verdict.weaknesses)


def test_ids_in_json_and_ids_that_are_numbers(inboxes: Inboxes) -> None:
    run = inboxes.bench.run
    run.execute(
        "DROP TABLE outbox; CREATE TABLE outbox (id bigint PRIMARY KEY, message_id bigint UNIQUE, body jsonb, written_at timestamptz)"
    )
    run.execute("INSERT INTO outbox VALUES (1, 70, '{}', now()), (2, 80, '{}', now()), (3, NULL, '{}', now())")
    run.execute("CREATE TABLE seen (headers jsonb)")
    run.execute("""INSERT INTO seen VALUES ('{"meta": {"id": 70}}'), ('{"meta": {"id": "0080"}}')""")
    record = inboxes.record(table="seen", event_id="headers->meta->id", **FOR_EVER)
    _, verdict = inboxes.audit(record)
    assert verdict.status is Status.UNKNOWN and "1 event has no id" in verdict.unknown_because[0]
    run.execute("UPDATE outbox SET message_id = 90 WHERE id = 3")
    found, verdict = inboxes.audit(record)
    assert findings(found) == [("lost", None, 3)] and verdict.matching == "by identity (bigint)"
