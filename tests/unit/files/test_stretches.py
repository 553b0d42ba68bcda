"""Stretches of lines read at once say what the same lines say one by one, and lose count of nothing."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from hashlib import sha256

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.errors import BadFile
from tests.unit.files.exports import read
from tests.unit.files.test_accounting import JSON
from workers.evidence.canonical import canonical, content_parse, payload_digest
from workers.evidence.files.opening import READ_BYTES
from workers.evidence.quick import Uncertain, parse_quick
from workers.evidence.quick_columns import SHAPES_FEW, canonical_column

COUNT = 4 * READ_BYTES // 100


def content(number):
    """Of several shapes, with members out of order, empty things and texts that look like members."""
    several = [
        {"id": number, "name": "é\u2028%s", "lines": [{"n": 1, "sku": "x"}, {"n": 2, "sku": None}], "a": True},
        {"id": number, "name": None, "lines": [], "a": {}},
        {"price": number + 0.25, "text": f'say \\"a": {number}', "id": number},
        [number, "a", None],
        "plain",
    ]
    return several[number % len(several)]


def events(count=COUNT):
    return [
        {"coordinate": n, "op": "insert", "key": None if n % 3 == 0 else f"kö{n % 7}", "value": content(n)}
        for n in range(1, count + 1)
    ]


def json_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def cells(rows, end="\n"):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end)
    writer.writerow(["coordinate", "op", "key", "value"])
    for row in rows:
        writer.writerow([row["coordinate"], row["op"], row["key"], json.dumps(row["value"], ensure_ascii=False)])
    return out.getvalue().encode()


def digests_of(rows):
    return [payload_digest(row["op"], row["key"], sha256(canonical(row["value"]).encode()).hexdigest()) for row in rows]


def table_of(tmp_path, name, written):
    path = tmp_path / name
    path.write_bytes(written)
    return read(path)


@given(st.lists(JSON, min_size=1, max_size=6))
def test_a_column_of_contents_has_the_canonical_text_of_each(contents):
    spelled = [json.dumps(one, ensure_ascii=False) for one in contents]
    try:
        parsed = [parse_quick(text) for text in spelled]
        texts, _ = canonical_column(parsed, "\n".join(spelled).encode())
    except Uncertain:
        return
    assert texts == [canonical(content_parse(text)) for text in spelled]


FLOATS = ["1.50", "0.1", "100.0", "1e5", "1E-7", "123456789.12345", "2.5e-300", "9.9999999999999e22", "-1.5"]
ZEROS = ["-0.0", "0.000", "0.0"]
DOUBTFUL = ["0e5", "1e-400", "0.1234567890123456", "1e301", "2.5e-301", "123456789012345.25"]


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9), min_size=1))
def test_a_float_that_is_vouched_for_is_what_was_written(numbers):
    spelled = [f"{number:f}" for number in numbers] + FLOATS
    with contextlib.suppress(Uncertain):
        texts, _ = canonical_column([orjson.loads(text) for text in spelled], " ".join(spelled).encode())
        assert texts == [canonical(content_parse(text)) for text in spelled]


def test_floats_are_vouched_for_where_nothing_was_rounded_and_nowhere_else():
    for spelled in (FLOATS, ZEROS):
        texts, _ = canonical_column([orjson.loads(text) for text in spelled], " ".join(spelled).encode())
        assert texts == [canonical(content_parse(text)) for text in spelled]
    for text in DOUBTFUL:
        with pytest.raises(Uncertain):
            canonical_column([orjson.loads(text)], text.encode())


def test_contents_of_many_shapes_are_written_one_at_a_time_and_counted():
    contents = [{f"m{number}": number, "a": {"b": [{}]}} for number in range(SHAPES_FEW + 1)]
    texts, members = canonical_column(contents, b"")
    assert texts == [canonical(one) for one in contents] and members == 3 * len(contents)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("name", "spell"), [("a.jsonl", json_lines), ("a.csv", cells)])
def test_every_event_has_its_digest_whatever_way_its_stretch_was_read(tmp_path, name, spell, end):
    rows = events()
    written = spell(rows).replace(b"\n", end.encode())
    file, table = table_of(tmp_path, name, written)
    assert table["payload_digest"].to_pylist() == digests_of(rows)
    assert table["position"].to_pylist() == [row["coordinate"] for row in rows]
    assert table["key"].to_pylist() == [row["key"] for row in rows]
    assert file.notes.is_balanced() and file.notes.is_whole and file.notes.rows == COUNT
    assert file.notes.mild["CRLF"] == (len(written.splitlines()) if end == "\r\n" else 0)


@pytest.mark.parametrize(("name", "spell"), [("a.jsonl", json_lines), ("a.csv", cells)])
def test_what_is_unusual_in_a_late_stretch_is_named_with_its_line_and_byte(tmp_path, name, spell):
    rows = events()
    lines = spell(rows).splitlines(keepends=True)
    torn = len(lines) - 20
    held = lines[torn]
    lines[torn] = b'{"coordinate": 1, "op\n' if name.endswith("jsonl") else b"1,insert\n"
    lines.insert(torn + 3, b"\n")
    file, table = table_of(tmp_path, name, b"".join(lines))
    notes = file.notes
    assert notes.rejected_lines == [torn + 1]
    assert notes.blemishes[0].offset == sum(map(len, lines[:torn]))
    assert (notes.ignored["blank"], notes.rows, notes.is_balanced()) == (1, COUNT - 1, True)
    at = torn - (0 if name.endswith("jsonl") else 1)
    assert table["payload_digest"].to_pylist() == digests_of([*rows[:at], *rows[at + 1 :]]), held


def test_a_row_of_several_lines_and_a_null_among_stretches_of_csv_are_read(tmp_path):
    rows = events()
    lines = cells(rows).splitlines(keepends=True)
    lines.insert(COUNT // 2, b'%d,insert,"","{\n""a"": 1}"\n' % (COUNT + 1))
    rows.insert(COUNT // 2 - 1, {"coordinate": COUNT + 1, "op": "insert", "key": "", "value": {"a": 1}})
    file, table = table_of(tmp_path, "a.csv", b"".join(lines))
    assert table["payload_digest"].to_pylist() == digests_of(rows)
    assert (file.notes.lines, file.notes.recognised) == (COUNT + 3, COUNT + 2) and file.notes.is_balanced()


@pytest.mark.parametrize(
    "line",
    [
        b'{"coordinate":1,"op":"insert","key":"k","value":{"a":1,"a":2}}\n',
        b'{"coordinate":1,"op":"insert","key":"k","value":{"a" :1}}\n',
        b'{"coordinate":1,"op":"insert","key":"k","value":1.50}\n',
        b'{"coordinate":1,"op":"insert","key":"k","value":18446744073709551616}\n',
        b'{"coordinate":1,"op":"insert","key":"k","value":"\\ud83d"}\n',
        b'{"coordinate":1,"op":"insert","key":7,"value":1}\n',
        b'{"coordinate":1,"op":"insert","key":"k","value":null,"value_text":"x"}\n',
        b'{"value":1,"key":"k","op":"insert","coordinate":1,"more":2}\n',
    ],
)
def test_a_line_the_stretch_cannot_vouch_for_is_read_as_if_it_stood_alone(tmp_path, line):
    _, alone = table_of(tmp_path, "alone.jsonl", line)
    _, among = table_of(tmp_path, "among.jsonl", json_lines(events(50)) + line)
    assert among["payload_digest"].to_pylist() == [*digests_of(events(50)), *alone["payload_digest"].to_pylist()]


def test_a_repeated_member_is_said_wherever_it_stands(tmp_path):
    line = b'{"coordinate":99,"op":"insert","key":"k","value":{"a":1,"a":2}}\n'
    file, _ = table_of(tmp_path, "a.jsonl", json_lines(events(50)) + line)
    assert file.notes.mild["repeated member"] == 1
    with pytest.raises(BadFile, match="line 51"):
        table_of(tmp_path, "b.jsonl", json_lines(events(50)) + line.replace(b'"op"', b'"key":"k","op"'))


def test_more_columns_of_the_product_are_read_with_their_stretch(tmp_path):
    rows = [
        {**event, "lane": "ab"[n % 2] if n % 3 else None, "event_id": f"e{n}", "head": n, "entry": n, "generation": 4}
        for n, event in enumerate(events(60))
    ]
    _, table = table_of(tmp_path, "a.jsonl", json_lines(rows))
    assert table["event_id"].to_pylist() == [f"e{n}" for n in range(60)]
    assert table["lane"].to_pylist() == [row["lane"] or "0" for row in rows]
    assert table["entry"].to_pylist() == list(range(60))
    assert table["payload_digest"].to_pylist() == digests_of(rows)
