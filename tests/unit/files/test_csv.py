"""CSV read as evidence."""

from __future__ import annotations

import json

import pytest

from recovery_api.domain.errors import BadFile
from tests.unit.files.exports import HEADER, csv_written, positions, read, written
from workers.evidence import schemas
from workers.evidence.canonical import content_digest, payload_digest
from workers.evidence.files import event_at


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


def test_t15_plain_text_that_is_null_and_that_is_empty_are_two_in_csv_as_in_json(tmp_path):
    rows = [{"coordinate": n, "op": "insert", "key": "k", "value_text": text} for n, text in ((1, None), (2, ""))]
    lines = written(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "a.jsonl")
    cells = written(tmp_path, 'coordinate,op,key,value_text\n1,insert,k,\n2,insert,k,""\n', "a.csv")
    first, second = (read(path)[1]["payload_digest"].to_pylist() for path in (lines, cells))
    assert first == second and len(set(first)) == 2


def test_events_of_a_large_file_are_shown_without_reading_the_others(tmp_path):
    rows = [[n, "insert", "k", f'{{"n": {n}.50}}', ""] for n in range(5000)]
    for name, header in (("a.csv", [HEADER]), ("quoted.csv", [HEADER, [0, "insert", "a\nb", '"two lines"', ""]])):
        path = csv_written(tmp_path, [*header, *rows], name=name)
        file, _ = read(path)
        shift = len(header) - 1
        places = {0 + shift, 17 + shift, 4999 + shift}
        found = event_at(path, places, is_plain=file.is_plain, header_lines=file.header_lines)
        assert {place: event["value"] for place, event in found.items()} == {
            n + shift: {"n": f"{n}.50"} for n in (0, 17, 4999)
        }
        assert file.header_lines == (1 if name == "a.csv" else None)
