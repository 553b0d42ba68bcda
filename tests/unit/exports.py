"""Small exports, written and read back."""

from __future__ import annotations

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
