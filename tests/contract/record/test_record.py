"""What every kind of acceptance record that answers by range does alike."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from recovery_api.domain.abilities import Ability
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Refused, SnapshotLost
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.kinds import kind_get
from recovery_api.domain.restores import restore_find
from tests.contract.benches import Place, RecordBench, bench_of, params
from tests.contract.sink_engines import event_make
from workers.connectors.protocols.record import DividedRecord, Record
from workers.connectors.readings import CoordinateRange, Reading, Width
from workers.connectors.rows import payload_of
from workers.evidence import schemas

EVERYTHING = CoordinateRange(SINGLE_LANE, None, None)


@pytest.fixture(params=params(Ability.RECORD_BY_RANGE, is_newest=True))
def bench(request: pytest.FixtureRequest, place: Place) -> Any:
    return bench_of(request, place)


def read(
    record: Record, reading: Reading, range_: CoordinateRange = EVERYTHING, width: Width = Width.PAYLOAD, **options: Any
) -> list[dict[str, Any]]:
    rows = [row for batch in record.read_accepted(reading, range_, width, **options) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["position"], row["ordinal"]))


def test_new_record_is_empty_and_whole(bench: RecordBench) -> None:
    record = bench.connector()
    with record.hold_snapshot() as reading:
        assert reading.is_complete and reading.identity
        assert [row for lane in reading.lanes for row in read(record, reading, CoordinateRange(lane, None, None))] == []
        assert all(lane.head is None for lane in reading.lanes.values())


def test_capability_is_tested_and_says_how_it_was_found_out(bench: RecordBench) -> None:
    record = bench.connector()
    assert record.test().is_usable
    found = record.capability()
    assert found.can_read_record and found.is_record_complete and found.grounds
    assert found.has_fence == (Ability.FENCED in kind_get(record.kind).abilities)
    assert isinstance(record.undisciplined_paths(), list)


def test_entries_are_read_with_their_canonical_digests_and_heads(bench: RecordBench) -> None:
    events = [event_make(position) for position in (3, 1)]
    bench.accept(events, head=9)
    bench.accept([event_make(7)])
    record = bench.connector()
    with record.hold_snapshot() as reading:
        rows = read(record, reading, width=Width.FULL)
        assert (reading.lanes[SINGLE_LANE].lowest, reading.lanes[SINGLE_LANE].head) == (Coordinate(1), Coordinate(7))
    assert [(row["position"], row["head_position"]) for row in rows] == [(1, 9), (3, 9), (7, None)]
    assert rows[1]["payload_digest"] == payload_of(events[0])
    assert sorted(rows, key=lambda row: row["entry"])[0]["position"] == 3
    assert set(rows[0]) == set(schemas.ACCEPTED.names)


@pytest.mark.parametrize("parts", [1, 3, 8])
def test_ranges_of_a_split_hold_each_entry_once(bench: RecordBench, parts: int) -> None:
    bench.accept([event_make(position) for position in range(1, 41)])
    record = bench.connector()
    assert isinstance(record, DividedRecord)
    with record.hold_snapshot() as reading:
        ranges = record.split(reading, SINGLE_LANE, parts)
        held = [row["position"] for range_ in ranges for row in read(record, reading, range_)]
        again = record.split(reading, SINGLE_LANE, parts)
    assert sorted(held) == list(range(1, 41))
    assert 1 <= len(ranges) <= parts and again == ranges
    assert (ranges[0].low, ranges[-1].high) == (None, None)


def test_each_width_carries_what_it_says_and_each_range_its_rows(bench: RecordBench) -> None:
    bench.accept([event_make(position) for position in (1, 2, 7, 9)])
    record, inside = bench.connector(), CoordinateRange(SINGLE_LANE, Coordinate(2), Coordinate(9))
    with record.hold_snapshot() as reading:
        for width in Width:
            assert [row["position"] for row in read(record, reading, inside, width)] == [2, 7]
        narrow = next(iter(record.read_accepted(reading, EVERYTHING, Width.PAYLOAD, with_head=False)))
        assert read(record, reading, CoordinateRange(SINGLE_LANE, Coordinate(100), None)) == []
    assert "head_position" not in narrow.schema.names
    assert {"position", "ordinal", "payload_digest"} <= set(narrow.schema.names)


def test_repeated_acceptance_is_two_entries(bench: RecordBench) -> None:
    bench.accept([event_make(1)])
    bench.accept([event_make(1)])
    record = bench.connector()
    with record.hold_snapshot() as reading:
        assert [row["position"] for row in read(record, reading)] == [1, 1]


def test_lanes_are_apart(bench: RecordBench) -> None:
    bench.accept([event_make(at, lane=lane) for lane in (SINGLE_LANE, "é") for at in (1, 2)])
    record = bench.connector()
    with record.hold_snapshot() as reading:
        assert set(reading.lanes) == {SINGLE_LANE, "é"}
        assert len(read(record, reading, CoordinateRange("é", None, None))) == 2
        assert read(record, reading, CoordinateRange("nowhere", None, None)) == []


def test_reading_is_followed_by_another_connector_and_does_not_move(bench: RecordBench) -> None:
    bench.accept([event_make(1)])
    with bench.connector().hold_snapshot() as reading:
        far = pickle.loads(pickle.dumps(reading))
        bench.accept([event_make(2)])
        assert [row["position"] for row in read(bench.connector(), far)] == [1]
        assert "password" not in json.dumps(dict(reading.handle))


def test_snapshot_is_gone_with_its_holder(bench: RecordBench) -> None:
    bench.accept([event_make(1)])
    record = bench.connector()
    with record.hold_snapshot() as reading:
        pass
    with pytest.raises(SnapshotLost):
        read(record, reading)


def test_reading_under_a_generation_that_the_fence_does_not_show_is_refused(bench: RecordBench) -> None:
    with pytest.raises(Refused), bench.connector().hold_snapshot(7):
        pass


def test_what_it_says_of_itself_stays_and_is_never_behind(bench: RecordBench) -> None:
    record = bench.connector()
    before = record.said()
    assert before.incarnation
    bench.accept([event_make(1)])
    assert not restore_find(before, bench.connector().said()).is_restored


def test_a_record_says_nothing_of_what_is_safe(bench: RecordBench) -> None:
    bench.accept([event_make(1)])
    with bench.connector().hold_snapshot() as reading:
        assert [lane.safe.coordinate for lane in reading.lanes.values()] == [None]
