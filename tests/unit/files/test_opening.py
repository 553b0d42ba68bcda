"""Files as they are kept: compressed, in UTF-16, as a list, in folders as Spark writes them."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recovery_api.domain.errors import BadFile
from tests.unit.files.exports import judged, line, positions, read, written

WHOLE = b"".join(line(n, value={"é": n}) + b"\n" for n in range(1, 400))


def _zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("pack", [gzip.compress, _zstd, lambda content: content.decode().encode("utf-16")])
def test_a_packed_file_holds_what_the_plain_one_holds(tmp_path, pack):
    plain = read(written(tmp_path, WHOLE))[1]
    file, table = read(written(tmp_path, pack(WHOLE), "packed.jsonl"))
    assert table.equals(plain)
    assert file.notes.is_whole and file.notes.lines == 399


@pytest.mark.parametrize("pack", [gzip.compress, _zstd])
def test_a_compressed_stream_that_breaks_off_is_not_whole(tmp_path, pack):
    packed = pack(b"".join(line(n, value=f"{n * 7919 % 1000003}") + b"\n" for n in range(60000)))
    file, table = read(written(tmp_path, packed[: len(packed) * 2 // 3], "packed.jsonl"))
    assert 0 < table.num_rows < 60000
    assert not file.notes.is_whole
    assert "breaks off" in " ".join(file.notes.unread())


def test_utf_16_without_a_mark_is_seen(tmp_path):
    text = WHOLE.decode()
    for encoding in ("utf-16-le", "utf-16-be"):
        assert read(written(tmp_path, text.encode(encoding)))[1].num_rows == 399


EVENTS = [{"coordinate": n, "op": "insert", "key": "k", "value": {"t": "a,]}[" * n, "n": 1.50}} for n in (1, 2, 3)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("end", ["", "\n\n"])
def test_a_json_list_is_read_however_it_is_laid_out(tmp_path, indent, end):
    lines = written(tmp_path, "".join(json.dumps(event) + "\n" for event in EVENTS), "a.jsonl")
    listed = written(tmp_path, json.dumps(EVENTS, indent=indent) + end, "a.json")
    file, table = read(listed)
    assert table.equals(read(lines)[1])
    assert (file.notes.unit, file.notes.lines, file.notes.recognised) == ("element", 3, 3)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (json.dumps(EVENTS)[:-1], "no end"),
        (json.dumps(EVENTS)[:-40], "nothing was read"),
        (json.dumps(EVENTS) + "x", "neither in a list"),
        (json.dumps(EVENTS[:2])[:-1] + ', {"coordinate": 3, oops}, ' + json.dumps(EVENTS[2]) + "]", "nothing was read"),
    ],
)
def test_a_json_list_that_is_torn_is_not_whole(tmp_path, content, says):
    file, table = read(written(tmp_path, content, "a.json"))
    assert table.num_rows >= 2 and not file.notes.is_whole and file.notes.is_balanced()
    assert says in " ".join(file.notes.unread())


def test_a_large_json_list_is_read_in_pieces(tmp_path):
    events = [{"coordinate": n, "op": "insert", "key": "é" * 50, "value": "x" * 5000} for n in range(300)]
    events.append({"coordinate": 300, "op": "insert", "key": "k", "value": "y" * 3_000_000})
    assert positions(read(written(tmp_path, json.dumps(events, ensure_ascii=False), "a.json"))[1]) == list(range(301))


def sparks(folder, is_done=True, parts=2):
    folder.mkdir(parents=True)
    for part in range(parts):
        place = folder / f"part-{part:05}-c0ffee.snappy.parquet"
        rows = [{"coordinate": 2 * part + n, "op": "insert", "key": b"k", "value": '{"n": 1}'} for n in (0, 1)]
        table = pa.Table.from_pylist(rows)
        encoded = table.set_column(1, "op", table["op"].dictionary_encode())
        pq.write_table(encoded, place)
        (folder / f".{place.name}.crc").write_bytes(b"crc")
    if is_done:
        (folder / "_SUCCESS").write_bytes(b"")
    return folder


def test_a_folder_as_spark_writes_it_is_one_file(tmp_path):
    file, table = read(sparks(tmp_path / "history"))
    assert positions(table) == [0, 1, 2, 3]
    assert table["entry"].to_pylist() == [0, 1, 2, 3]
    assert table["op"].to_pylist() == ["insert"] * 4 and table["key"].to_pylist() == ["k"] * 4
    assert (file.notes.lines, file.notes.rows, file.notes.is_whole) == (4, 4, True)


def test_a_folder_that_spark_did_not_finish_is_unknown(tmp_path):
    folder = sparks(tmp_path / "history", is_done=False)
    code, answer, page, _ = judged(tmp_path, folder, folder, "--frontier=3")
    assert (code, answer["sink_delta"]) == (3, []) and "no _SUCCESS" in page


def test_a_folder_of_json_lines_is_read_part_by_part_and_names_the_part_that_is_torn(tmp_path):
    folder = tmp_path / "history"
    folder.mkdir()
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(line(1) + b"\n"))
    (folder / "b.jsonl").write_bytes(line(2) + b"\n" + line(3)[:20])
    file, table = read(folder)
    assert positions(table) == [1, 2]
    assert "history/b.jsonl: unfinished tail" in " ".join(file.notes.unread())
    assert (file.notes.lines, file.notes.rejected) == (3, 1)


def test_folders_that_cannot_serve_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadFile, match="without a file"):
        read(tmp_path / "empty")
    mixed = sparks(tmp_path / "mixed")
    (mixed / "more.csv").write_text("coordinate,op,key,value\n")
    with pytest.raises(BadFile, match="several kinds"):
        read(mixed)
