"""What every kind that can be sent to does alike, whether it keeps a record of its own or not."""

from __future__ import annotations

from typing import Any

import pytest

from recovery_api.domain.abilities import RECORDS, Ability
from recovery_api.domain.capabilities import capability_joined
from recovery_api.domain.errors import Refused
from recovery_api.domain.kinds import abilities_of, points_of
from recovery_api.domain.kinds.page import kind_rows
from recovery_api.domain.points import Point
from recovery_api.domain.strategies import strategy_of
from tests.contract.benches import KINDS_TRIED, DeliveryBench, Place, bench_of, kind_tried, kinds_with, params
from tests.contract.sink_engines import event_make, rows_make
from workers.connectors.registry import record_make, sink_make
from workers.connectors.tested import capability_tested
from workers.recovery.connections import capability_row

RECORD = {"name": "a record of another end"}


@pytest.fixture(params=params(Ability.FENCED, Ability.APPENDED))
def bench(request: pytest.FixtureRequest, place: Place) -> Any:
    return bench_of(request, place)


def test_it_is_tested_as_what_it_is_and_can_serve(bench: DeliveryBench) -> None:
    bench.delivery()
    report = sink_make(bench.kind, bench.options).test()
    assert report.is_usable and report.problems == ()


def test_what_was_tested_is_what_its_kind_declares(bench: DeliveryBench) -> None:
    bench.delivery()
    abilities = abilities_of(bench.kind, bench.options)
    tested = capability_tested(bench.kind, bench.options)
    assert tested.has_fence is (Ability.FENCED in abilities) and tested.lands_in_one_transaction
    assert tested.may_append is (Ability.APPENDED in abilities)
    assert tested.can_read_record is bool(abilities & RECORDS)
    compared = {
        one.point: one for one in points_of(bench.kind, bench.options, capability_row(bench.kind, bench.options))
    }
    assert not any(compared[point].is_weaker for point in (Point.READS_RECORD, Point.FENCE, Point.APPEND))


def test_its_record_is_made_where_it_has_one_and_refused_in_words_where_not(bench: DeliveryBench) -> None:
    bench.delivery()
    if abilities_of(bench.kind, bench.options) & RECORDS:
        record_make(bench.kind, bench.options)
        return
    with pytest.raises(Refused, match="delivery alone: what arrives there cannot be read back"):
        record_make(bench.kind, bench.options)
    assert not strategy_of(capability_tested(bench.kind, bench.options)).is_driven


def test_beside_a_record_of_another_end_nothing_is_fired_into_it(bench: DeliveryBench) -> None:
    bench.delivery()
    pair = capability_joined(capability_tested("memory", RECORD), capability_tested(bench.kind, bench.options))
    assert strategy_of(pair).name == "read_only" and pair.can_read_record


def test_what_it_cannot_hold_is_told_row_by_row(bench: DeliveryBench) -> None:
    batch = rows_make([event_make(1), event_make(2), event_make(3)])
    assert bench.delivery().unrepresentable(batch).to_pylist() == [False, False, False]


@pytest.mark.parametrize("kind", kinds_with(Ability.FENCED, Ability.APPENDED))
def test_the_documentation_has_a_row_for_each_way_to_send_to_it(kind: str) -> None:
    found = kind_tried(kind)
    ends = [end for _, end, *_ in kind_rows(found)]
    assert ("record and delivery" if found.abilities & RECORDS else "delivery") in ends


def test_a_kind_of_each_sort_is_tried() -> None:
    sends = set(kinds_with(Ability.FENCED, Ability.APPENDED))
    reads = set(kinds_with(*RECORDS))
    assert sends & reads and sends - reads and KINDS_TRIED
