"""Parquet read as evidence."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recovery_api.domain.errors import BadFile
from tests.unit.files.exports import read
from workers.evidence.canonical import content_digest, payload_digest


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
        ([[1], ["insert"], ["k"], [b"\xff"]], names, "no UTF-8"),
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
