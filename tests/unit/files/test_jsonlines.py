"""JSON lines read as evidence: what is read, what is mended, what is named, what is refused."""

from __future__ import annotations

import json
import tracemalloc
from decimal import Decimal

import pytest

from recovery_api.domain.errors import BadFile
from tests.unit.files.exports import EVENT, line, positions, read, written
from workers.evidence import schemas
from workers.evidence.canonical import ABSENT, content_digest, payload_digest
from workers.evidence.files import event_at


def test_rc_36_torn_tail_and_glued_record_are_named_and_never_silently_missing(tmp_path):
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
    assert set(file.notes.mild) == {"byte order mark", "CRLF"}
    assert (file.notes.lines, file.notes.recognised, file.notes.ignored["blank"]) == (5, 3, 2)


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
        (b'[{"coordinate":1}]\n', "op is missing"),
        (b"[1]\n", "not a record"),
        (b"5\n", "not a record"),
    ],
)
def test_records_that_cannot_serve_are_refused_with_their_line(tmp_path, content, says):
    with pytest.raises(BadFile, match=says):
        read(written(tmp_path, content))


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


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadFile, match=r"nowhere\.jsonl"):
        read(tmp_path / "nowhere.jsonl")


def test_committed_order_comes_from_entry_or_from_the_file(tmp_path):
    _, table = read(written(tmp_path, line(1, entry=9) + b"\n" + line(2, entry=4) + b"\n"))
    assert table["entry"].to_pylist() == [9, 4]
    _, table = read(written(tmp_path, line(1, entry=9) + b"\n" + line(2, entry=4) + b"\n"), schema=schemas.ACCEPTED)
    assert table["entry"].to_pylist() == [0, 1]
