"""Contents and their digests: the SQL form against Python's, what jsonb refuses (RC-30), and contents of any size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recovery_api.domain.errors import Unsuitable
from tests.integration.postgresql.mapped_tables import WHOLE, Bench, accepted, digests, history, rows_of
from workers.connectors.postgresql import canonical_sql
from workers.connectors.postgresql.table_reader import TableReader
from workers.connectors.readings import Width
from workers.evidence import canonical
from workers.evidence.canonical import ABSENT

CORPUS = json.loads((Path(__file__).parents[2] / "contract" / "canonical_corpus.json").read_text(encoding="utf-8"))

TRICKY = [
    '{"a":"1.0","b":1.0,"c":[1.50,0.0,-0.0,1.050,1e-7,1.10e3,100.0,"x\\"1.00\\\\",2.0]}',
    '["a\\\\",1.0,"\\\\\\"",2.50,"3.00",{"k\\"1.0":1.0}]',
    '{"":"","1.0":10.0,"1.00":[],"z":{}}',
    '{"bb":1,"a":2,"é":3,"ab":4,"a":5}',
    '"1.10\\n2.0 \\u0001\\u007f"',
    "1.000000000000000000000000000000000000000000001000",
    "-0",
    "-0.0",
    "0e10",
    "1E400",
    "1e-400",
    "12345678901234567890.10",
    "[1,1.0,1.00,10,10.0,100,0.10,0.0010,-5.50]",
    '"\\ud83d\\ude80 caf\\u00e9 é"',
    '{"a":".0","b":"5.0}","c":"[1.0, 2.0]"}',
    " [ 1.0 , 2 ] ",
    "null",
    "true",
    '""',
]
REFUSED_BY_JSONB = ['"a\\u0000b"', '{"\\u0000":1}', '"\\ud83d"', '"\\ude80\\ud83d"', '["\\u0000",1.0,"é"]']

NUMBERS = st.one_of(
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=4).map(str),
    st.from_regex(r"-?(0|[1-9][0-9]{0,6})(\.[0-9]{1,6})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)


def _spell(value: Any) -> str:
    """JSON text with numbers as drawn."""
    if isinstance(value, tuple):
        return value[0]
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_spell(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_spell, value)) + "]"
    return json.dumps(value, ensure_ascii=bool(hash(str(value)) % 2))


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8) | st.sampled_from(
    ["1.0", "x1.50,", '"', "\\", '\\"', ".0", "[1.0]", "a.b", "\u2028"]
)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | TEXTS | NUMBERS.map(lambda text: (text,)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
).map(_spell)


@pytest.fixture(scope="module")
def asked(bench_dsn: str) -> Any:
    with psycopg.connect(bench_dsn, autocommit=True) as connection:
        yield connection


def in_sql(connection: psycopg.Connection[Any], expression: str, text: str | None) -> Any:
    row = connection.execute(f"SELECT {expression} FROM (VALUES (%s::text)) AS v(text)", [text]).fetchone()
    assert row is not None
    return row[0]


FORMS = {
    "jsonb": canonical_sql.canonical_jsonb("v.text::jsonb"),
    "json": canonical_sql.canonical_json("v.text::json"),
    "text": canonical_sql.canonical_json_text("v.text"),
}


@pytest.mark.parametrize("form", FORMS)
def test_sql_gives_the_corpus_its_canonical_texts(asked: psycopg.Connection[Any], form: str) -> None:
    wrong = []
    for case in CORPUS["cases"]:
        if case["canonical"] is None and form == "json":
            continue
        if not case["in_jsonb"] and form == "jsonb":
            continue
        expected = case["canonical"] if case["in_jsonb"] else None
        found = in_sql(asked, FORMS[form], case["json"])
        if found != expected:
            wrong.append((case["says"], found))
    assert not wrong


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", TRICKY)
def test_sql_and_python_spell_a_document_alike(asked: psycopg.Connection[Any], form: str, text: str) -> None:
    assert in_sql(asked, FORMS[form], text) == canonical.canonical(canonical.content_parse(text))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DOCUMENTS)
def test_sql_and_python_spell_any_document_alike(asked: psycopg.Connection[Any], text: str) -> None:
    expected = canonical.canonical(canonical.content_parse(text))
    assert in_sql(asked, f"ARRAY[{', '.join(FORMS.values())}]", text) == [expected] * len(FORMS)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, st.none() | TEXTS, st.sampled_from(["insert", "update", "delete"]), st.none() | TEXTS)
def test_sql_and_python_digest_any_payload_alike(
    asked: psycopg.Connection[Any], text: str, key: str | None, op: str, content: str | None
) -> None:
    digest = canonical_sql.content_digest(canonical_sql.canonical_text("v.content"), "v.content", "v.op")
    expression = canonical_sql.payload_digest("v.op", "v.key", digest)
    entry = canonical_sql.entry_digest("v.lane", "(-5)", "7", "q.payload")
    row = asked.execute(
        f"SELECT q.payload, {entry}, {canonical_sql.batch_digest('q.payload')} FROM (VALUES (%s, %s::text, %s::text, %s))"
        f" AS v(op, key, content, lane), LATERAL (SELECT {expression} AS payload) q GROUP BY q.payload, v.lane",
        [op, key, content, text],
    ).fetchone()
    assert row is not None
    payload = canonical.payload_digest(op, key, canonical.content_digest(ABSENT if content is None else content, op))
    assert row[0] == payload
    assert row[1] == canonical.entry_digest(text, -5, 7, payload)
    assert row[2] == canonical.batch_digest(pa.array([payload], pa.binary(32)))


@pytest.mark.parametrize("text", [*REFUSED_BY_JSONB, "1e131073", "1e-16384", "1." + "0" * 16384, "9" * 131073])
def test_what_jsonb_refuses_is_null_in_sql_and_never_an_error(asked: psycopg.Connection[Any], text: str) -> None:
    assert in_sql(asked, FORMS["json"], text) is None
    assert in_sql(asked, FORMS["text"], text) is None
    assert in_sql(asked, canonical_sql.canonical_json("v.text::json", has_soft_errors=False), text) is None
    assert in_sql(asked, canonical_sql.canonical_json_text("v.text", has_soft_errors=False), text) is None


def test_an_empty_batch_sums_to_zero(asked: psycopg.Connection[Any]) -> None:
    row = asked.execute(
        f"SELECT {canonical_sql.batch_digest('d')} FROM (SELECT ''::bytea AS d WHERE false) AS none"
    ).fetchone()
    assert row == ("0:0:0:0",)


@pytest.mark.parametrize("type_", ["json", "text", "varchar"])
def test_a_content_that_jsonb_refuses_is_digested_all_the_same(bench: Bench, type_: str) -> None:
    """RC-30: the reading neither fails, nor cuts at NUL, nor drops the batch."""
    documents = TRICKY + REFUSED_BY_JSONB
    bench.run.execute(f"CREATE TABLE outbox (id bigint PRIMARY KEY, key text, op text, content {type_})")
    with bench.run.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO outbox VALUES (%s, %s, 'insert', %s)", [(n, f"k{n}", text) for n, text in enumerate(documents)]
        )
    source = bench.source(key="key", op="op", content="content")
    expected = {
        n: canonical.payload_digest("insert", f"k{n}", canonical.content_digest(canonical.content_parse(text)))
        for n, text in enumerate(documents)
    }
    assert digests(history(source, Width.PAYLOAD)) == expected
    assert digests(history(source, Width.FULL)) == expected
    with source.hold_snapshot() as reading:
        wanted = pa.table(
            {"lane": ["0"] * len(documents), "position": range(len(documents)), "ordinal": [0] * len(documents)}
        )
        sent = rows_of(source.read_content(reading, wanted))
        old = TableReader(source.address, source.options, {**reading.handle, "has_soft_errors": False})
        assert not old.mapped.has_soft_errors
        batches = type(source).read_history(
            source, type(reading)(reading.identity, {**reading.handle, "has_soft_errors": False}), WHOLE, Width.PAYLOAD
        )
        assert digests(rows_of(batches)) == expected, "a server before PostgreSQL 16 gives the same digests"
    assert [row["content"] for row in sent] == documents


def test_altered_and_missing_are_told_apart_where_the_sink_could_not_hold_the_source(bench: Bench) -> None:
    """RC-30: 2 and 4 accepted, 1 altered, 3 missing; escaped and literal é and 🚀 are equal."""
    given_ = {1: '{"id":1,"note":"a\\u0000b"}', 2: '{"id":2,"note":"ok"}', 3: '{"id":3,"note":"\\ud83d"}'}
    given_[4] = '{"id":4,"note":"caf\\u00e9 \\ud83d\\ude80"}'
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY, content json)")
    bench.run.execute("CREATE TABLE accepted (id bigint PRIMARY KEY, content jsonb)")
    for number, text in given_.items():
        bench.run.execute("INSERT INTO outbox VALUES (%s, %s)", [number, text])
    for number, text in {1: '{"id":1,"note":"ab"}', 2: given_[2], 4: '{"note":"café 🚀","id":4.0}'}.items():
        bench.run.execute("INSERT INTO accepted VALUES (%s, %s)", [number, text])
    owed, held = (
        digests(history(bench.source(content="content"), Width.PAYLOAD)),
        digests(accepted(bench.sink(content="content"), Width.PAYLOAD)),
    )
    assert {number for number in owed if owed[number] == held.get(number)} == {2, 4}
    assert 1 in held and 3 not in held


def test_a_text_that_is_not_json_is_named_by_its_coordinate(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY, content text)")
    bench.run.execute("INSERT INTO outbox VALUES (1, '{}'), (2, '{\"a\":')")
    with pytest.raises(Unsuitable, match=r"at 2.*not JSON"):
        history(bench.source(content="content"), Width.PAYLOAD)
    assert len(history(bench.source(content="content", content_format="text"), Width.PAYLOAD)) == 2


def test_null_missing_and_empty_are_three_and_a_delete_without_content_is_null(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY, op text, content jsonb)")
    bench.run.execute(
        "INSERT INTO outbox VALUES (1, 'insert', NULL), (2, 'insert', 'null'), (3, 'insert', '\"\"'),"
        " (4, 'delete', NULL), (5, 'delete', 'null')"
    )
    found = digests(history(bench.source(op="op", content="content"), Width.PAYLOAD))
    assert len({found[number] for number in (1, 2, 3, 4)}) == 4
    assert found[4] == found[5]
    assert found[1] == canonical.payload_digest("insert", None, canonical.content_digest(ABSENT, "insert"))
    nothing = digests(history(bench.source(op="op"), Width.PAYLOAD))
    assert nothing[4] == found[4] and nothing[1] == nothing[2] == found[1]


@pytest.mark.parametrize(
    ("type_", "format_", "stored", "text"),
    [
        ("text", "text", 'a"b\\c', '"a\\"b\\\\c"'),
        ("bytea", "bytes", b"\x00\xff", '"\\\\x00ff"'),
        ("int", "text", 7, '"7"'),
    ],
)
def test_texts_and_bytes_are_json_strings(bench: Bench, type_: str, format_: str, stored: Any, text: str) -> None:
    bench.run.execute(f"CREATE TABLE outbox (id bigint PRIMARY KEY, content {type_})")
    bench.run.execute("INSERT INTO outbox VALUES (1, %s), (2, NULL)", [stored])
    source = bench.source(content="content", content_format=format_)
    content = canonical.content_parse(text)
    expected = canonical.payload_digest("insert", None, canonical.content_digest(content))
    assert digests(history(source, Width.PAYLOAD))[1] == expected
    with source.hold_snapshot() as reading:
        wanted = pa.table({"lane": ["0", "0"], "position": [2, 1], "ordinal": [0, 0]})
        assert [row["content"] for row in rows_of(source.read_content(reading, wanted))] == [text, None]


def test_content_is_sent_in_committed_order_once_a_coordinate(bench: Bench) -> None:
    bench.run.execute(
        "CREATE TABLE outbox (id bigint PRIMARY KEY, event uuid DEFAULT gen_random_uuid(), k text, body text)"
    )
    bench.run.execute(
        "INSERT INTO outbox (id, k, body) SELECT g, NULLIF('', ''), 'line 1' || chr(10) || 'a,\"b\" ' || g"
        " FROM generate_series(1, 25000) g"
    )
    bench.run.execute("UPDATE outbox SET k = '' WHERE id % 2 = 0")
    source = bench.source(event_id="event", key="k", content="body", content_format="text")
    wanted = [number for number in range(25000, 0, -1) if number % 3] + [3, 1, 99999]
    with source.hold_snapshot() as reading:
        bench.run.execute("DELETE FROM outbox")
        table = pa.table({"lane": ["0"] * len(wanted), "position": wanted, "ordinal": [0] * len(wanted)})
        rows = rows_of(source.read_content(reading, table))
    assert [row["position"] for row in rows] == sorted(set(wanted) - {99999})
    assert [row["key"] for row in rows[:4]] == [None, "", None, ""]
    assert json.loads(rows[1]["content"]) == 'line 1\na,"b" 2'
    assert all(len(row["event_id"]) == 36 for row in rows)


@pytest.mark.slow
def test_a_payload_of_24_mib_is_digested_and_sent_whole(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id bigint PRIMARY KEY, as_jsonb jsonb, as_json json)")
    text = json.dumps({"n": 1.5, "body": "x1.0," * (24 * 2**20 // 5), "nul": "-"})
    for number in range(2):
        bench.run.execute("INSERT INTO outbox VALUES (%s, %s, %s)", [number, text, text.replace('"-"', '"\\u0000"')])
    for column, content in (("as_jsonb", text), ("as_json", text.replace('"-"', '"\\u0000"'))):
        source = bench.source(content=column)
        expected = canonical.payload_digest("insert", None, canonical.content_digest(canonical.content_parse(content)))
        assert set(digests(history(source, Width.PAYLOAD)).values()) == {expected}
        with source.hold_snapshot() as reading:
            wanted = pa.table({"lane": ["0"] * 2, "position": [0, 1], "ordinal": [0] * 2})
            batches = source.read_content(reading, wanted)
            sizes = [(len(batch), len(batch["content"][0].as_py())) for batch in batches]
        assert [count for count, _ in sizes] == [1, 1]
        assert all(size >= 24 * 2**20 for _, size in sizes)
