"""The floor for connectors: what every kind's rows become."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Unsuitable
from workers.connectors import rows
from workers.connectors.readings import CoordinateRange, Width
from workers.evidence import schemas
from workers.evidence.canonical import content_digest, payload_digest

GIVEN = [
    {
        "lane": lane,
        "position": position,
        "ordinal": 0,
        "event_id": None,
        "op": "insert",
        "key": "k",
        "content": '{"a": 1}',
    }
    for lane, position in (("a", 3), ("a", 1), ("b", 2))
]


def table_of(entries: Iterable[Any]) -> pa.Table:
    return pa.Table.from_pylist([dict(entry) for entry in entries], schema=schemas.HISTORY)


def test_rows_become_history_with_the_canonical_digest():
    table = table_of(map(rows.entry_make, GIVEN))
    assert table.schema == schemas.HISTORY
    assert set(table["payload_digest"].to_pylist()) == {
        payload_digest("insert", "k", content_digest({"a": 1}, "insert"))
    }


def test_content_that_is_not_json_names_its_coordinate():
    bad = {**GIVEN[0], "content": "{"}
    assert not rows.is_held(bad)
    with pytest.raises(Unsuitable, match="a:3:0"):
        rows.entry_make(bad)


def test_one_digest_of_rows_and_of_their_table_in_any_order():
    entries = [rows.entry_make(row) for row in GIVEN]
    assert rows.rows_digest(entries) == rows.table_digest(table_of(reversed(entries)))
    assert rows.rows_digest([]) == rows.table_digest(schemas.HISTORY.empty_table())
    assert rows.rows_digest([]).digest == "0:0:0:0"


def test_lanes_have_their_ends_and_ranges_cover_them_once():
    table = table_of(map(rows.entry_make, GIVEN))
    lanes = rows.lanes_of(table)
    assert (lanes["a"].lowest, lanes["a"].head, lanes["a"].estimated_rows) == (Coordinate(1), Coordinate(3), 2)
    assert lanes["a"].safe.coordinate is None
    ranges = rows.ranges_of([[1, 0], [3, 0]], "a", 4)
    assert (ranges[0].low, ranges[-1].high) == (None, None)
    held = [table.filter(rows.inside(table, range_))["position"].to_pylist() for range_ in ranges]
    assert sorted(position for part in held for position in part) == [1, 3]
    assert rows.ranges_of([], "a", 4) == [CoordinateRange("a", None, None)]


def test_below_and_at_find_the_same_rows_by_lane_and_coordinate():
    table = table_of(map(rows.entry_make, GIVEN))
    assert table.filter(rows.below(table, "a", Coordinate(1)))["position"].to_pylist() == [1]
    asked = pa.table({"lane": ["b", "a", "b"], "position": [2, 9, 2], "ordinal": [0, 0, 0]}, schema=schemas.COORDINATE)
    found = rows.rows_at(table, asked)
    assert found.schema.names == table.schema.names
    assert [rows.where_of(row) for row in found.to_pylist()] == [("b", 2, 0)]


def test_widths_carry_what_they_say():
    assert rows.history_columns(Width.COORDINATE, with_key=True) == ["position", "ordinal", "key"]
    assert rows.history_columns(Width.FULL) == schemas.HISTORY.names
    narrow = ["position", "ordinal", "payload_digest", "entry", "admitted_in"]
    assert rows.accepted_columns(Width.PAYLOAD, with_head=False) == narrow
