"""A row that comes in at or below a pinned frontier is found, and one that only looks new is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from recovery_api.domain.coordinates import Coordinate
from tests.integration.postgresql.mapped_tables import WHOLE, Bench
from tests.pins import pin
from workers.connectors.postgresql.late_rows import late_look
from workers.connectors.postgresql.mapped_table import MappedTable
from workers.connectors.readings import LateRows, Width
from workers.connectors.registry import source_make

TABLE = "CREATE TABLE outbox (id bigint PRIMARY KEY, content jsonb)"
PARTITIONED = """
CREATE TABLE outbox (id bigint, shelf text NOT NULL DEFAULT 'new', content jsonb) PARTITION BY LIST (shelf);
CREATE TABLE outbox_new PARTITION OF outbox FOR VALUES IN ('new');
CREATE TABLE outbox_old PARTITION OF outbox FOR VALUES IN ('old')
"""


def looked(bench: Bench, meanwhile: Callable[[], None], f: int = 10, **options: Any) -> LateRows:
    """What a reading sees of late rows at or below `f`, where `meanwhile` happens after the frontier was pinned."""
    source = bench.source(**options)
    with source.hold_pin() as pinned:
        meanwhile()
        with source.hold_snapshot() as reading:
            handle = {**reading.handle, "pinned": pinned.handle["pinned"]}
            late = LateRows(Coordinate(f))
            other = source_make("postgresql_outbox", source.options)  # as a task far away makes it
            for _ in other.read_history(type(reading)(reading.identity, handle), WHOLE, Width.PAYLOAD, late=late):
                pass
    return late


@pytest.mark.parametrize("meanwhile", ["nothing", "another table", "a savepoint's row"])
def test_t6_rows_are_looked_at_unless_both_snapshots_show_the_same(filled: Bench, meanwhile: str) -> None:
    filled.run.execute("CREATE TABLE other (id int)")
    writer = filled.session()
    writer.execute("SAVEPOINT s")
    writer.execute("INSERT INTO outbox VALUES (3)")
    if meanwhile == "nothing":  # a vacuum of the cluster may end in between, and then rows are rightly looked at
        assert any(looked_at(filled, writer, meanwhile) is None for _ in range(20))
    else:
        assert looked_at(filled, writer, meanwhile) is not None


def looked_at(filled: Bench, writer: Any, meanwhile: str) -> Any:
    """What is looked for between a pin and a reading, with `meanwhile` in between. None: nothing."""
    source = filled.source()
    with source.hold_pin() as pinned:
        if meanwhile == "another table":
            filled.run.execute("INSERT INTO other VALUES (1)")
        if meanwhile == "a savepoint's row":
            writer.execute("RELEASE s")
            writer.commit()
        with source.hold_snapshot() as reading:
            handle = {**reading.handle, "pinned": pinned.handle["pinned"]}
            mapped = MappedTable(source.options, handle["types"], handle["has_soft_errors"])
            return late_look(source.address, mapped, handle, LateRows(Coordinate(10)))


@pytest.fixture
def filled(bench: Bench) -> Bench:
    bench.run.execute(TABLE)
    bench.run.execute("INSERT INTO outbox SELECT g, '{}' FROM generate_series(1, 10) g WHERE g <> 3")
    return bench


def test_t6_a_row_that_the_pinning_snapshot_does_not_hold_was_late(filled: Bench) -> None:
    """T6: drawn before, committed after: found, by its coordinate; what lies above the frontier is not its business."""
    late = looked(filled, lambda: filled.run.execute("INSERT INTO outbox VALUES (3), (11)") and None)
    assert (late.count, late.first) == (1, [Coordinate(3)])


def test_t6_a_row_of_a_transaction_that_was_open_at_the_pin_was_late(filled: Bench) -> None:
    writer = filled.session()
    writer.execute("INSERT INTO outbox VALUES (3)")
    assert looked(filled, writer.commit).first == [Coordinate(3)]


def test_t6_a_row_of_a_savepoint_that_the_snapshot_did_not_see_was_late(filled: Bench) -> None:
    """`pg_visible_in_snapshot` calls it visible: it knows no subtransactions."""
    writer = filled.session()
    writer.execute("SELECT pg_current_xact_id()")
    writer.execute("SAVEPOINT s")
    writer.execute("INSERT INTO outbox VALUES (3)")
    writer.execute("RELEASE SAVEPOINT s")
    filled.run.execute("INSERT INTO outbox VALUES (12)")  # an xid above the savepoint's has ended
    assert looked(filled, writer.commit).first == [Coordinate(3)]


def test_an_update_gives_a_row_a_new_xmin_and_is_not_late(filled: Bench) -> None:
    late = looked(filled, lambda: filled.run.execute("UPDATE outbox SET content = '[]'") and None)
    assert (late.count, late.first) == (0, [])


def test_a_move_between_partitions_is_not_late_and_a_row_that_comes_with_it_is(bench: Bench) -> None:
    bench.run.execute(PARTITIONED)
    bench.run.execute("INSERT INTO outbox SELECT g, 'new', '{}' FROM generate_series(1, 10) g WHERE g <> 3")

    def move() -> None:
        bench.run.execute("UPDATE outbox SET shelf = 'old' WHERE id < 6; INSERT INTO outbox (id) VALUES (3)")

    late = looked(bench, move)
    assert (late.count, late.first) == (1, [Coordinate(3)])


def test_a_rewrite_of_the_table_gives_every_row_a_new_xmin_and_none_is_late(filled: Bench) -> None:
    """An old transaction holds the snapshot's xmin down, so that the rewrite's own id does not lie below it."""
    old = filled.session()
    old.execute("SELECT pg_current_xact_id()")
    filled.run.execute("ALTER TABLE outbox ALTER id TYPE numeric; ALTER TABLE outbox ALTER id TYPE bigint")
    young = filled.run.execute(
        "SELECT count(*) FROM outbox WHERE age(xmin) <= age(pg_snapshot_xmin(pg_current_snapshot())::xid)"
    )
    assert young.fetchone() == (9,)
    assert looked(filled, lambda: None).count == 0
    old.rollback()


def test_freezing_keeps_the_raw_xmin_of_a_late_row(filled: Bench) -> None:
    def freeze() -> None:
        filled.run.execute("INSERT INTO outbox VALUES (3)")
        filled.run.execute("VACUUM (FREEZE) outbox")

    assert looked(filled, freeze).first == [Coordinate(3)]


def test_a_second_row_at_a_coordinate_that_was_there_is_late(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint, content jsonb)")
    bench.run.execute("INSERT INTO outbox VALUES (1), (2)")
    late = looked(bench, lambda: bench.run.execute("INSERT INTO outbox VALUES (2)") and None)
    assert (late.count, late.first) == (1, [Coordinate(2)])


def test_a_pair_of_transaction_id_and_number_is_looked_up_as_a_pair(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (tx xid8 NOT NULL DEFAULT pg_current_xact_id(), id bigint, content jsonb)")
    bench.run.execute("INSERT INTO outbox (id) VALUES (1), (2)")
    tx = bench.run.execute("SELECT max(tx)::text FROM outbox").fetchone()
    assert tx is not None
    below = int(tx[0]) - 2**63
    xid = {"coordinate": ["tx", "id"], "coordinate_spelling": "xid8_bigint"}

    def forge() -> None:
        bench.run.execute("INSERT INTO outbox (tx, id) VALUES (%s::text::xid8, 3)", [tx[0]])
        bench.run.execute("UPDATE outbox SET content = '[]' WHERE id = 1")

    source = bench.source(**xid)
    with source.hold_pin() as pinned:
        forge()
        with source.hold_snapshot() as reading:
            handle = {**reading.handle, "pinned": pinned.handle["pinned"]}
            late = LateRows(Coordinate(below, 5))
            list(source.read_history(type(reading)(reading.identity, handle), WHOLE, Width.PAYLOAD, late=late))
    assert (late.count, late.first) == (1, [Coordinate(below, 3)])


def test_many_young_rows_are_looked_up_within_their_blocks(bench: Bench) -> None:
    bench.run.execute(TABLE)
    old = bench.session()
    old.execute("SELECT pg_current_xact_id()")
    bench.run.execute("INSERT INTO outbox SELECT 2 * g, '{}' FROM generate_series(1, 200000) g; ANALYZE outbox")
    late = looked(bench, lambda: bench.run.execute("INSERT INTO outbox VALUES (7), (390001)") and None, f=400_000)
    assert (late.count, sorted(late.first)) == (2, [Coordinate(7), Coordinate(390_001)])
    old.rollback()


def test_where_the_pinning_snapshot_is_gone_rows_written_since_are_counted(filled: Bench) -> None:
    source = filled.source()
    pinned = pin(source).handle["pinned"]
    filled.run.execute("INSERT INTO outbox VALUES (3)")
    with source.hold_snapshot() as reading:
        handle = {**reading.handle, "pinned": {"snapshot": None, "xmin": pinned["xmin"]}}
        late = LateRows(Coordinate(10))
        list(source.read_history(type(reading)(reading.identity, handle), WHOLE, Width.PAYLOAD, late=late))
    assert (late.count, late.written_since, late.first) == (0, 1, [Coordinate(3)])


def test_rights_to_single_columns_show_no_xmin_and_that_is_said(filled: Bench) -> None:
    from psycopg.conninfo import make_conninfo

    role = filled.run.info.dbname + "_columns"
    filled.run.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT SELECT (id, content) ON outbox TO {role}")
    source = filled.source(dsn=make_conninfo(filled.dsn, user=role, password="x"))
    reading = pin(source)
    assert reading.handle["pinned"] is None
    assert any("Late rows cannot be seen here" in one for one in reading.weaknesses)
    assert any("Late rows cannot be seen here" in one for one in source.test().weaknesses)
