"""Exports read as evidence: what is read, what is mended, what is named, what is refused."""

from __future__ import annotations

import csv
import json
import tracemalloc
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import BadCoordinate, BadFile, BadInput
from workers.evidence import schemas
from workers.evidence.canonical import ABSENT, content_digest, payload_digest
from workers.evidence.files import SpellingSigns, base_read, coordinates_read, event_at, events_read, keys_read

EVENT = {"op": "insert", "key": "k", "value": 1}


def line(coordinate, **more):
    return json.dumps({"coordinate": coordinate, **EVENT, **more}).encode()


def read(path, spelling=None, schema=schemas.HISTORY):
    signs = SpellingSigns()
    file = events_read(path, signs)
    return file, file.table(spelling or signs.decide(), schema)


def written(tmp_path, content, name="history.jsonl"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def positions(table):
    return table["position"].to_pylist()


def test_torn_tail_and_glued_record_are_named_and_never_silently_missing(tmp_path):
    """RC-36: 1, 4 and 5 are read; lines 2 and 5 are named by byte, 3 with the line it is glued into."""
    second = line(2)[:30]
    lines = [line(1) + b"\n", second + line(3) + b"\n", b"\0" * 64 + line(4) + b"\n", line(5) + b"\n", line(6)[:15]]
    file, table = read(written(tmp_path, b"".join(lines)))
    assert positions(table) == [1, 4, 5]
    offsets = [sum(map(len, lines[:number])) for number in range(5)]
    found = {(blemish.kind, blemish.line, blemish.offset): blemish.says for blemish in file.notes.blemishes}
    assert set(found) == {
        ("torn record", 2, offsets[1]),
        ("NUL run", 3, offsets[2]),
        ("unfinished tail", 5, offsets[4]),
    }
    assert f"coordinate 3, glued to it at byte {offsets[1] + len(second)}" in found["torn record", 2, offsets[1]]
    assert not file.notes.is_whole
    assert "and no more" in file.notes.unread()[-1]


def test_byte_order_mark_crlf_and_blank_lines_are_mended_and_said(tmp_path):
    """RC-36."""
    content = b"\xef\xbb\xbf" + line(1) + b"\r\n\r\n   \n" + line(2) + b"\r\n" + line(3)
    file, table = read(written(tmp_path, content))
    assert positions(table) == [1, 2, 3]
    assert file.notes.is_whole
    assert set(file.notes.mild) == {"byte order mark", "CRLF", "blank line"}


def test_a_cut_inside_a_character_is_named_with_its_byte(tmp_path):
    """RC-36."""
    whole = json.dumps({"coordinate": 2, **EVENT, "value": "é"}, ensure_ascii=False).encode()
    at = whole.index("é".encode()) + 1
    file, table = read(written(tmp_path, line(1) + b"\n" + whole[:at] + b'"}\n' + line(3) + b"\n" + whole[:at]))
    assert positions(table) == [1, 3]
    assert [(b.kind, b.line) for b in file.notes.blemishes] == [("cut character", 2), ("unfinished tail", 4)]
    assert file.notes.blemishes[0].offset == len(line(1)) + 1 + at - 1


def test_whole_records_on_one_line_are_each_read(tmp_path):
    file, table = read(written(tmp_path, line(1) + line(2) + b"  " + line(3) + b"\n"))
    assert positions(table) == [1, 2, 3]
    assert file.notes.mild["glued records"] == 1


def test_nothing_readable_cannot_serve(tmp_path):
    for content in (b"not a record\n", b"\0" * 4096, line(1)[:20], b'{"coordinate": 1\n'):
        with pytest.raises(BadFile):
            read(written(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"coordinate":1,"op":"insert","key":"k","value":1,"op":"delete"}\n', "repeated"),
        (b'{"coordinate":null,"op":"insert","key":"k","value":1}\n', "coordinate is null"),
        (b'{"op":"insert","key":"k","value":1}\n', "coordinate is missing"),
        (b'{"coordinate":1,"op":"insert","value":1}\n', "key is missing"),
        (b'{"coordinate":1,"op":"upsert","key":"k","value":1}\n', "op 'upsert'"),
        (b'{"coordinate":1,"op":"insert","key":["k"],"value":1}\n', "key"),
        (b'{"coordinate":1,"op":"insert","key":"k"}\n', "neither value nor digest"),
        (b'{"coordinate":1,"op":"insert","key":"k","value":NaN}\n', "NaN"),
        (b'{"coordinate":1,"op":"insert","key":"k","value":1e200000}\n', "digits"),
        (b'{"coordinate":1,"op":"insert","key":"k","digest":5}\n', "digest"),
        (b'{"coordinate":1,"op":"insert","key":"k","value":1,"generation":"x"}\n', "generation"),
        (b'[{"coordinate":1}]\n', "not a record"),
        (b"\xff\xfe{\0\n", "UTF-16"),
    ],
)
def test_records_that_cannot_serve_are_refused_with_their_line(tmp_path, content, says):
    with pytest.raises(BadFile, match=says):
        read(written(tmp_path, content))


@pytest.mark.parametrize("text", ["A", "A/", "G/1", "A/1/2", "-A/10", "1.5", "", "7001:", "12 34", "0x10", "１２"])
def test_malformed_coordinates_are_refused(tmp_path, text):
    """RC-11."""
    with pytest.raises(BadCoordinate):
        read(written(tmp_path, line(text) + b"\n"))


@pytest.mark.parametrize("number", ["1.0", "1e3", "18446744073709551616", "-9223372036854775809", "true"])
def test_numbers_that_are_no_coordinate_are_refused(tmp_path, number):
    content = f'{{"coordinate":{number},"op":"insert","key":"k","value":1}}\n'
    with pytest.raises(BadCoordinate):
        read(written(tmp_path, content))


def test_four_spellings_of_a_log_position_are_one_coordinate(tmp_path):
    """RC-11: FF/FFFFFFFF and 100/0 are one apart; 9/FFFFFF00 < A/10."""
    spelled = ["FF/FFFFFFFF", "100/0", "9/FFFFFF00", "A/10", "a/10", "A/00000010", 42949672976, "42949672976"]
    _, table = read(written(tmp_path, b"".join(line(text) + b"\n" for text in spelled)))
    held = positions(table)
    assert held[1] - held[0] == 1
    assert held[2] < held[3]
    assert len(set(held[3:])) == 1


def test_spelling_is_decided_over_all_files_never_per_value(tmp_path):
    signs = SpellingSigns()
    history = events_read(written(tmp_path, line("A/10") + b"\n"), signs)
    accepted = events_read(written(tmp_path, line(42949672976) + b"\n", "accepted.jsonl"), signs)
    spelling = signs.decide()
    assert spelling is Spelling.PG_LSN
    assert positions(history.table(spelling, schemas.HISTORY)) == positions(accepted.table(spelling, schemas.ACCEPTED))


def test_unsigned_coordinates_turned_negative_meet_when_declared_and_are_ambiguous_when_not(tmp_path):
    """RC-18: 5 < 2^63-1 < 2^63 < 2^64-1, and zero; undeclared, the sign is ambiguous."""
    unsigned = [5, 9223372036854775807, 9223372036854775808, 18446744073709551615, 0]
    signed = [5, 9223372036854775807, -9223372036854775808, -1, 0]
    first = written(tmp_path, b"".join(line(n) + b"\n" for n in unsigned))
    second = written(tmp_path, b"".join(line(n) + b"\n" for n in signed), "accepted.jsonl")
    held = [positions(read(path, Spelling.UNSIGNED)[1]) for path in (first, second)]
    assert held[0] == held[1]
    assert held[0][4] < held[0][0] < held[0][1] < held[0][2] < held[0][3]
    signs = SpellingSigns()
    events_read(first, signs)
    events_read(second, signs)
    with pytest.raises(BadInput, match="sign is ambiguous"):
        signs.decide()
    _, table = read(second)
    assert positions(table) == signed  # alone, a signed negative and zero are what they say
    alone = SpellingSigns()
    events_read(second, alone)
    assert alone.weaknesses()


def test_pairs_keep_both_halves_and_do_not_mix(tmp_path):
    _, table = read(written(tmp_path, line("7001:42") + b"\n" + line("7001:-1") + b"\n"))
    assert table["ordinal"].to_pylist() == [42, -1]
    assert table["position"][0].as_py() == 7001 - 2**63
    with pytest.raises(BadInput, match="mixed"):
        read(written(tmp_path, line("7001:42") + b"\n" + line(7) + b"\n"))


def test_numbers_stay_exact_and_extremes_are_coordinates(tmp_path):
    numbers = "[9007199254740993, 0.1234567890123456789, 12345678901234567890, 1.50]"
    content = f'{{"coordinate":-9223372036854775808,"op":"insert","key":"k","value":{numbers}}}\n'
    path = written(tmp_path, content.encode() + line(9223372036854775807) + b"\n")
    _, table = read(path)
    assert positions(table) == [-(2**63), 2**63 - 1]
    exact = [9007199254740993, Decimal("0.1234567890123456789"), 12345678901234567890, Decimal("1.5")]
    assert table["payload_digest"][0].as_py() == payload_digest("insert", "k", content_digest(exact))
    assert event_at(path, {0})[0]["value"][1] == "0.1234567890123456789"


def test_nul_and_lone_surrogates_are_contents_like_any_other(tmp_path):
    texts = [r'"a\u0000b"', r'"ab"', r'"\ud83d"', r'"\\ud83d"', r'"caf\u00e9 \ud83d\ude80"', '"café 🚀"']
    events = "".join(
        f'{{"coordinate":{place},"op":"insert","key":"\\udc00{place % 2}","value":{text}}}\n'
        for place, text in enumerate(texts)
    )
    file, table = read(written(tmp_path, events))
    assert file.notes.is_whole
    plain = [payload_digest("insert", "\udc000", content_digest(v)) for v in ("a\0b", "\ud83d", "café 🚀")]
    assert [table["payload_digest"][place].as_py() for place in (0, 2, 4)] == plain
    assert len({table["payload_digest"][place].as_py() for place in range(5)}) == 5


def test_null_missing_and_empty_content_are_three(tmp_path):
    rows = [{"value": None}, {}, {"value": ""}]
    content = "".join(json.dumps({"coordinate": 1, "op": "update", "key": None, **row}) + "\n" for row in rows)
    _, table = read(written(tmp_path, content))
    expected = [payload_digest("update", None, content_digest(value)) for value in (None, ABSENT, "")]
    assert table["payload_digest"].to_pylist() == expected
    assert table["key"].null_count == 3


def test_a_payload_of_24_mib_is_read_with_bounded_memory(tmp_path):
    path = tmp_path / "history.jsonl"
    with path.open("w") as file:
        for coordinate in range(3):
            text = "x" * (24 << 20)
            file.write(f'{{"coordinate":{coordinate},"op":"insert","key":"k","value":"{text}"}}\n')
    tracemalloc.start()
    try:
        _, table = read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert positions(table) == [0, 1, 2]
    assert peak < 12 * (24 << 20)


def csv_written(tmp_path, rows, end="\n", name="history.csv"):
    path = tmp_path / name
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=end).writerows(rows)
    return path


HEADER = ["coordinate", "op", "key", "value", "head"]


def test_csv_values_are_json_and_empty_cells_are_null(tmp_path):
    rows = [[1, "insert", "a,b", '{"n": 1.0,\n"t": "x"}', ""], [2, "update", "", '""', 7], [3, "update", "k", "", ""]]
    for end in ("\n", "\r\n"):
        file, table = read(csv_written(tmp_path, [HEADER, *rows], end), schema=schemas.ACCEPTED)
        assert file.notes.is_whole
        assert table["head_position"].to_pylist() == [None, 7, None]
        contents = [("insert", "a,b", {"n": 1, "t": "x"}), ("update", None, ""), ("update", "k", None)]
        assert table["payload_digest"].to_pylist() == [payload_digest(o, k, content_digest(v)) for o, k, v in contents]


def test_csv_plain_text_has_a_column_of_its_own(tmp_path):
    with pytest.raises(BadFile, match="value_text"):
        read(csv_written(tmp_path, [HEADER, [1, "insert", "k", "shipped", ""]]))
    _, table = read(csv_written(tmp_path, [["coordinate", "op", "key", "value_text"], [1, "insert", "k", "1"]]))
    assert table["payload_digest"][0].as_py() == payload_digest("insert", "k", content_digest("1"))


@pytest.mark.parametrize(
    ("tail", "kind"),
    [("3,insert,k", "unfinished tail"), ("3,insert,k,1,12", "unfinished tail"), ('3,insert,k,"{', "unfinished tail")],
)
def test_csv_with_a_torn_last_line_reads_what_precedes_it_and_says_so(tmp_path, tail, kind):
    path = csv_written(tmp_path, [HEADER, [1, "insert", "k", "1", ""], [2, "insert", "k", "1", ""]])
    path.write_text(path.read_text() + tail)
    file, table = read(path)
    assert positions(table) == [1, 2]
    assert [(b.kind, b.line) for b in file.notes.blemishes] == [(kind, 4)]


def test_csv_rows_of_another_width_and_stray_bytes_are_named(tmp_path):
    path = tmp_path / "history.csv"
    body = b"coordinate,op,key,value\n1,insert,k,1\n2,insert,k\n3,insert,k,1,5\n4,insert,\xff,1\n" + b"\0" * 8
    path.write_bytes(body + b'5,insert,k,1\n6,insert,k,"1"x\n7,insert,k,1\n')
    file, table = read(path)
    assert positions(table) == [1, 5, 7]
    kinds = [(b.kind, b.line) for b in file.notes.blemishes]
    assert kinds == [("torn record", 3), ("torn record", 4), ("cut character", 5), ("NUL run", 6), ("torn record", 7)]


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (["coordinate", "op", "key", "value", "op"], "op is repeated"),
        (["coordinate", "key", "value"], "op is missing"),
        (["id", "op", "key", "value"], "coordinate is missing"),
    ],
)
def test_csv_headers_that_cannot_serve_are_refused(tmp_path, header, says):
    with pytest.raises(BadFile, match=says):
        read(csv_written(tmp_path, [header, ["1"] * len(header)]))


def test_an_empty_csv_has_no_header_and_an_empty_json_lines_file_is_empty(tmp_path):
    with pytest.raises(BadFile, match="header"):
        read(written(tmp_path, b"", "history.csv"))
    _, table = read(written(tmp_path, b""))
    assert table.num_rows == 0


def test_parquet_gives_the_same_payloads_as_json_lines(tmp_path):
    rows = [
        {"coordinate": 1, "op": "insert", "key": "a", "value": '{"n": 1.0}', "note": "x"},
        {"coordinate": 2, "op": "delete", "key": None, "value": None, "note": "y"},
    ]
    path = tmp_path / "history.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    file, table = read(path)
    expected = [
        payload_digest("insert", "a", content_digest({"n": 1})),
        payload_digest("delete", None, content_digest(None)),
    ]
    assert table["payload_digest"].to_pylist() == expected
    assert "note" in file.notes.mended()[0]


def test_parquet_numbers_lists_and_structs_are_contents(tmp_path):
    for values, expected in (
        ([1, 2**62], [1, 2**62]),
        ([1.5, 0.1], [Decimal("1.5"), Decimal("0.1")]),
        ([Decimal("1.50"), Decimal("2.00")], [Decimal("1.5"), 2]),
        ([[1, 2], []], [[1, 2], []]),
        ([{"b": 1, "a": "x"}, {"b": None, "a": "y"}], [{"a": "x", "b": 1}, {"a": "y", "b": None}]),
    ):
        path = tmp_path / "history.parquet"
        columns = {"coordinate": [1, 2], "op": ["insert"] * 2, "key": ["k"] * 2, "value": values}
        pq.write_table(pa.table(columns), path)
        _, table = read(path)
        digests = [payload_digest("insert", "k", content_digest(value)) for value in expected]
        assert table["payload_digest"].to_pylist() == digests


def test_parquet_that_cannot_serve_is_refused(tmp_path):
    path = tmp_path / "history.parquet"
    names = ["coordinate", "op", "key", "value"]
    for columns, column_names, says in (
        ([[1.5], ["insert"], ["k"], ["1"]], names, "type double"),
        ([[1], ["insert"], ["k"], [b"1"]], names, "type binary"),
        ([[1], ["insert"], ["k"], [float("nan")]], names, "nan"),
        ([[1], ["insert"], ["k"], ["{"]], names, "not JSON"),
        ([[1], ["insert"], ["k"], ["1"]], ["coordinate", "op", "key", "key"], "repeated"),
        ([[None], ["insert"], ["k"], ["1"]], names, "coordinate is null"),
    ):
        pq.write_table(pa.table([pa.array(column) for column in columns], names=column_names), path)
        with pytest.raises(BadFile, match=says):
            read(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadFile, match="not a whole Parquet"):
        read(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadFile, match=r"nowhere\.jsonl"):
        read(tmp_path / "nowhere.jsonl")


def test_committed_order_comes_from_entry_or_from_the_file(tmp_path):
    _, table = read(written(tmp_path, line(1, entry=9) + b"\n" + line(2, entry=4) + b"\n"))
    assert table["entry"].to_pylist() == [9, 4]
    _, table = read(written(tmp_path, line(1, entry=9) + b"\n" + line(2, entry=4) + b"\n"), schema=schemas.ACCEPTED)
    assert table["entry"].to_pylist() == [0, 1]


def test_omissions_keys_and_base_read_from_their_small_files(tmp_path):
    for content, name, expected in (
        ('[2, "A/10"]', "o.json", ["2", "A/10"]),
        ('2\n{"coordinate": 5, "reason": "T-12"}\n', "o.jsonl", ["2", "5"]),
        ("coordinate,reason\n7001:42,x\n", "o.csv", ["7001:42"]),
        ("A/10\n16/B374D848\n", "o.txt", ["A/10", "16/B374D848"]),
        ("", "o.jsonl", []),
    ):
        assert coordinates_read(written(tmp_path, content, name)) == expected
    assert keys_read(written(tmp_path, "a\nkey with, comma\n", "keys")) == ["a", "key with, comma"]
    assert keys_read(written(tmp_path, '["a", "b\\nc"]', "keys")) == ["a", "b\nc"]
    assert keys_read(written(tmp_path, "", "keys")) == []
    assert base_read(written(tmp_path, '{"k": 1.50}', "base.json")) == {"k": "1.50"}
    for reader, content in ((coordinates_read, "{}"), (base_read, "[1]"), (keys_read, "[1]"), (base_read, "{")):
        with pytest.raises(BadFile):
            reader(written(tmp_path, content, "bad"))


@pytest.mark.parametrize("op", ["insert", "update", "delete"])
@pytest.mark.parametrize(
    ("key", "value", "cells"),
    [
        (None, {"a": 1}, ',"{""a"": 1}"'),
        ("", {"a": 1}, '"","{""a"": 1}"'),
        ("k", None, "k,"),
        ("k", None, "k,null"),
        ("k", "", 'k,""""""'),
        (None, None, ","),
        ('a,"b', 7, '"a,""b",7'),
    ],
)
def test_t15_one_fact_has_one_digest_in_every_format(tmp_path, op, key, value, cells):
    row = {"coordinate": 1, "op": op, "key": key, "value": value}
    digests = []
    digests += read(written(tmp_path, json.dumps(row) + "\n", "a.jsonl"))[1]["payload_digest"].to_pylist()
    digests += read(written(tmp_path, f"coordinate,op,key,value\n1,{op},{cells}\n", "a.csv"))[1][
        "payload_digest"
    ].to_pylist()
    for kind in (pa.string(), pa.large_string()):
        text = None if value is None else json.dumps(value)
        columns = {"coordinate": [1], "op": [op], "key": pa.array([key], kind), "value": pa.array([text], kind)}
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        digests += read(tmp_path / "a.parquet")[1]["payload_digest"].to_pylist()
    assert len(digests) == 4 and set(digests) == {payload_digest(op, key, content_digest(value, op))}


def test_t15_plain_text_that_is_null_and_that_is_empty_are_two_in_csv_as_in_json(tmp_path):
    rows = [{"coordinate": n, "op": "insert", "key": "k", "value_text": text} for n, text in ((1, None), (2, ""))]
    lines = written(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "a.jsonl")
    cells = written(tmp_path, 'coordinate,op,key,value_text\n1,insert,k,\n2,insert,k,""\n', "a.csv")
    first, second = (read(path)[1]["payload_digest"].to_pylist() for path in (lines, cells))
    assert first == second and len(set(first)) == 2
