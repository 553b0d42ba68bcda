"""What every kind of record that tells what is new does alike: exactly what an earlier snapshot did not show."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from recovery_api.domain.abilities import Ability
from tests.contract.benches import FollowedBench, Place, bench_of, params
from tests.contract.sink_engines import event_make
from workers.connectors.protocols.record import FollowedRecord
from workers.connectors.readings import CoordinateRange, Reading, Width
from workers.evidence import schemas


@pytest.fixture(params=params(Ability.FOLLOWED, is_newest=True))
def bench(request: pytest.FixtureRequest, place: Place) -> Any:
    return bench_of(request, place)


def shown(bench: FollowedBench) -> str:
    """What the record shows now, as it is kept."""
    with bench.connector().hold_snapshot() as reading:
        assert reading.following.problem == ""
        return reading.following.snapshot


def new(record: FollowedRecord, reading: Reading, since: str) -> list[dict[str, Any]]:
    return [row for batch in record.read_since(reading, since) for row in batch.to_pylist()]


def positions_since(bench: FollowedBench, since: str) -> list[int]:
    record = bench.connector()
    with record.hold_snapshot() as reading:
        return [row["position"] for row in new(record, reading, since)]


def test_what_was_accepted_since_is_new_in_its_order_and_whole(bench: FollowedBench) -> None:
    bench.accept([event_make(position) for position in (1, 2, 3)])
    since = shown(bench)
    bench.accept([event_make(9)], head=11)
    bench.accept([event_make(position, lane=lane) for position, lane in ((4, "0"), (2, "é"))])
    record = bench.connector()
    with record.hold_snapshot() as reading:
        rows = new(record, reading, since)
        read = [
            row
            for lane in reading.lanes
            for batch in record.read_accepted(reading, CoordinateRange(lane, None, None), Width.FULL)
            for row in batch.to_pylist()
        ]
    assert [(row["lane"], row["position"]) for row in rows] == [("0", 9), ("0", 4), ("é", 2)]
    assert all(row in read for row in rows)
    assert list(rows[0]) == schemas.ACCEPTED.names
    assert rows[0]["admitted_in"] < rows[1]["admitted_in"] == rows[2]["admitted_in"]


def test_nothing_is_new_where_nothing_was_accepted(bench: FollowedBench) -> None:
    bench.accept([event_make(1)])
    since = shown(bench)
    bench.accept([event_make(1)])
    assert positions_since(bench, since) == []
    assert positions_since(bench, shown(bench)) == []


def test_everything_is_new_since_the_empty_record(bench: FollowedBench) -> None:
    since = shown(bench)
    bench.accept([event_make(2)])
    bench.accept([event_make(1)])
    assert positions_since(bench, since) == [2, 1]


def test_what_was_accepted_after_a_reading_is_not_in_it_and_new_in_the_next(bench: FollowedBench) -> None:
    since = shown(bench)
    bench.accept([event_make(1)])
    with bench.connector().hold_snapshot() as reading:
        far = pickle.loads(pickle.dumps(reading))
        bench.accept([event_make(2)])
        assert [row["position"] for row in new(bench.connector(), far, since)] == [1]
    assert positions_since(bench, far.following.snapshot) == [2]


def test_entry_of_a_transaction_that_was_open_then_is_new_however_early_it_drew_its_number(
    bench: FollowedBench,
) -> None:
    bench.accept([event_make(1)])
    record = bench.connector()
    with bench.transaction() as late:
        late.accept([event_make(2)])
        bench.accept([event_make(3)])
        since = shown(bench)
        late.accept([event_make(4)])
    bench.accept([event_make(5)])
    with record.hold_snapshot() as reading:
        rows = new(record, reading, since)
        third = next(row for row in new(record, reading, "1:1:") if row["position"] == 3)
    assert [row["position"] for row in rows] == [2, 4, 5]
    assert rows[0]["entry"] < third["entry"] and rows[0]["admitted_in"] < third["admitted_in"]


def test_of_two_that_were_open_the_one_that_is_still_open_is_new_once(bench: FollowedBench) -> None:
    with bench.transaction() as longest:
        longest.accept([event_make(1)])
        with bench.transaction() as longer:
            longer.accept([event_make(2)])
            first = shown(bench)
        bench.accept([event_make(3)])
        second = shown(bench)
        assert positions_since(bench, first) == [2, 3]
    third = shown(bench)
    assert positions_since(bench, second) == [1]
    assert positions_since(bench, first) == [1, 2, 3]
    assert positions_since(bench, third) == []


def test_what_was_rolled_back_is_never_new_and_a_savepoint_takes_its_own_part(bench: FollowedBench) -> None:
    since = shown(bench)
    with pytest.raises(InterruptedError), bench.transaction() as given_up:
        given_up.accept([event_make(1)])
        raise InterruptedError
    with bench.transaction() as kept:
        kept.accept([event_make(2)])
        with pytest.raises(InterruptedError), kept.savepoint():
            kept.accept([event_make(3)])
            raise InterruptedError
        with kept.savepoint():
            kept.accept([event_make(4)])
        between = shown(bench)
    assert positions_since(bench, since) == [2, 4]
    assert positions_since(bench, between) == [2, 4]


def test_what_lies_below_the_oldest_open_transaction_is_settled_and_no_more(bench: FollowedBench) -> None:
    bench.accept([event_make(1)])
    record = bench.connector()
    with bench.transaction() as late:
        late.accept([event_make(2)])
        bench.accept([event_make(3)])
        with record.hold_snapshot() as reading:
            admitted = {row["position"]: row["admitted_in"] for row in new(record, reading, "1:1:")}
            oldest = reading.following.oldest_open
    assert admitted[1] < oldest <= admitted[3]
