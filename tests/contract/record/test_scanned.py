"""What every kind of record that knows only ids does alike: it is read whole, in shares, and by no coordinate."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from recovery_api.domain.abilities import Ability
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Refused, SnapshotLost
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.restores import restore_find
from tests.contract.benches import Place, ScannedBench, bench_of, params
from workers.connectors.protocols.record import IdRecord
from workers.connectors.readings import CoordinateRange, Reading, Width

IDS = [f"event {number}" for number in range(200)]


@pytest.fixture(params=params(Ability.RECORD_BY_SCAN))
def bench(request: pytest.FixtureRequest, place: Place) -> Any:
    return bench_of(request, place)


def read(record: IdRecord, reading: Reading, parts: int = 1) -> list[str]:
    shares = [record.read_ids(reading, part, parts) for part in range(parts)]
    return [row["event_id"] for share in shares for batch in share for row in batch.to_pylist() if row["is_accepted"]]


def test_new_record_is_empty_and_says_what_it_rests_on(bench: ScannedBench) -> None:
    record = bench.scanned()
    assert record.test().is_usable
    with record.hold_snapshot() as reading:
        assert reading.is_complete and reading.ids is not None
        assert read(record, reading) == []


@pytest.mark.parametrize("parts", [1, 3, 16])
def test_all_shares_together_hold_each_id_once(bench: ScannedBench, parts: int) -> None:
    record = bench.scanned(IDS)
    with record.hold_snapshot() as reading:
        assert sorted(read(record, reading, parts)) == sorted(IDS)


def test_reading_is_followed_by_another_connector_and_does_not_move(bench: ScannedBench) -> None:
    with bench.scanned(["a"]).hold_snapshot() as reading:
        far = pickle.loads(pickle.dumps(reading))
        assert read(bench.scanned(["b"]), far) == ["a"]
    with pytest.raises(SnapshotLost):
        read(bench.scanned(), far)


def test_it_answers_by_no_coordinate_and_under_no_generation(bench: ScannedBench) -> None:
    record, range_ = bench.scanned(["a"]), CoordinateRange(SINGLE_LANE, Coordinate(1), None)
    with record.hold_snapshot() as reading, pytest.raises(Refused):
        list(record.read_accepted(reading, range_, Width.PAYLOAD))
    with pytest.raises(Refused), record.hold_snapshot(7):
        pass


def test_what_it_says_of_itself_stays(bench: ScannedBench) -> None:
    before = bench.scanned().said()
    assert before.incarnation
    assert not restore_find(before, bench.scanned(["a"]).said()).is_restored
    assert not bench.scanned().capability().has_fence
