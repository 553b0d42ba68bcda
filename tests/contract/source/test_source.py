"""What every kind of source does alike: run on each that declares how it is read."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from recovery_api.domain.abilities import READINGS, Ability
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import SnapshotLost
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.grounds import Standing
from tests.contract.benches import ChangeableBench, Place, SourceBench, bench_of, params
from tests.contract.sink_engines import event_make
from tests.pins import pin
from workers.connectors.protocols.source import ImmutableSource, Source
from workers.connectors.readings import CoordinateRange, LateRows, Reading, Width
from workers.connectors.rows import payload_of
from workers.evidence import schemas

EVERYTHING = CoordinateRange(SINGLE_LANE, None, None)


@pytest.fixture(params=params(*READINGS))
def bench(request: pytest.FixtureRequest, place: Place) -> Any:
    return bench_of(request, place)


@pytest.fixture(params=params(Ability.JOINED_SNAPSHOT))
def joined(request: pytest.FixtureRequest, place: Place) -> Any:
    return bench_of(request, place)


@pytest.fixture(params=params(Ability.IMMUTABLE_BELOW))
def immutable(request: pytest.FixtureRequest, place: Place) -> Any:
    return bench_of(request, place)


def committed(bench: SourceBench, *positions: int, **changes: Any) -> list[dict[str, Any]]:
    events = [event_make(position, **changes) for position in positions]
    bench.commit(events)
    return events


def read(
    source: Source, reading: Reading, range_: CoordinateRange = EVERYTHING, **options: Any
) -> list[dict[str, Any]]:
    found = source.read_history(reading, range_, options.pop("width", Width.FULL), **options)
    rows = [row for batch in found for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["position"], row["ordinal"]))


def places(*positions: int, lane: str = SINGLE_LANE) -> pa.Table:
    rows = [{"lane": lane, "position": position, "ordinal": 0} for position in positions]
    return pa.Table.from_pylist(rows, schema=schemas.COORDINATE)


def positions(rows: Iterable[dict[str, Any]]) -> list[int]:
    return [row["position"] for row in rows]


def test_report_says_that_it_can_serve_and_shows_no_content(bench: SourceBench) -> None:
    committed(bench, 1, 2)
    report = bench.connector().test()
    assert report.is_usable and report.problems == ()
    assert report.facts


def test_empty_source_has_nothing_to_read(bench: SourceBench) -> None:
    source = bench.connector()
    assert all(lane.head is None for lane in pin(source).lanes.values())
    with source.hold_snapshot() as reading:
        assert [row for lane in reading.lanes for row in read(source, reading, CoordinateRange(lane, None, None))] == []


def test_history_is_read_whole_with_its_canonical_digests(bench: SourceBench) -> None:
    events = committed(bench, 3, 1, 9)
    source = bench.connector()
    with source.hold_snapshot() as reading:
        rows = read(source, reading)
    assert positions(rows) == [1, 3, 9]
    assert {row["position"]: row["payload_digest"] for row in rows} == {
        event["position"]: payload_of(event) for event in events
    }
    for name in ("lane", "ordinal", "event_id", "op", "key"):
        assert {row["position"]: row[name] for row in rows} == {event["position"]: event[name] for event in events}


@pytest.mark.parametrize("content", [None, "null", '""', '{"b": 1.50, "a": [1e2, "é"]}'])
def test_content_has_one_digest_at_source_and_recoverer(bench: SourceBench, content: str | None) -> None:
    events = [event_make(1 + (op == "delete"), content=content, op=op) for op in ("insert", "delete")]
    bench.commit(events)
    source = bench.connector()
    with source.hold_snapshot() as reading:
        digests = [row["payload_digest"] for row in read(source, reading)]
        sent = [row for batch in source.read_content(reading, places(1, 2)) for row in batch.to_pylist()]
    assert digests == [payload_of(event) for event in events] == [payload_of(row) for row in sent]


def test_each_width_carries_what_it_says_and_each_range_its_rows(bench: SourceBench) -> None:
    committed(bench, 1, 2, 7, 9)
    source, inside = bench.connector(), CoordinateRange(SINGLE_LANE, Coordinate(2), Coordinate(9))
    with source.hold_snapshot() as reading:
        for width in Width:
            assert positions(read(source, reading, inside, width=width)) == [2, 7]
        narrow = next(iter(source.read_history(reading, EVERYTHING, Width.COORDINATE)))
        keyed = next(iter(source.read_history(reading, EVERYTHING, Width.PAYLOAD, with_key=True)))
    assert set(narrow.schema.names) == {"position", "ordinal"}
    assert set(keyed.schema.names) == {"position", "ordinal", "key", "payload_digest"}


@pytest.mark.parametrize("parts", [1, 3, 8])
def test_ranges_of_a_split_hold_each_event_once(bench: SourceBench, parts: int) -> None:
    committed(bench, *range(1, 41))
    source = bench.connector()
    with source.hold_snapshot() as reading:
        ranges = source.split(reading, SINGLE_LANE, parts)
        held = [position for range_ in ranges for position in positions(read(source, reading, range_))]
    assert sorted(held) == list(range(1, 41))
    assert 1 <= len(ranges) <= parts
    assert (ranges[0].low, ranges[-1].high) == (None, None)


def test_pin_says_how_far_it_is_safe_and_on_which_ground(bench: SourceBench) -> None:
    committed(bench, 4, 6)
    lane = pin(bench.connector()).lanes[SINGLE_LANE]
    assert (lane.lowest, lane.head) == (Coordinate(4), Coordinate(6))
    assert lane.safe.coordinate is not None and lane.safe.coordinate >= Coordinate(6)
    assert lane.safe.ground and lane.safe.says and lane.safe.catalogue
    assert (lane.safe.standing is Standing.PROVEN) == (lane.safe.weakness is None)


def test_reading_is_followed_by_another_process_and_does_not_move(bench: SourceBench) -> None:
    """What is pickled reaches a task; what is committed meanwhile is not in it."""
    committed(bench, 1, 2)
    with bench.connector().hold_snapshot() as reading:
        far = pickle.loads(pickle.dumps(reading))
        committed(bench, 3)
        other = bench.connector()
        assert positions(read(other, far)) == [1, 2]
        assert [row["position"] for batch in other.read_content(far, places(1, 2)) for row in batch.to_pylist()] == [
            1,
            2,
        ]


def test_handle_is_json_and_holds_no_credential(bench: SourceBench) -> None:
    committed(bench, 1)
    with bench.connector().hold_snapshot() as reading:
        said = json.dumps(dict(reading.handle))
    assert "password" not in said


def test_content_of_what_is_asked_and_nothing_else_in_committed_order(bench: SourceBench) -> None:
    events = committed(bench, 1, 2, 3, 4)
    source = bench.connector()
    with source.hold_snapshot() as reading:
        batches = list(source.read_content(reading, places(2, 4)))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert all(batch.schema.equals(schemas.BATCH) for batch in batches)
    assert [(row["position"], json.loads(row["content"]), row["key"]) for row in rows] == [
        (event["position"], json.loads(event["content"]), event["key"]) for event in (events[1], events[3])
    ]


def test_lanes_are_apart(bench: SourceBench) -> None:
    bench.commit([event_make(1, lane="a"), event_make(5, lane="a"), event_make(1, lane="b")])
    source = bench.connector()
    with source.hold_snapshot() as reading:
        assert {lane: (one.lowest, one.head) for lane, one in reading.lanes.items()} == {
            "a": (Coordinate(1), Coordinate(5)),
            "b": (Coordinate(1), Coordinate(1)),
        }
        assert positions(read(source, reading, CoordinateRange("a", None, None))) == [1, 5]
        assert positions(read(source, reading, CoordinateRange("b", None, None))) == [1]
        assert source.split(reading, "b", 4)[0].lane == "b"


def test_snapshot_is_gone_with_its_holder(joined: SourceBench) -> None:
    committed(joined, 1)
    source = joined.connector()
    with source.hold_snapshot() as reading:
        pass
    with pytest.raises(SnapshotLost):
        read(source, reading)


def test_row_that_the_pinning_snapshot_does_not_hold_was_late(joined: SourceBench) -> None:
    committed(joined, 1, 5)
    source = joined.connector()
    with source.hold_pin() as pinned:
        committed(joined, 3, 9)
        with source.hold_snapshot() as held:
            reading = replace(held, handle={**held.handle, "pinned": pinned.handle["pinned"]})
            late = LateRows(Coordinate(5))
            read(joined.connector(), reading, width=Width.PAYLOAD, late=late)
    assert (late.count, late.first) == (1, [Coordinate(3)])


def test_what_is_immutable_gives_count_and_digest_twice_whatever_comes_after(immutable: SourceBench) -> None:
    committed(immutable, 1, 5)
    source = immutable.connector()
    assert isinstance(source, ImmutableSource)
    before = source.count_and_digest(SINGLE_LANE, Coordinate(5))
    committed(immutable, 9)
    assert before.count == 2
    assert (
        source.count_and_digest(SINGLE_LANE, Coordinate(5))
        == before
        == immutable.connector().count_and_digest(SINGLE_LANE, Coordinate(5))
    )
    assert source.count_and_digest(SINGLE_LANE, Coordinate(9)).count == 3


@pytest.mark.parametrize("what", ["altered", "late"])
def test_what_changed_below_the_frontier_was_not_immutable(immutable: ChangeableBench, what: str) -> None:
    """Between the pin and the snapshot an event is another one, or comes in: the ground does not stand any more."""
    committed(immutable, 1, 5)
    source = immutable.connector()
    with source.hold_pin() as pinned:
        before = pinned.lanes[SINGLE_LANE].safe
        changed = event_make(1, content='{"other": true}') if what == "altered" else event_make(3)
        immutable.alter([changed])
        with source.hold_snapshot() as reading:
            after = reading.lanes[SINGLE_LANE].safe
    assert not reading.is_complete  # so that no verdict is drawn from it
    assert before.weakness != after.weakness
    assert after.standing is Standing.ASSUMED and "does not stand any more" in str(after.weakness)
