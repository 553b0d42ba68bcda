"""The relay's own cursor, read where it keeps it: shown, never believed, and no reason to stop."""

from __future__ import annotations

from typing import Any

import pytest

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput
from tests.integration.postgresql.mapped_tables import Bench
from tests.pins import pin

OUTBOX = "CREATE TABLE outbox (id bigint PRIMARY KEY, key text)"
PAIRED = "CREATE TABLE outbox (tx xid8, id bigint, key text, PRIMARY KEY (tx, id))"
CURSOR = "CREATE TABLE relay_cursor (relay text, position bigint, ordinal bigint)"
MAPPED: dict[str, Any] = {"cursor_table": "relay_cursor", "cursor_columns": "position"}


def cursor(source: Any) -> Any:
    return source.cursors()["0"]


def test_cursor_of_one_relay_among_several(bench: Bench) -> None:
    bench.run.execute(OUTBOX)
    bench.run.execute(CURSOR)
    bench.run.execute("INSERT INTO relay_cursor VALUES ('letters', 282, 0), ('bills', 7, 0)")
    found = cursor(bench.source(**MAPPED, cursor_where={"relay": "letters"}))
    assert (found.coordinate, found.problem) == (Coordinate(282), "")
    report = bench.source(**MAPPED, cursor_where={"relay": "letters"}).test()
    assert report.facts["relay_cursor"] == "282"
    assert "Several rows" in cursor(bench.source(**MAPPED)).problem
    fresh = bench.source(**MAPPED, cursor_where={"relay": "parcels"})
    assert (cursor(fresh).coordinate, cursor(fresh).problem) == (None, "")
    assert fresh.test().facts["relay_cursor"] == "none recorded yet"


def test_cursor_is_read_in_the_outbox_own_spelling_or_as_held(bench: Bench) -> None:
    bench.run.execute(PAIRED)
    bench.run.execute(CURSOR)
    bench.run.execute("INSERT INTO relay_cursor VALUES ('held', %s, 42), ('own', 7001, 42)", [7001 - 2**63])
    pair = {"coordinate": ["tx", "id"], "coordinate_spelling": "xid8_bigint", "cursor_columns": ["position", "ordinal"]}
    for spelling, relay in (("held", "held"), ("coordinate", "own")):
        given = {**MAPPED, **pair, "cursor_spelling": spelling, "cursor_where": {"relay": relay}}
        assert cursor(bench.source(**given)).coordinate == Coordinate(7001 - 2**63, 42)


@pytest.mark.parametrize(
    ("column", "stored", "says"),
    [
        ("text", "latest", "is no coordinate of this source"),
        ("text", "x" * 24 * 2**20, "is no coordinate of this source"),
        ("numeric", "1.5", "is no coordinate of this source"),
    ],
)
def test_cursor_that_cannot_be_understood_says_why(bench: Bench, column: str, stored: Any, says: str) -> None:
    bench.run.execute(OUTBOX)
    bench.run.execute(f"CREATE TABLE relay_cursor (position {column})")
    bench.run.execute("INSERT INTO relay_cursor VALUES (%s)", [stored])
    source = bench.source(**MAPPED)
    found = cursor(source)
    assert found.coordinate is None and says in found.problem and len(found.problem) < 500
    report = source.test()
    assert report.is_usable and any(says in weakness for weakness in report.weaknesses)


def test_cursor_table_that_is_not_there_stops_neither_test_nor_reading(bench: Bench) -> None:
    bench.run.execute(OUTBOX)
    source = bench.source(**MAPPED)
    assert "could not be read" in cursor(source).problem
    assert source.test().is_usable
    assert pin(source).lanes["0"].head is None


def test_source_without_a_cursor_opens_nothing_for_it(bench: Bench) -> None:
    assert bench.source(dsn="host=no-such-host.invalid").cursors() == {}


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"cursor_columns": "position"}, "cursor_columns"),
        ({"cursor_where": {"relay": "x"}}, "cursor_where"),
        ({"cursor_spelling": "held"}, "cursor_spelling"),
        ({"cursor_table": "relay_cursor"}, "cursor_columns"),
        ({"cursor_table": "relay_cursor", "cursor_columns": ["a", "b"]}, "cursor_columns"),
        ({"cursor_table": "x" * 64, "cursor_columns": "a"}, "cursor_table"),
    ],
)
def test_options_that_contradict_each_other_are_refused_by_name(
    bench: Bench, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadInput, match=f"postgresql_outbox.{field}"):
        bench.source(**options)
