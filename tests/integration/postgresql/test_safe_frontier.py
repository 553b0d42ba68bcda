"""Grounds of a safe frontier, over real transactions: cases RC-01, RC-02 and RC-04 of the case book, and each ground."""

from __future__ import annotations

import pytest

from recovery_api.domain.coordinates import Coordinate, coordinate_parse
from recovery_api.domain.errors import Unsuitable
from tests.integration.postgresql.mapped_tables import WHOLE, Bench, accepted, history, lane, rows_of, spelled
from tests.pins import pin
from workers.connectors.readings import Width

IDENTITY = "CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, content jsonb)"
WITH_XID = """
CREATE TABLE outbox (
    tx xid8 NOT NULL DEFAULT pg_current_xact_id(), id bigint GENERATED ALWAYS AS IDENTITY, content jsonb,
    PRIMARY KEY (tx, id)
)
"""
INSERT = "INSERT INTO outbox (content) VALUES ('{}')"
LOCKED = {"share_lock": True, "lock_timeout_ms": 50, "lock_tries": 2}


@pytest.mark.parametrize("options", [{}, LOCKED], ids=["grace", "share lock"])
def test_ids_handed_out_in_one_order_and_committed_in_another(bench: Bench, options: dict[str, object]) -> None:
    """RC-01."""
    bench.run.execute("CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY (START 101) PRIMARY KEY)")
    bench.run.execute("CREATE TABLE accepted (id bigint, content jsonb)")
    source, sink = bench.source(**options), bench.sink(content="content")
    slow = bench.session(application_name="checkout")
    slow.execute("INSERT INTO outbox DEFAULT VALUES")
    xid = slow.execute("SELECT pg_current_xact_id()::text").fetchone()
    assert xid is not None
    bench.run.execute("INSERT INTO outbox DEFAULT VALUES")
    bench.run.execute("INSERT INTO accepted VALUES (102)")

    first = lane(pin(source))
    assert first.head == Coordinate(102)
    assert first.safe.coordinate is None
    assert [name for name in first.safe.waits_for if f"transaction {xid[0]}" in name and "checkout" in name]

    slow.commit()
    bench.run.execute("INSERT INTO outbox DEFAULT VALUES")
    bench.run.execute("INSERT INTO accepted VALUES (103)")
    second = lane(pin(source))
    assert (second.head, second.safe.coordinate) == (Coordinate(103), Coordinate(103))
    assert spelled(source, history(source)) == ["101", "102", "103"]
    assert spelled(sink, accepted(sink)) == ["102", "103"]


@pytest.mark.parametrize("options", [{}, LOCKED], ids=["grace", "share lock"])
def test_a_gap_is_pending_while_its_transaction_is_open_and_benign_after(
    bench: Bench, options: dict[str, object]
) -> None:
    """RC-02."""
    bench.run.execute("CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY (START 201) PRIMARY KEY)")
    source = bench.source(**options)
    for _ in range(2):
        bench.run.execute("INSERT INTO outbox DEFAULT VALUES")
    rolled_back = bench.session()
    rolled_back.execute("INSERT INTO outbox DEFAULT VALUES")
    bench.run.execute("INSERT INTO outbox DEFAULT VALUES")
    pending = lane(pin(source))
    assert pending.head == Coordinate(204)
    assert pending.safe.coordinate is None and pending.safe.waits_for

    rolled_back.rollback()
    settled = lane(pin(source))
    assert settled.safe.coordinate == Coordinate(204)
    assert spelled(source, history(source)) == ["201", "202", "204"]


def test_transaction_ids_make_everything_below_xmin_safe_and_name_what_holds_it_back(bench: Bench) -> None:
    bench.run.execute(WITH_XID)
    source = bench.source(coordinate=["tx", "id"], coordinate_spelling="xid8_bigint")
    bench.run.execute(INSERT)
    early = history(source)
    slow = bench.session(application_name="importer")
    slow.execute(INSERT)
    bench.run.execute(INSERT)

    reading = pin(source)
    safe, head = lane(reading).safe, lane(reading).head
    assert safe.ground == "transaction ids" and safe.weakness is None and reading.weaknesses == ()
    assert Coordinate(early[0]["position"], early[0]["ordinal"]) < safe.coordinate < head
    assert any("importer" in name for name in safe.waits_for)

    slow.commit()
    after = lane(pin(source))
    assert after.head == head <= after.safe.coordinate
    assert not after.safe.waits_for
    assert len(history(source)) == 3


def test_one_held_snapshot_never_sees_what_commits_between_its_statements(bench: Bench) -> None:
    """RC-04."""
    bench.run.execute(IDENTITY)
    for _ in range(10):
        bench.run.execute(INSERT)
    source = bench.source(**LOCKED)
    eleven = bench.session()
    eleven.execute(INSERT)
    with source.hold_snapshot() as reading:
        bench.run.execute(INSERT)
        again = rows_of(source.read_history(reading, WHOLE, Width.COORDINATE))
        assert spelled(source, again) == [str(number) for number in range(1, 11)]
        assert lane(reading).head == Coordinate(10)
        assert "snapshot" in reading.identity
        eleven.commit()
        assert rows_of(source.read_history(reading, WHOLE, Width.COORDINATE)) == again
    thirteen = bench.session()
    thirteen.execute(INSERT)
    bench.run.execute(INSERT)
    pinned = lane(pin(source))
    assert pinned.head == Coordinate(14)
    assert pinned.safe.coordinate is None and pinned.safe.waits_for


def test_what_was_pinned_is_what_a_held_reading_says_is_safe(bench: Bench) -> None:
    bench.run.execute(IDENTITY)
    bench.run.execute(INSERT)
    source = bench.source(**LOCKED)
    pinned = lane(pin(source)).safe
    bench.run.execute(INSERT)
    with source.hold_snapshot() as reading:
        assert lane(reading).safe == pinned
        assert lane(reading).head == Coordinate(2)


def test_the_lock_is_not_held_once_the_snapshot_exists(bench: Bench) -> None:
    bench.run.execute(IDENTITY)
    source = bench.source(**LOCKED)
    bench.run.execute(INSERT)
    safe = lane(pin(source)).safe
    assert (safe.ground, safe.weakness, safe.coordinate) == ("share lock", None, Coordinate(1))
    with source.hold_snapshot():
        bench.run.execute("SET lock_timeout = '1s'")
        bench.run.execute(INSERT)


def test_a_prepared_transaction_that_blocks_the_lock_is_named(bench: Bench) -> None:
    bench.run.execute(IDENTITY)
    source = bench.source(**LOCKED)
    bench.run.execute("BEGIN")
    bench.run.execute(INSERT)
    bench.run.execute("PREPARE TRANSACTION 'half done'")
    safe = lane(pin(source)).safe
    assert safe.coordinate is None
    assert any("'half done'" in name and "PREPARED" in name for name in safe.waits_for)
    bench.run.execute("ROLLBACK PREPARED 'half done'")
    bench.run.execute(INSERT)
    assert lane(pin(source)).safe.coordinate == Coordinate(2)


def test_a_prepared_transaction_holds_back_the_grace_too(bench: Bench) -> None:
    bench.run.execute(IDENTITY)
    bench.run.execute("BEGIN")
    bench.run.execute(INSERT)
    bench.run.execute("PREPARE TRANSACTION 'waiting'")
    bench.run.execute(INSERT)
    safe = lane(pin(bench.source())).safe
    assert safe.coordinate is None and any("'waiting'" in name for name in safe.waits_for)
    bench.run.execute("COMMIT PREPARED 'waiting'")


def test_an_idle_transaction_that_wrote_nothing_here_is_named_as_the_weakness_of_the_grace(bench: Bench) -> None:
    bench.run.execute(IDENTITY)
    bench.run.execute(INSERT)
    drew = bench.session(application_name="pooled ids")
    drew.execute("SELECT nextval('outbox_id_seq')")
    safe = lane(pin(bench.source())).safe
    assert safe.coordinate == Coordinate(1)
    assert any("pooled ids" in name for name in safe.waits_for)
    assert safe.weakness is not None and "0 s" in safe.weakness


@pytest.mark.parametrize(
    ("table", "obstacle"),
    [
        ("CREATE TABLE outbox (id bigint PRIMARY KEY)", "not drawn from a sequence"),
        ("CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY (CACHE 20) PRIMARY KEY)", "20 numbers at a time"),
        ("CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY (INCREMENT -1) PRIMARY KEY)", "does not ascend"),
        (
            "CREATE SEQUENCE s; CREATE TABLE outbox (id bigint DEFAULT nextval('s') + 0 PRIMARY KEY)",
            "not drawn from a sequence",
        ),
    ],
)
def test_the_lock_is_not_taken_for_a_ground_where_it_proves_nothing(bench: Bench, table: str, obstacle: str) -> None:
    bench.run.execute(table)
    bench.run.execute("INSERT INTO outbox OVERRIDING SYSTEM VALUE VALUES (5)")
    safe = lane(pin(bench.source(**LOCKED))).safe
    assert safe.ground == "grace"
    assert safe.weakness is not None and obstacle in safe.weakness


def test_a_role_that_may_supply_numbers_needs_the_owners_word(bench: Bench) -> None:
    name = bench.run.info.dbname + "_app"
    bench.run.execute(f"CREATE ROLE {name}")
    bench.run.execute("CREATE TABLE outbox (id bigserial PRIMARY KEY)")
    bench.run.execute(f"GRANT INSERT ON outbox TO {name}")
    bench.run.execute("INSERT INTO outbox DEFAULT VALUES")
    doubted = lane(pin(bench.source(**LOCKED))).safe
    assert doubted.ground == "grace" and doubted.weakness is not None and name in doubted.weakness
    attested = lane(pin(bench.source(**LOCKED, numbers_are_drawn_in_insert=True))).safe
    assert attested.ground == "share lock" and attested.weakness is not None and name in attested.weakness


def test_a_function_takes_the_lock_for_a_role_that_may_not(bench: Bench) -> None:
    role = bench.run.info.dbname + "_auditor"
    bench.run.execute(IDENTITY)
    bench.run.execute(
        "CREATE FUNCTION quiet() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog"
        " AS $$ BEGIN LOCK TABLE public.outbox IN SHARE MODE; END $$"
    )
    bench.run.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    bench.run.execute(f"GRANT SELECT ON outbox TO {role}")
    bench.run.execute(INSERT)
    from psycopg.conninfo import make_conninfo

    dsn = make_conninfo(bench.dsn, user=role, password="x")
    without = lane(pin(bench.source(dsn=dsn, **LOCKED))).safe
    assert without.ground == "grace" and "may not take the lock" in (without.weakness or "")
    safe = lane(pin(bench.source(dsn=dsn, **LOCKED, share_lock_function="public.quiet"))).safe
    assert (safe.ground, safe.coordinate) == ("share lock", Coordinate(1))
    writer = bench.session()
    writer.execute(INSERT)
    assert lane(pin(bench.source(dsn=dsn, **LOCKED, share_lock_function="public.quiet"))).safe.coordinate is None


@pytest.mark.parametrize(
    ("column", "obstacle"),
    [
        ("tx xid8 DEFAULT pg_current_xact_id()", "may be null"),
        ("tx xid8 NOT NULL", "has not the default"),
        ("tx bigint NOT NULL DEFAULT 1", "not xid8"),
    ],
)
def test_transaction_ids_prove_nothing_where_clients_may_choose_them(bench: Bench, column: str, obstacle: str) -> None:
    bench.run.execute(f"CREATE TABLE outbox ({column}, id bigint GENERATED ALWAYS AS IDENTITY)")
    bench.run.execute("INSERT INTO outbox (tx) VALUES ('1')")
    source = bench.source(coordinate=["tx", "id"], coordinate_spelling="xid8_bigint")
    safe = lane(pin(source)).safe
    assert safe.ground == "grace" and obstacle in (safe.weakness or "")


def test_rows_with_a_transaction_id_this_cluster_has_not_given_out_are_refused(bench: Bench) -> None:
    bench.run.execute(WITH_XID)
    bench.run.execute("INSERT INTO outbox (tx) VALUES ('999999999999')")
    source = bench.source(coordinate=["tx", "id"], coordinate_spelling="xid8_bigint")
    with pytest.raises(Unsuitable, match=r"999999999999.*another cluster"):
        pin(source)
    assert any("another cluster" in problem for problem in source.test().problems)
    bench.run.execute("CREATE TABLE numbered (id bigint PRIMARY KEY, tx xid8)")
    bench.run.execute("INSERT INTO numbered VALUES (1, '888888888888')")
    beside = bench.source("numbered", commit_xid="tx")
    with pytest.raises(Unsuitable, match="888888888888"), beside.hold_snapshot():
        pass


def test_a_logical_subscriber_is_refused_as_a_source(bench: Bench) -> None:
    bench.run.execute(IDENTITY)
    bench.run.execute("CREATE PUBLICATION p FOR TABLE outbox")
    bench.run.execute(
        f"CREATE SUBSCRIPTION {bench.run.info.dbname} CONNECTION '{bench.dsn}' PUBLICATION p"
        " WITH (create_slot = false, slot_name = NONE, enabled = false, copy_data = false)"
    )
    source = bench.source()
    with pytest.raises(Unsuitable, match="logical subscription"):
        pin(source)
    report = source.test()
    assert not report.is_usable and "publisher" in report.problems[0]
    bench.run.execute(f"DROP SUBSCRIPTION {bench.run.info.dbname}")


def test_an_empty_table_is_a_fact_and_nothing_is_safe_yet(bench: Bench) -> None:
    bench.run.execute(IDENTITY)
    source = bench.source(**LOCKED)
    report = source.test()
    assert report.is_usable and report.facts["is_empty"]
    reading = lane(pin(source))
    assert (reading.head, reading.lowest, reading.safe.coordinate) == (None, None, None)
    assert history(source) == []


def test_the_extremes_of_64_bits_are_coordinates(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY)")
    bench.run.execute("INSERT INTO outbox VALUES (-9223372036854775808), (0), (9223372036854775807)")
    source = bench.source()
    assert spelled(source, history(source)) == ["-9223372036854775808", "0", "9223372036854775807"]
    pinned = lane(pin(source))
    assert pinned.lowest == coordinate_parse("-9223372036854775808", source.spelling)
    assert pinned.safe.coordinate == coordinate_parse("9223372036854775807", source.spelling)


def test_a_reader_that_is_held_open_holds_back_nothing_and_a_writer_by_its_name_does(bench: Bench) -> None:
    bench.run.execute(IDENTITY)
    bench.run.execute(INSERT)
    source = bench.source()
    with source.hold_snapshot():
        safe = lane(pin(source)).safe
        assert (safe.coordinate, safe.waits_for) == (Coordinate(1), ())
        impostor = bench.session(application_name="fencepost reader")
        impostor.execute(INSERT)
        assert lane(pin(source)).safe.coordinate is None
