"""Exports as tests write them, and what is read of them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from django.core.management import call_command

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


SAMPLES = Path(__file__).parent / "samples"
"""Records as connectors wrote them to their topics, one a line with topic, partition, offset, headers, key and value."""


def judged(tmp_path, history, accepted, *arguments, names=("history.jsonl", "accepted.jsonl")):
    """(exit code, the printed object, the page, what it rests on). Contents are bytes, text, a path, or rows for JSON lines."""
    paths = []
    for end, content, name in zip(("history", "accepted"), (history, accepted), names, strict=True):
        path = content if isinstance(content, Path) else tmp_path / name
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        if not isinstance(content, Path):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths.append(f"--{end}={path}")
    answers = []
    for more in (("--json",), ()):
        out, err = io.StringIO(), io.StringIO()
        try:
            call_command("judge", *paths, *arguments, *more, stdout=out, stderr=err)
        except SystemExit as exit_:
            code = exit_.code
        else:
            code = 0
        answers.append((code, out.getvalue(), err.getvalue()))
    (code, printed, rests), (again, page, _) = answers
    assert code == again
    return code, json.loads(printed), page, rests
