"""S1: whatever is mapped on whatever column, no value of a row leaves by an error, a problem or a weakness."""

from __future__ import annotations

from typing import Any

import pytest

from recovery_api.domain.errors import FencepostError
from tests.integration.postgresql.mapped_tables import WHOLE, Bench, history, rows_of
from workers.connectors.readings import Width

SECRET = "sessionid9f8e7d"
TABLE = f"""
CREATE TABLE people (id bigint PRIMARY KEY, password text NOT NULL, raw bytea, at text, digest text);
INSERT INTO people VALUES (1, '{SECRET}', '\\x00', '{SECRET}', '{SECRET}'), (2, '{SECRET}2', NULL, 'x', '{SECRET}');
"""

MAPPINGS: list[dict[str, Any]] = [
    {"coordinate": "password"},
    {"coordinate": ["id", "password"]},
    {"coordinate": "pasword"},
    {"op": "password"},
    {"op": "password", "op_values": {"c": "insert"}},
    {"committed_at": "password"},
    {"content": "password"},
    {"content": "password", "content_format": "json"},
    {"key": "pasword"},
    {"cursor_table": "people", "cursor_columns": ["password"], "cursor_where": {"id": "1"}},
    {"cursor_table": "people", "cursor_columns": ["password"], "cursor_where": {"id": "1"}, "cursor_spelling": "held"},
]


def texts_of(*, source: Any) -> str:
    """Everything a person or a row could get of a test and of readings, but for the sample rows."""
    report = source.test()
    said = [repr((report.facts, report.problems, report.weaknesses)), repr(source.cursors())]
    for width in (Width.COORDINATE, Width.PAYLOAD, Width.FULL):
        try:
            history(source, width)
        except FencepostError as error:
            said.append(repr(error.as_row()))
    return " ".join(said)


@pytest.mark.parametrize("mapping", MAPPINGS, ids=str)
def test_s1_a_wrong_mapping_over_secrets_shows_no_value(bench: Bench, mapping: dict[str, Any]) -> None:
    bench.run.execute(TABLE)  # type: ignore[call-overload]
    try:
        source = bench.source(table="people", **{"coordinate": "id", **mapping})
    except FencepostError as error:
        assert SECRET not in repr(error.as_row())
        return
    said = texts_of(source=source)
    assert SECRET not in said
    assert "pasword" not in str(mapping.values()) or "pasword" in said, "what we were given is named"


def test_s1_a_digest_column_that_holds_none_is_not_quoted(bench: Bench) -> None:
    bench.run.execute(TABLE)  # type: ignore[call-overload]
    sink = bench.sink(table="people", digest="digest", accepted_at="at", generation="password")
    report = sink.test()
    assert SECRET not in repr((report.facts, report.problems, report.weaknesses))
    for width in (Width.PAYLOAD, Width.FULL):
        try:
            with sink.hold_snapshot() as reading:
                rows_of(sink.read_accepted(reading, WHOLE, width))
        except FencepostError as error:
            assert SECRET not in repr(error.as_row())
