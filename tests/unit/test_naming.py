"""Which stretches of owed events are looked up for what people call them by."""

from __future__ import annotations

import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate
from workers.evidence import naming


def places(*positions: int) -> pa.Table:
    return pa.table(
        {"position": pa.array(positions, pa.int64()), "ordinal": pa.array([0] * len(positions), pa.int64())}
    )


def stretches(owed: pa.Table, history: pa.Table) -> list[tuple[int, int]]:
    return [(low.position, high.position) for low, high in naming._stretches(owed, history)]


def test_a_stretch_ends_where_another_event_of_the_history_comes_in_between() -> None:
    history = places(9, 1, 2, 4, 5, 7)
    assert stretches(places(5, 2, 4, 9), history) == [(2, 5), (9, 9)], "3 was rolled back, and parts nothing"
    assert stretches(places(3), history) == [], "what the history does not hold is looked up nowhere"


def test_no_more_stretches_and_rows_are_looked_up_than_are_cheap() -> None:
    history = places(*range(3 * naming.ROWS))
    assert stretches(places(*range(3 * naming.ROWS)), history) == [(0, naming.ROWS - 1)]
    found = stretches(places(*range(0, 4 * naming.STRETCHES, 2)), history)
    assert found == [(n, n) for n in range(0, 2 * naming.STRETCHES, 2)]


def test_after_the_last_ordinal_comes_the_next_position() -> None:
    assert naming._after(Coordinate(4, 2)) == Coordinate(4, 3)
    assert naming._after(Coordinate(4, 2**63 - 1)) == Coordinate(5, 0)
    assert naming._after(Coordinate(2**63 - 1, 2**63 - 1)) is None
