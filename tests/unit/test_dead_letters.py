"""A dead-letter export is read line by line, and every line is accounted for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.coordinates import Coordinate, Spelling
from recovery_api.domain.dead_letters import Payload, export_read, payload_of
from recovery_api.domain.errors import BadInput


def test_columns_are_found_by_name_and_unknown_ones_are_ignored_and_named() -> None:
    found = export_read("Error, Event_ID ,Position,Topic\nboom,e-1,41,mail\n", Spelling.BIGINT)
    (one,) = found.named
    assert (one.line, one.lane, one.coordinate, one.event_id) == (2, "0", Coordinate(41), "e-1")
    assert found.unknown_columns == ["Error", "Topic"] and found.columns == ["position", "eventid"]


def test_json_lines_name_events_by_coordinate_or_by_id() -> None:
    lines = ['{"coordinate": "7001:42", "why": 1}', '{"message-id": "m1", "lane": "a"}', "", '{"id": 9007199254740993}']
    found = export_read("\n".join(lines) + "\n", Spelling.XID8_BIGINT)
    assert [(one.line, one.lane, one.event_id) for one in found.named] == [(1, "0", ""), (2, "a", "m1")]
    assert found.ignored == [3] and found.lines_read == 4
    assert [line for line, _ in found.rejected] == [4] and "7001:42" in found.rejected[0][1]


def test_wide_numbers_are_never_rounded() -> None:
    found = export_read('{"id": 9007199254740993}', Spelling.BIGINT)
    assert found.named[0].coordinate == Coordinate(9007199254740993)


def test_doubles_are_counted_once() -> None:
    found = export_read("id\n7\n8\n07\n7\n", Spelling.BIGINT)
    assert [one.line for one in found.named] == [2, 3]
    assert (found.ignored, found.repeated_count, found.lines_read) == ([4, 5], 2, 4)


def test_lines_that_cannot_be_used_are_rejected_with_their_numbers() -> None:
    text = 'id,event_id\n7,\nforty,\n,\n"8",a,b\n9,\x00\n,e1\n'
    found = export_read(text, Spelling.BIGINT)
    assert [one.line for one in found.named] == [2, 7]
    assert [line for line, _ in found.rejected] == [3, 5, 6] and found.ignored == [4]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("why,when\nx,y\n", "no column that names an event (columns: why, when)"),
        ('{"why": "x"}\n', "no column that names an event"),
        ("id,ID\n1,2\n", "has the column 'id' twice"),
        ('id\n"7\n', "cannot be read as CSV"),
    ],
)
def test_an_export_that_names_no_event_is_refused_as_a_whole(text: str, says: str) -> None:
    with pytest.raises(BadInput, match="content") as refused:
        export_read(text, Spelling.BIGINT)
    assert says in str(refused.value)


CELLS = st.sampled_from(["7", "8", "", "x", " 9 ", "-1", "9223372036854775808", "e", "\ud800", "\x00"])


@given(st.lists(st.tuples(CELLS, CELLS, st.sampled_from(["", "a", "0"]))), st.booleans())
def test_recognised_ignored_and_rejected_add_up_to_what_was_read(
    rows: list[tuple[str, str, str]], is_json: bool
) -> None:
    if is_json:
        text = "\n".join(json.dumps({"id": a, "event_id": b, "lane": c}) for a, b, c in rows)
        text = '{"id": "1"}\n' + text
    else:
        text = "id,event_id,lane\n" + "".join(f"{','.join(row)}\n" for row in rows)
    found = export_read(text, Spelling.BIGINT)
    numbers = [one.line for one in found.named] + found.ignored + [line for line, _ in found.rejected]
    assert len(numbers) == len(set(numbers)) == found.lines_read


def test_a_line_without_coordinate_and_id_names_its_event_by_key_and_content() -> None:
    lines = [
        '{"key": "k", "value": {"n": 1.50, "big": 9007199254740993, "t": [true, null]}}',
        '{"key": null, "value": "{}", "op": "update"}',
        '{"key": 7, "content": null, "id": ""}',
        '{"value": 1}',
        '{"key": "k", "value": NaN}',
        '{"key": ["k"], "value": 1}',
        '{"key": "k", "value": 1, "op": "merge"}',
    ]
    found = export_read("\n".join(lines), Spelling.BIGINT)
    assert [one.payload for one in found.named] == [
        Payload("k", '{"n": 1.50, "big": 9007199254740993, "t": [true, null]}'),
        Payload(None, '"{}"', "update"),
        Payload("7", "null"),
    ]
    assert [line for line, _ in found.rejected] == [4, 5, 6, 7] and found.unknown_columns == []
    for one in found.named:
        assert one.payload is not None and payload_of(one.payload.as_text()) == one.payload


def test_a_coordinate_or_an_id_shows_more_than_a_content() -> None:
    found = export_read("id,event_id,key,content\n7,,k,1\n,e,k,1\n,,k,1\n,,k,1\n,,,\n,,,1\n", Spelling.BIGINT)
    assert [(one.coordinate is not None, one.event_id, one.payload is not None) for one in found.named] == [
        (True, "", False),
        (False, "e", False),
        (False, "", True),
        (False, "", True),
    ]
    assert (found.repeated_count, found.ignored, found.rejected) == (1, [5, 6], [])


def test_a_text_may_be_a_content_and_an_empty_cell_may_be_null() -> None:
    assert list(Payload("k", '"[1]"', "insert", is_cell=True).readings) == [
        ("insert", "k", '"[1]"'),
        ("insert", "k", "[1]"),
    ]
    empty = Payload("", '""', "delete", is_cell=True)
    assert {content for _, _, content in empty.readings} == {'""', "null", None}
    assert {key for _, key, _ in empty.readings} == {None, ""}
    assert {op for op, _, _ in Payload("k", "1").readings} == {"insert", "update", "delete"}
