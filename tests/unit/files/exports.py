"""Exports as tests write them, and what is read of them."""

from __future__ import annotations

import csv
import json

from workers.evidence import schemas
from workers.evidence.files import SpellingSigns, events_read

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


def csv_written(tmp_path, rows, end="\n", name="history.csv"):
    path = tmp_path / name
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=end).writerows(rows)
    return path


HEADER = ["coordinate", "op", "key", "value", "head"]
