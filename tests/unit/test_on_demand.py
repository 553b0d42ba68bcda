"""Small sides stay in this process; what turns out large goes to the engine, and is not read to its end before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from workers.connectors.readings import LaneReading, Reading, SafeFrontier
from workers.spark.on_demand import OnDemand, TooManyRows, counted, fewer_run
from workers.spark.tasks import InProcess, session_chosen


def reading(*rows: int) -> Reading:
    nothing = SafeFrontier(None, "", "")
    lanes = {str(at): LaneReading(str(at), None, None, None, nothing, one) for at, one in enumerate(rows)}
    return Reading("an end", {}, lanes)


def chosen(*readings: Reading) -> tuple[Any, int | None]:
    return OnDemand(100, lambda: "engine").judged(readings, lambda session, most: (session_chosen(session), most))


def test_both_ends_decide_and_all_their_lanes_count() -> None:
    session, most = chosen(reading(60, 39), reading(99))
    assert isinstance(session, InProcess) and most == 400
    assert chosen(reading(60, 40), reading()) == ("engine", None)
    assert chosen(reading(1), reading(100)) == ("engine", None)


def batches(pulled: list[int]) -> Iterator[pa.RecordBatch]:
    for number in range(1000):
        pulled.append(number)
        yield pa.record_batch({"position": pa.array(range(50), pa.int64())})


def test_a_wrong_estimate_is_noticed_before_the_rest_is_read() -> None:
    pulled: list[int] = []

    def judge(session: Any, most: int | None) -> str:
        if session_chosen(session) == "engine":
            return "judged by the engine"
        return str(len(list(counted(batches(pulled), most))))

    assert OnDemand(100, lambda: "engine").judged([reading(3)], judge) == "judged by the engine"
    assert len(pulled) == 9  # 400 rows may be held, and the batch that passes them is the last


def test_without_a_bound_everything_is_read() -> None:
    assert len(list(counted(batches([]), None))) == 1000
    with pytest.raises(TooManyRows):
        list(counted(batches([]), 49_999))


def test_little_that_is_new_of_large_sides_is_judged_here_and_opens_no_engine() -> None:
    asked: list[str] = []

    def judge(session: Any, most: int | None) -> tuple[bool, int | None]:
        return fewer_run(session, 30, lambda where, bound: (isinstance(where, InProcess), bound))

    on_demand = OnDemand(100, lambda: asked.append("opened"))
    assert on_demand.judged([reading(5_000_000)], judge) == (True, 400)
    assert asked == []


def test_what_turns_out_to_be_much_that_is_new_goes_to_the_engine() -> None:
    def run(session: Any, most: int | None) -> str:
        return "engine" if session_chosen(session) == "engine" else str(len(list(counted(batches([]), most))))

    on_demand = OnDemand(100, lambda: "engine")
    assert on_demand.judged([reading(5_000)], lambda session, _: fewer_run(session, 30, run)) == "engine"
