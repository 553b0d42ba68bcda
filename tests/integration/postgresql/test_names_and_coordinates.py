"""Names exactly as given (RC-33), coordinates as what they are (RC-11, RC-18), partitions (RC-32)."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import sql

from recovery_api.domain.coordinates import Coordinate, coordinate_parse
from recovery_api.domain.errors import NotFound, Unsuitable
from tests.integration.postgresql.mapped_tables import (
    WHOLE,
    Bench,
    accepted,
    digests,
    history,
    lane,
    rows_of,
    spelled,
)
from tests.pins import pin
from workers.connectors.readings import CoordinateRange, Width

NAMES = [
    "OutboxEvents",
    "order",
    "my.table",
    'we"ird',
    "outbox events",
    "größe",
    "100%",
    "{braces}",
    "Outbox",
    "outbox",
]


@pytest.mark.parametrize("schema", ["Sales", "public"])
def test_every_name_works_when_it_is_given_exactly(bench: Bench, schema: str) -> None:
    """RC-33."""
    bench.run.execute('CREATE SCHEMA "Sales"')
    for number, name in enumerate(NAMES):
        table = sql.Identifier(schema, name)
        bench.run.execute(
            sql.SQL(
                'CREATE TABLE {} ("Select" bigint PRIMARY KEY, "aggregateId" text, "desc" text, "user" jsonb, "%s" timestamptz)'
            ).format(table)
        )
        bench.run.execute(
            sql.SQL("INSERT INTO {} VALUES ({}, 'a', 'c', '{{\"x\": 1.0}}')").format(table, sql.Literal(number))
        )
    for number, name in enumerate(NAMES):
        source = bench.source(
            name,
            "Select",
            schema=schema,
            key="aggregateId",
            op="desc",
            op_values={"c": "insert"},
            content="user",
            committed_at="%s",
        )
        assert source.test().is_usable, source.test().problems
        assert lane(pin(source)).head == Coordinate(number)
        (row,) = history(source, Width.FULL)
        assert (row["position"], row["key"], row["op"]) == (number, "a", "insert")
        sink = bench.sink(name, "Select", schema=schema, content="user")
        assert [one["position"] for one in accepted(sink)] == [number], "the same table as a record"
        with source.hold_snapshot() as reading:
            from pyarrow import table as arrow

            wanted = arrow({"lane": ["0"], "position": [number], "ordinal": [0]})
            (sent,) = rows_of(source.read_content(reading, wanted))
        assert sent["content"] == '{"x": 1.0}'


def test_names_that_shadow_the_connectors_own_are_still_the_tables(bench: Bench) -> None:
    """A coordinate called like an output, an alias or a function must not change what is ordered or joined."""
    for name in ("key", "op", "content", "position", "wanted", "w0", "event_row", "t", "raw", "int8send", "ctid_"):
        table = sql.Identifier(name)
        bench.run.execute(
            sql.SQL("CREATE TABLE {} ({} bigint PRIMARY KEY, payload json, subject text)").format(table, table)
        )
        bench.run.execute(
            sql.SQL("INSERT INTO {} SELECT g, '{{\"n\": 1.50}}', (100 - g)::text FROM generate_series(1, 12) g").format(
                table
            )
        )
        source = bench.source(name, name, key="subject", content="payload")
        assert (lane(pin(source)).lowest, lane(pin(source)).head) == (Coordinate(1), Coordinate(12))
        with source.hold_snapshot() as reading:
            from pyarrow import table as arrow

            wanted = arrow({"lane": ["0"] * 3, "position": [11, 2, 9], "ordinal": [0] * 3})
            sent = rows_of(source.read_content(reading, wanted))
        assert [(row["position"], row["key"]) for row in sent] == [(2, "98"), (9, "91"), (11, "89")]
        assert len(digests(history(source, Width.PAYLOAD))) == 12


def test_a_folded_name_is_an_error_that_names_the_real_ones(bench: Bench) -> None:
    """RC-33: never "0 events, OK"."""
    bench.run.execute('CREATE TABLE "OutboxEvents" (id bigint PRIMARY KEY)')
    with pytest.raises(NotFound, match="'OutboxEvents'"):
        pin(bench.source("outboxevents"))


def test_injection_in_a_table_name_is_a_name(bench: Bench) -> None:
    """RC-33: quoted, never executed."""
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY)")
    hostile = 'outbox"; DROP TABLE outbox; --'
    with pytest.raises(NotFound):
        pin(bench.source(hostile))
    bench.run.execute(sql.SQL("CREATE TABLE {} (id bigint PRIMARY KEY)").format(sql.Identifier(hostile)))
    bench.run.execute(sql.SQL("INSERT INTO {} VALUES (5)").format(sql.Identifier(hostile)))
    for name, held in ((hostile, ["5"]), ("outbox", [])):
        source = bench.source(name)
        assert spelled(source, history(source)) == held


def test_log_positions_are_numbers_in_every_spelling(bench: Bench) -> None:
    """RC-11: a < b by exactly one, c < d, and every spelling of d is one coordinate."""
    bench.run.execute("CREATE TABLE outbox (lsn pg_lsn PRIMARY KEY)")
    bench.run.execute("INSERT INTO outbox VALUES ('100/0'), ('FF/FFFFFFFF'), ('A/10'), ('9/FFFFFF00')")
    source = bench.source(coordinate="lsn", coordinate_spelling="pg_lsn")
    assert spelled(source, history(source)) == ["9/FFFFFF00", "A/10", "FF/FFFFFFFF", "100/0"]
    low, high = (coordinate_parse(text, source.spelling) for text in ("FF/FFFFFFFF", "100/0"))
    assert high.position - low.position == 1
    assert (lane(pin(source)).lowest, lane(pin(source)).head) == (
        coordinate_parse("9/FFFFFF00", source.spelling),
        high,
    )

    bench.run.execute("CREATE TABLE as_text (lsn text, d bytea); CREATE TABLE as_number (lsn bigint, d bytea)")
    bench.run.execute("CREATE TABLE as_numeric (lsn numeric, d bytea)")
    bench.run.execute("INSERT INTO as_text VALUES ('a/10'), ('A/00000010'), ('100/0')")
    for table in ("as_number", "as_numeric"):
        bench.run.execute(f"INSERT INTO {table} VALUES (42949672976), (42949672976), (1099511627776)")
    for table in ("as_text", "as_number", "as_numeric"):
        sink = bench.sink(table, "lsn", coordinate_spelling="pg_lsn", digest="d")
        assert spelled(sink, accepted(sink)) == ["A/10", "A/10", "100/0"]
        with sink.hold_snapshot() as reading:
            inside = CoordinateRange("0", coordinate_parse("A/10", sink.spelling), high)
            assert len(rows_of(sink.read_accepted(reading, inside, Width.COORDINATE))) == 2
    bench.run.execute("INSERT INTO as_text VALUES ('G/1')")
    with pytest.raises(Unsuitable, match="pg_lsn"):
        accepted(bench.sink("as_text", "lsn", coordinate_spelling="pg_lsn", digest="d"))


def test_unsigned_numbers_are_one_coordinate_however_they_are_stored(bench: Bench) -> None:
    """RC-18: 2^63 alone is missing; -1 and 18446744073709551615 are one event."""
    numbers = [0, 5, 2**63 - 1, 2**63, 2**64 - 1]
    bench.run.execute("CREATE TABLE outbox (id numeric(20, 0) PRIMARY KEY); CREATE TABLE long (id bigint)")
    bench.run.execute("CREATE TABLE accepted (id numeric, content jsonb)")
    for number in numbers:
        bench.run.execute("INSERT INTO outbox VALUES (%s)", [number])
        bench.run.execute("INSERT INTO long VALUES (%s)", [number - 2**64 if number >= 2**63 else number])
    bench.run.execute("INSERT INTO accepted VALUES (5), (9223372036854775807), (18446744073709551615), (0.00)")
    source = bench.source(coordinate_spelling="unsigned")
    twin = bench.source("long", coordinate_spelling="unsigned")
    sink = bench.sink(coordinate_spelling="unsigned", content="content")
    assert spelled(source, history(source)) == spelled(twin, history(twin)) == [str(number) for number in numbers]
    missing = {row["position"] for row in history(source)} - {row["position"] for row in accepted(sink)}
    assert missing == {coordinate_parse(2**63, source.spelling).position}
    for one in (source, twin):
        pinned = lane(pin(one))
        assert (pinned.lowest, pinned.head) == (coordinate_parse(0, one.spelling), coordinate_parse(-1, one.spelling))
        with one.hold_snapshot() as reading:
            upper = CoordinateRange("0", coordinate_parse(2**63, one.spelling), None)
            assert len(rows_of(one.read_history(reading, upper, Width.COORDINATE))) == 2

    signed = bench.source("long")
    assert any("unsigned" in weakness for weakness in signed.test().weaknesses)
    assert spelled(signed, history(signed))[:2] == [str(-(2**63)), "-1"]
    bench.run.execute("INSERT INTO accepted VALUES (1.5)")
    with pytest.raises(Unsuitable):
        accepted(sink)


def test_transaction_id_and_number_are_ordered_as_a_pair(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (tx xid8 NOT NULL, n bigint NOT NULL, PRIMARY KEY (tx, n))")
    bench.run.execute("INSERT INTO outbox VALUES ('9', 5), ('10', -3), ('10', 2), ('100', 1)")
    source = bench.source(coordinate=["tx", "n"], coordinate_spelling="xid8_bigint")
    assert spelled(source, history(source)) == ["9:5", "10:-3", "10:2", "100:1"]
    with source.hold_snapshot() as reading:
        low, high = (Coordinate(10 - 2**63, ordinal) for ordinal in (-3, 2))
        assert len(rows_of(source.read_history(reading, CoordinateRange("0", low, high), Width.COORDINATE))) == 1
        assert len(rows_of(source.read_history(reading, CoordinateRange("0", high, None), Width.COORDINATE))) == 2


PARTITIONED = """
CREATE TABLE outbox (id bigint NOT NULL, day date NOT NULL, content jsonb, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE outbox_2026_02 PARTITION OF outbox FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE TABLE outbox_2026_03 PARTITION OF outbox FOR VALUES FROM ('2026-03-01') TO ('2026-04-01');
INSERT INTO outbox VALUES (10, '2026-02-05'), (11, '2026-03-01'), (12, '2026-03-02');
"""


def test_a_partitioned_table_is_read_through_its_parent_and_a_detached_one_raises_the_floor(bench: Bench) -> None:
    """RC-32."""
    bench.run.execute(PARTITIONED)
    source = bench.source(content="content")
    report = source.test()
    assert report.facts["kind_of_table"] == "partitioned table"
    assert [name.rpartition(".")[2] for name in report.facts["partitions"]] == ["outbox_2026_02", "outbox_2026_03"]
    assert spelled(source, history(source)) == ["10", "11", "12"]
    assert lane(pin(source)).floor is None

    bench.run.execute("ALTER TABLE outbox DETACH PARTITION outbox_2026_02")
    reading = pin(source)
    assert spelled(source, history(source)) == ["11", "12"]
    assert Coordinate(10) < lane(reading).floor <= Coordinate(11)
    assert any("outbox_2026_02" in note and "retention" in note for note in reading.weaknesses)
    assert any("outbox_2026_02" in note for note in source.test().weaknesses)

    bench.run.execute("CREATE TABLE copy_of_march AS SELECT * FROM outbox")
    assert Coordinate(10) < lane(pin(source)).floor <= Coordinate(11), "a copy of held rows is not a detached partition"


def test_a_partition_that_the_relays_publication_leaves_out_is_named(bench: Bench) -> None:
    """RC-32."""
    bench.run.execute(PARTITIONED + "CREATE PUBLICATION relay FOR TABLE outbox_2026_02; CREATE PUBLICATION other")
    lacks = "Publication 'relay' leaves out 1 of the 2 partitions of public.outbox (outbox_2026_03): a relay that reads by it"

    def said(**options: Any) -> str:
        source = bench.source(content="content", **options)
        notes = [note for note in source.test().weaknesses if "ublication" in note]
        assert notes == [note for note in pin(source).weaknesses if "ublication" in note], "at each audit, too"
        return " ".join(notes)

    assert said().startswith(lacks) and said().count("Publication '") == 1, "the empty one is somebody else's"
    assert said(publication="relay").startswith(lacks)
    assert "leaves out 2 of the 2 partitions" in said(publication="other")
    assert "has no publication 'relay2'" in said(publication="relay2")
    bench.run.execute("ALTER PUBLICATION relay SET TABLE outbox")
    bench.run.execute(
        "CREATE TABLE outbox_2026_04 PARTITION OF outbox FOR VALUES FROM ('2026-04-01') TO ('2026-05-01')"
    )
    assert said() == "" and "under the names of its partitions" in said(publication="relay")
    bench.run.execute("ALTER PUBLICATION relay SET (publish_via_partition_root = true, publish = 'update')")
    assert said(publication="relay") == (
        "Publication 'relay' publishes no inserts: a relay that reads by it never emits one."
    )
    bench.run.execute("CREATE TABLE plain (id bigint PRIMARY KEY, content jsonb)")
    assert "leaves out public.plain:" in said(publication="relay", table="plain") and said(table="plain") == ""


def test_a_writer_of_one_partition_holds_back_the_frontier_of_the_whole(bench: Bench) -> None:
    bench.run.execute(PARTITIONED)
    writer = bench.session(application_name="leaf writer")
    writer.execute("INSERT INTO outbox_2026_03 VALUES (13, '2026-03-04')")
    safe = lane(pin(bench.source())).safe
    assert safe.coordinate is None and any("leaf writer" in name for name in safe.waits_for)


@pytest.mark.parametrize("parts", [1, 2, 7, 64, 500])
def test_ranges_cover_everything_once_whatever_their_number(bench: Bench, parts: int) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY)")
    bench.run.execute("INSERT INTO outbox SELECT g * g - 500000 FROM generate_series(1, 3000) g")
    bench.run.execute("ANALYZE outbox")
    source = bench.source()
    with source.hold_snapshot() as reading:
        ranges = source.split(reading, "0", parts)
        assert 1 <= len(ranges) <= parts
        assert ranges[0].low is None and ranges[-1].high is None
        read = [rows_of(source.read_history(reading, range_, Width.COORDINATE)) for range_ in ranges]
        whole = rows_of(source.read_history(reading, WHOLE, Width.COORDINATE))
    assert [row for rows in read for row in rows] == whole
    if parts == 7:
        assert max(map(len, read)) < 2 * 3000 / 7


FAR = 2**31
STARTS = [-(2**63), -FAR, -3, 0, 2**63 - FAR - 1]


@pytest.mark.parametrize("type_", ["bigint", "integer", "smallint"])
def test_numbers_are_themselves_whatever_range_they_are_asked_for_in(bench: Bench, type_: str) -> None:
    """In a range of fewer than 2**31 numbers four bytes a row travel, and eight in a wider one: at both ends of each."""
    most = {"bigint": 2**63 - 1, "integer": 2**31 - 1, "smallint": 2**15 - 1}[type_]
    wanted = {start + step for start in STARTS for step in (0, 1, FAR - 2, FAR - 1, FAR)}
    numbers = sorted(number for number in wanted if -most - 1 <= number <= most)
    bench.run.execute(sql.SQL("CREATE TABLE outbox (id {} PRIMARY KEY)").format(sql.SQL(type_)))
    bench.run.execute("INSERT INTO outbox SELECT unnest(%s::bigint[])", (numbers,))
    source = bench.source()
    with source.hold_snapshot() as reading:
        for low in STARTS:
            for width in (1, FAR - 2, FAR - 1, FAR):
                ends = [Coordinate(low, 0), Coordinate(min(low + width, 2**63 - 1), 1)]
                rows = rows_of(source.read_history(reading, CoordinateRange("0", *ends), Width.COORDINATE))
                inside = [number for number in numbers if low <= number <= ends[1].position]
                assert sorted(row["position"] for row in rows) == inside, (low, width)
