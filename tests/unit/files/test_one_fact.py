"""One fact has one digest in every format."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.files.exports import read, written
from workers.evidence.canonical import content_digest, payload_digest


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
