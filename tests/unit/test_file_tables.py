"""Exports as CSV and Parquet: the same payloads as JSON lines, and what cannot serve is named."""

from __future__ import annotations

import csv
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recovery_api.domain.errors import BadFile
from tests.unit.exports import positions, read, written
from workers.evidence import schemas
from workers.evidence.canonical import content_digest, payload_digest


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
