"""What every kind with an appended delivery does alike: one transaction a part, and nothing twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from recovery_api.domain.abilities import Ability
from recovery_api.domain.errors import Refused
from tests.contract.benches import AppendedBench, Place, bench_of, params
from tests.contract.sink_engines import batch_make, digest_make, event_make, rows_make
from workers.connectors.rows import payload_of


@pytest.fixture(params=params(Ability.APPENDED))
def bench(request: pytest.FixtureRequest, place: Place) -> Any:
    return bench_of(request, place)


def test_ability_is_tested_before_anything_is_written(bench: AppendedBench) -> None:
    ability = bench.delivery().append_ability()
    assert ability.may_append and ability.problems == () and ability.late_sends_says
    assert bench.held() == {}


def test_what_is_missing_lands_once_and_a_repeat_lands_nothing(bench: AppendedBench) -> None:
    delivery, batch = bench.delivery(), batch_make(1, 2, 4)
    first = delivery.append(iter([batch.slice(0, 2), batch.slice(2)]), owed=digest_make(batch))
    assert (first.word, first.data["landed_count"], first.data["absorbed_count"]) == ("appended", 3, 0)
    again = bench.delivery().append(iter([batch]))
    assert (again.data["landed_count"], again.data["absorbed_count"], again.data["altered_count"]) == (0, 3, 0)
    assert bench.held() == {row["position"]: payload_of(row) for row in batch.to_pylist()}


def test_another_content_at_a_coordinate_stays_and_is_counted(bench: AppendedBench) -> None:
    delivery, other = bench.delivery(), event_make(2, content='{"other": 1}')
    delivery.append(iter([rows_make([other])]))
    answer = delivery.append(iter([batch_make(1, 2)]))
    assert (answer.data["landed_count"], answer.data["altered_count"], len(answer.data["altered"])) == (1, 1, 1)
    assert bench.held()[2] == payload_of(other)


def test_a_part_that_is_not_what_is_owed_lands_nothing(bench: AppendedBench) -> None:
    with pytest.raises(Refused):
        bench.delivery().append(iter([batch_make(1, 2)]), owed=digest_make(batch_make(1, 3)))
    assert bench.held() == {}


def test_two_recoverers_at_once_land_each_event_once(bench: AppendedBench) -> None:
    deliveries, batch = [bench.delivery() for _ in range(4)], batch_make(*range(1, 30))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda one: one.append(iter([batch]), 30.0), deliveries))
    assert sum(answer.data["landed_count"] for answer in answers) == 29
    assert sorted(bench.held()) == list(range(1, 30))


def test_what_cannot_be_held_is_told_without_writing(bench: AppendedBench) -> None:
    batch = rows_make([event_make(1), event_make(2, content='"\\u0000"')])
    assert bench.delivery().unrepresentable(batch).to_pylist()[0] is False
    assert bench.held() == {}
