"""Tables as they are: paths, constants, joined keys, filters and contents of every form, on a real server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput, FencepostError, NotFound, Unsuitable
from tests.integration.postgresql.mapped_tables import WHOLE, Bench, accepted, digests, history, lane, rows_of, spelled
from tests.pins import pin
from workers.connectors.readings import ConnectionReport, LateRows, Width

TABLE = """
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id bigint, headers jsonb, body text, state text)
"""
ORDERS = "CREATE TABLE orders (id bigint PRIMARY KEY, number text, data json)"


def problem_of(report: ConnectionReport) -> str:
    assert not report.is_usable
    return " ".join(report.problems)


def full(source: Any) -> list[dict[str, Any]]:
    return sorted(history(source, Width.FULL), key=lambda row: row["position"])


def contents(source: Any) -> list[dict[str, Any]]:
    with source.hold_snapshot() as reading:
        found = rows_of(source.read_history(reading, WHOLE, Width.COORDINATE))
        wanted = pa.table({name: [row[name] for row in found] for name in ("position", "ordinal")})
        return rows_of(source.read_content(reading, wanted))


@pytest.fixture
def filled(bench: Bench) -> Bench:
    bench.run.execute(TABLE + ";" + ORDERS)
    bench.run.execute("INSERT INTO orders VALUES (7, 'A-7', '{\"who\": {\"name\": \"Ada\"}}'), (8, 'A-8', '{}')")
    bench.run.execute(
        "INSERT INTO outbox (order_id, headers, body, state) VALUES"
        """ (7, '{"id": "m1", "op": "c", "who": {"n": 5}}', '{"event": {"n": 1.0, "a": [1]}}', 'ready'),"""
        """ (8, '{"id": "m2", "op": "d"}', '{"event": null}', 'ready'),"""
        """ (9, '{"id": null, "op": "c"}', '{"other": 1}', 'draft'),"""
        """ (NULL, '{"op": "c"}', '{"event": "text"}', NULL)"""
    )
    return bench


def test_a_path_gives_the_leaf_as_text_and_the_content_as_json(filled: Bench) -> None:
    source = filled.source(
        event_id="headers->id",
        key="headers->who->n",
        op="headers->op",
        op_values={"c": "insert", "d": "delete"},
        content="body->event",
    )
    rows = full(source)
    assert [row["event_id"] for row in rows] == ["m1", "m2", None, None]
    assert [row["key"] for row in rows] == ["5", None, None, None]
    assert [row["op"] for row in rows] == ["insert", "delete", "insert", "insert"]
    assert [row["content"] for row in contents(source)] == ['{"n": 1.0, "a": [1]}', "null", None, '"text"']
    assert source.test().is_usable


def test_a_path_and_a_column_with_the_same_content_have_the_same_digest(filled: Bench) -> None:
    filled.run.execute("CREATE TABLE plain (id bigint PRIMARY KEY, content jsonb)")
    filled.run.execute("""INSERT INTO plain VALUES (1, '{"a": [1], "n": 1}'), (2, 'null'), (3, NULL), (4, '"text"')""")
    mapped = digests(history(filled.source(content="body->event"), Width.PAYLOAD))
    assert mapped == digests(history(filled.source("plain", content="content"), Width.PAYLOAD))


def test_a_constant_stands_for_every_row(filled: Bench) -> None:
    rows = full(filled.source(key="=it's 100% {\\}", op="=update", event_id="="))
    assert {(row["key"], row["op"], row["event_id"]) for row in rows} == {("it's 100% {\\}", "update", "")}


def test_a_column_that_really_has_such_a_name_wins(bench: Bench) -> None:
    bench.run.execute('CREATE TABLE outbox (id bigint PRIMARY KEY, "a->b" text, a jsonb, "=c" text, "joined.d" text)')
    bench.run.execute("""INSERT INTO outbox VALUES (1, 'column', '{"b": "path", "c": "deep"}', 'own', 'mine')""")
    assert full(bench.source(key="a->b", event_id="a->c"))[0]["key"] == "column"
    assert full(bench.source(key="a->b", event_id="a->c"))[0]["event_id"] == "deep"
    assert full(bench.source(key="=c", event_id="joined.d"))[0]["key"] == "own"
    assert full(bench.source(filter='"a->b" < d and "joined.d" = mine'))[0]["position"] == 1


def test_a_key_of_a_joined_table_is_read_and_no_row_is_lost_or_doubled_by_it(filled: Bench) -> None:
    joined = {"joined_table": "orders", "joined_on": {"order_id": "id"}}
    rows = full(filled.source(key="joined.number", event_id="joined.data->who->name", **joined))
    assert [(row["position"], row["key"], row["event_id"]) for row in rows] == [
        (1, "A-7", "Ada"),
        (2, "A-8", None),
        (3, None, None),
        (4, None, None),
    ]
    report = filled.source(key="joined.number", **joined).test()
    assert report.is_usable, report.problems
    assert any("a row that is changed there" in one for one in report.weaknesses)
    assert report.sample is not None and report.sample["rows"][-1]["key"] == "A-7"


@pytest.mark.parametrize(
    "key",
    [
        "CREATE INDEX ON orders (id)",
        "CREATE UNIQUE INDEX ON orders (id) WHERE number <> ''",
        "CREATE UNIQUE INDEX ON orders ((id + 0))",
        "CREATE UNIQUE INDEX ON orders (id, number)",
        "CREATE UNIQUE INDEX ON orders (number) INCLUDE (id)",
        "ALTER TABLE orders ADD UNIQUE (id) DEFERRABLE INITIALLY IMMEDIATE",
    ],
)
def test_a_join_that_could_multiply_rows_is_refused(bench: Bench, key: str) -> None:
    bench.run.execute(TABLE + "; CREATE TABLE orders (id bigint, number text); " + key)
    source = bench.source(key="joined.number", joined_table="orders", joined_on={"order_id": "id"})
    assert "count several times" in problem_of(source.test())
    with pytest.raises(Unsuitable, match="not known to be unique"):
        pin(source)


def test_a_join_by_a_float_that_meets_two_numbers_is_refused(bench: Bench) -> None:
    bench.run.execute(
        "CREATE TABLE outbox (id bigint PRIMARY KEY, ref float8); CREATE TABLE orders (id bigint PRIMARY KEY)"
    )
    source = bench.source(key="joined.id", joined_table="orders", joined_on={"ref": "id"})
    assert "Join columns of one type" in problem_of(source.test())


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        ("state = ready", [1, 2]),
        ("state <> ready", [3, 4]),
        ("state in (draft, 'ready') and order_id > 7", [2, 3]),
        ("state is null", [4]),
        ("state is not null and order_id <= 8", [1, 2]),
        ("headers->id = m2", [2]),
        ("headers->id is null", [3, 4]),
        ("headers->op <> c", [2]),
        ("body->event->n = '1.0'", [1]),
        ("state = 'x'' OR true --'", []),
        ("headers->\\$%s{} = '\\'' OR true'", []),
        ("state = '$1 %s {} \\'", []),
    ],
)
def test_a_filter_says_which_rows_are_owed(filled: Bench, filter_: str, expected: list[int]) -> None:
    source = filled.source(filter=filter_, key="state")
    assert spelled(source, history(source)) == [str(number) for number in expected]
    report = source.test()
    assert report.is_usable, report.problems
    assert report.facts["rows"] == len(expected)
    assert any("are owed" in one for one in report.weaknesses)


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"filter": "order_id = seven"}, Unsuitable, "cannot be asked of a column of type int8"),
        ({"filter": "stat = ready"}, NotFound, "'state'"),
        ({"filter": "headers = '{'"}, Unsuitable, "type jsonb"),
        ({"filter": "order_id->a = 1"}, Unsuitable, "a path leads into JSON only"),
        ({"filter": "headers->n < 3"}, BadInput, "10 comes before 9"),
        ({"filter": "'1' = 1"}, BadInput, "where a column should"),
        ({"filter": '"=1" = 1'}, BadInput, "no column of the table itself"),
        ({"filter": "state = 'a' ; DROP TABLE outbox"}, BadInput, "';' is not `and`"),
        ({"key": "order_id->a"}, Unsuitable, "a path leads into JSON only"),
        ({"key": "headrs->a"}, NotFound, "'headers'"),
        ({"key": "joined.number"}, Unsuitable, "none is named"),
        ({"key": "headers->nowhere"}, None, "None of the newest 4 rows has 'headers->nowhere'"),
        ({"key": "headers->'); DROP TABLE outbox; --"}, None, "None of the newest 4 rows"),
        ({"key": "body->\"a\\'{}$1%s"}, None, "None of the newest 4 rows"),
        ({"key": "state->a"}, None, "holds no JSON in 3 of the newest rows"),
        ({"joined_table": "nobody", "joined_on": {"order_id": "id"}}, NotFound, "nobody"),
        ({"joined_table": "orders", "joined_on": {"order": "id"}}, NotFound, "order_id"),
        ({"joined_table": "orders", "joined_on": {"order_id": "ids"}}, NotFound, "'id'"),
        ({"joined_table": "orders", "joined_on": {"order_id": "id"}, "key": "joined.num"}, NotFound, "'number'"),
        (
            {"joined_table": "orders", "joined_on": {"order_id": "id"}, "filter": "joined.number = a"},
            BadInput,
            "unseen",
        ),
        ({"joined_table": 'orders"; DROP TABLE outbox; --', "joined_on": {"order_id": "id"}}, NotFound, "DROP"),
    ],
)
def test_a_mapping_that_does_not_fit_is_named_with_what_to_do(
    filled: Bench, options: dict[str, Any], kind: type[FencepostError] | None, says: str
) -> None:
    try:
        source = filled.source(**options)
    except BadInput as error:
        assert kind is BadInput and says in str(error)
        return
    report = source.test()
    assert says in problem_of(report)
    if kind is not None:
        assert isinstance(FencepostError.from_row(report.facts["error"]), kind)
        with pytest.raises(kind):
            pin(source)
    row = filled.run.execute("SELECT count(*) FROM outbox").fetchone()
    assert row == (4,)


def test_a_filter_that_means_another_time_every_day_is_refused(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY, at timestamptz)")
    bench.run.execute("INSERT INTO outbox VALUES (1, '2024-01-01 00:00:00+00'), (2, '2030-01-01 00:00:00+00')")
    for word in ("now", "today", "yesterday", "-infinity", "epoch"):
        assert "Write a fixed time" in problem_of(bench.source(filter=f"at < {word}").test())
    assert spelled(bench.source(), history(bench.source(filter="at < '2024-06-01 00:00:00+00'"))) == ["1"]


def test_a_row_that_the_filter_takes_in_later_is_seen_as_late(filled: Bench) -> None:
    source = filled.source(filter="state = ready")
    with source.hold_pin() as pinned:
        filled.run.execute("UPDATE outbox SET state = 'ready' WHERE id = 3")
        with source.hold_snapshot() as reading:
            late = LateRows(Coordinate(10))
            again = replace(reading, handle={**reading.handle, "pinned": pinned.handle["pinned"]})
            read = rows_of(source.read_history(again, WHOLE, Width.COORDINATE, late=late))
    assert len(read) == 3
    assert (late.count, [one.position for one in late.first]) == (1, [3])


def test_a_filter_whose_columns_others_may_change_leaves_the_ground_assumed(filled: Bench) -> None:
    role = f"{filled.run.info.dbname}_writer"
    filled.run.execute(f'CREATE ROLE "{role}" LOGIN; GRANT UPDATE (state) ON outbox TO "{role}"')
    plain, filtered = (
        lane(pin(filled.source(share_lock=True, **options))).safe for options in ({}, {"filter": "state = ready"})
    )
    assert plain.standing.value == "proven", plain
    assert filtered.standing.value == "assumed"
    assert "takes it in later" in filtered.given and role in (filtered.weakness or "")
    assert plain.incarnation != filtered.incarnation and plain.catalogue != filtered.catalogue
    other = lane(pin(filled.source(share_lock=True, filter="order_id = 7"))).safe
    assert other.standing.value == "proven", "nobody may change that column"
    filled.run.execute(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')


def test_ranges_of_a_filtered_and_joined_table_cover_it_once(filled: Bench) -> None:
    filled.run.execute(
        "INSERT INTO outbox (order_id, headers, body, state)"
        " SELECT 7, '{}', '{}', CASE WHEN n % 3 = 0 THEN 'ready' ELSE 'draft' END FROM generate_series(1, 3000) AS n; ANALYZE"
    )
    source = filled.source(
        filter="state = ready", key="joined.number", joined_table="orders", joined_on={"order_id": "id"}
    )
    with source.hold_snapshot() as reading:
        assert reading.handle["has_index"]
        ranges = source.split(reading, "0", 8)
        found = [rows_of(source.read_history(reading, one, Width.PAYLOAD, with_key=True)) for one in ranges]
    assert len(ranges) > 4 and all(found)
    assert [len(rows) for rows in found] == [len({row["position"] for row in rows}) for rows in found]
    assert sum(map(len, found)) == 1002
    assert {row["key"] for rows in found for row in rows} == {"A-7", "A-8"}


def test_a_record_with_a_filter_counts_what_it_takes_in(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE accepted (id bigint PRIMARY KEY, consumer text, consumed timestamptz, body jsonb)")
    bench.run.execute(
        "INSERT INTO accepted VALUES (1, 'mail', now(), '{}'), (2, 'mail', NULL, '{}'), (3, 'sms', now(), '{}')"
    )
    sink = bench.sink(content="body", filter="consumer = mail and consumed is not null")
    assert spelled(sink, accepted(sink)) == ["1"]
    assert any("count as accepted" in one for one in sink.test().weaknesses)


FORMS = """
CREATE TABLE outbox (id bigint PRIMARY KEY, bytes bytea, hex text, base64 text, packed bytea, inner_json jsonb, plain json);
INSERT INTO outbox VALUES
 (1, '\\x00ff', '00FF', 'AP8=', convert_to('{"n": 1, "t":1}', 'UTF8'), '"{\\"n\\": 1, \\"t\\":1}"', '{"t":1,"n":1.0}'),
 (2, NULL, NULL, NULL, NULL, NULL, NULL),
 (3, '', '\\x', '', convert_to('"é"', 'UTF8'), '"\\"\\\\u00e9\\""', '"\\u00e9"')
"""


def test_rc_35_payloads_that_are_null_double_encoded_or_binary_are_what_they_hold(bench: Bench) -> None:
    bench.run.execute(FORMS)

    def read(column: str, format_: str) -> dict[int, bytes]:
        source = bench.source(content=column, content_format=format_)
        assert source.test().is_usable
        return digests(history(source, Width.PAYLOAD))

    as_json = read("plain", "json")
    assert read("packed", "json_bytes") == as_json, (
        "JSON in bytes is that JSON: order, blanks and 1.0 are no difference"
    )
    assert read("inner_json", "escaped") == as_json, "escaped and expanded JSON are equal"
    with pytest.raises(Unsuitable, match="'plain' at 3.*is not JSON"):
        history(bench.source(content="plain", content_format="escaped"), Width.PAYLOAD)  # the é of "é" is no JSON
    as_bytes = read("bytes", "bytes")
    assert read("hex", "hex") == as_bytes == read("base64", "base64")
    assert as_bytes[2] == as_json[2], "a null is one null, whatever the column's type"
    assert len({as_bytes[1], as_bytes[2], as_bytes[3]}) == 3, "null, empty and bytes are three"
    assert read("packed", "text_bytes") != as_json


def test_rc_35_contents_of_every_form_are_handed_over_as_what_they_hold(bench: Bench) -> None:
    bench.run.execute(FORMS)
    expected = {
        ("bytes", "bytes"): ['"\\\\x00ff"', None, '"\\\\x"'],
        ("hex", "hex"): ['"\\\\x00ff"', None, '"\\\\x"'],
        ("base64", "base64"): ['"\\\\x00ff"', None, '"\\\\x"'],
        ("packed", "json_bytes"): ['{"n": 1, "t":1}', None, '"é"'],
        ("inner_json", "escaped"): ['{"n": 1, "t":1}', None, '"\\u00e9"'],
    }
    for (column, format_), wanted in expected.items():
        source = bench.source(content=column, content_format=format_)
        assert [row["content"] for row in contents(source)] == wanted, format_


def test_json_in_bytes_that_is_no_json_names_its_coordinate(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY, packed bytea)")
    bench.run.execute("INSERT INTO outbox VALUES (4, convert_to('{no json', 'UTF8'))")
    with pytest.raises(Unsuitable, match="'packed' at 4"):
        history(bench.source(content="packed", content_format="json_bytes"), Width.PAYLOAD)


@pytest.mark.parametrize("format_", ["json", "text", "bytes", "hex", "text_bytes"])
def test_a_large_object_is_refused_in_every_format(bench: Bench, format_: str) -> None:
    bench.run.execute("CREATE DOMAIN lob AS oid; CREATE TABLE outbox (id bigint PRIMARY KEY, payload lob)")
    problem = problem_of(bench.source(content="payload", content_format=format_).test())
    assert "number of a large object" in problem and "content bytea" in problem


def test_rc_18_unsigned_keys_above_2_63_are_their_own_numbers(bench: Bench) -> None:
    bench.run.execute(
        "CREATE TABLE outbox (id numeric(20) PRIMARY KEY); CREATE TABLE accepted (id bigint PRIMARY KEY, body text)"
    )
    bench.run.execute(
        "INSERT INTO outbox VALUES (0), (5), (9223372036854775807), (9223372036854775808), (18446744073709551615)"
    )
    bench.run.execute("INSERT INTO accepted VALUES (0), (5), (9223372036854775807), (-1)")
    source = bench.source(coordinate_spelling="unsigned")
    sink = bench.sink(coordinate_spelling="unsigned", content="body", content_format="text")
    held = {row["position"] for row in history(source)}
    assert spelled(source, history(source)) == [
        "0", "5", "9223372036854775807", "9223372036854775808", "18446744073709551615"
    ]  # fmt: skip
    lost = held - {row["position"] for row in accepted(sink)}
    assert spelled(source, [{"position": one, "ordinal": 0} for one in lost]) == ["9223372036854775808"]
    assert {row["position"] for row in accepted(sink)} <= held, "-1 is 18446744073709551615, not an entry of nobody"
    ambiguous = bench.sink(content="body", content_format="text").test()
    assert any("unsigned ones above 2^63-1" in one for one in ambiguous.weaknesses)
    assert spelled(sink, accepted(bench.sink(content="body", content_format="text")))
