"""Acknowledged coordinates on their way to the kernel: whole columns, cut to a range, and those accepted all the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from recovery_api.domain.coordinates import INT64_MIN, Coordinate
from recovery_api.domain.evidence_places import Stored
from recovery_api.selectors.omissions import AcknowledgedLane
from workers.connectors.readings import CoordinateRange
from workers.evidence import schemas
from workers.evidence.acknowledged import (
    acknowledged_accepted,
    acknowledged_narrow,
    acknowledged_read,
    acknowledged_write,
)
from workers.evidence.kernel import LaneQuestion
from workers.recovery.ends import acknowledged_table


def question(*places: tuple[int, int]) -> LaneQuestion:
    held = {
        name: b"".join(place[at].to_bytes(8, "big", signed=True) for place in places)
        for at, name in enumerate(("positions", "ordinals"))
    }
    return LaneQuestion("0", Coordinate(100), acknowledged=acknowledged_table(AcknowledgedLane(len(places), **held)))


def places(found: LaneQuestion) -> list[tuple[int, int]]:
    assert found.acknowledged is not None
    return [(row["position"], row["ordinal"]) for row in found.acknowledged.to_pylist()]


def test_columns_come_as_they_are_held() -> None:
    assert places(question((INT64_MIN, -1), (7, 2))) == [(INT64_MIN, -1), (7, 2)]


def test_a_range_takes_its_own_and_every_one_is_in_some_range() -> None:
    whole = question((1, 0), (5, 1), (5, 2), (9, 0))
    cut = Coordinate(5, 2)
    low, high = CoordinateRange("0", None, cut), CoordinateRange("0", cut, None)
    assert places(acknowledged_narrow(whole, low)) == [(1, 0), (5, 1)]
    assert places(acknowledged_narrow(whole, high)) == [(5, 2), (9, 0)]
    assert acknowledged_narrow(whole, CoordinateRange("0", None, None)) is whole


def test_what_the_record_holds_and_the_range_did_not_find_lost_or_altered_is_kept(tmp_path: Path) -> None:
    findings = pa.Table.from_pylist(
        [{"finding": word, "lane": "0", "position": at, "ordinal": 0} for word, at in (("lost", 3), ("premature", 4))],
        schema=schemas.FINDING,
    )
    accepted = pa.table({"position": pa.array([1, 3, 4, 8]), "ordinal": pa.array([0, 0, 0, 0])})
    asked = [question((1, 0), (2, 0), (3, 0), (4, 0)), question((2, 0))]
    stored = Stored(str(tmp_path))
    for index, one in enumerate(asked):
        found = [acknowledged_accepted(one, findings, accepted)]
        stored = stored.with_(acknowledged_write(stored.url, index, "0", found))
    assert list(acknowledged_read(stored)) == [("0", [1], [0])]
