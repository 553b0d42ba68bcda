"""A task holds a bounded number of rows, whatever its range has, and says the same as if it held them all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.evidence_places import stored_make
from recovery_api.domain.identity import NO_REUSE, IdType, Lifetime
from tests.unit.counted_ends import CountedEnd, spec_of
from workers.connectors.readings import CoordinateRange, RecordIds, SourceIds
from workers.evidence import schemas
from workers.evidence.batch import rows_digest
from workers.evidence.canonical import batch_digest, entry_digests
from workers.evidence.cutting import ROWS_A_RANGE
from workers.evidence.holding import cuts_find, history_held, stretches_held
from workers.evidence.ids import history_stage, ids_judge
from workers.evidence.kernel import fold
from workers.evidence.kernel.ids import HISTORY_IDS
from workers.evidence.ranges import MeetSpec, range_judge
from workers.evidence.schemas import FINDING
from workers.evidence.store import FINDINGS, rows_read
from workers.spark.meet_ids import HISTORY
from workers.spark.tasks import InProcess

MIB = 2**20
TASK_BYTES = 256 * MIB
"""What a task may take beyond an idle worker that has imported what it needs."""


def judged(spec: MeetSpec) -> tuple[dict[str, Any], pa.Table]:
    """The summary, and the findings in coordinate order."""
    summary = range_judge(spec, 0)
    stored = stored_make(spec.evidence, summary.pop("written"))
    table = rows_read(stored, stored.of(FINDINGS), FINDING)
    return summary, table.sort_by([("finding", "ascending"), ("position", "ascending")])


@pytest.mark.parametrize("shuffle", [None, 7])
@pytest.mark.parametrize("lost_every", [0, 1, 97])
def test_a_range_judged_in_stretches_says_what_it_says_as_a_whole(
    tmp_path: Path, shuffle: int | None, lost_every: int
) -> None:
    rows = 200_000
    whole = judged(spec_of(rows, lost_every, tmp_path / "whole", shuffle, earlier={"0": Coordinate(1_000)}))
    cut = spec_of(rows, lost_every, tmp_path / "cut", shuffle, earlier={"0": Coordinate(1_000)}, rows_a_range=40_000)
    assert judged(cut) == whole
    assert whole[0]["counts"]["lost"] == (rows // lost_every if lost_every else 0)
    held = [len(one.history) + len(one.accepted) for one in stretches_held(cut, cut.ranges[0])]
    assert len(held) > 4 and max(held) <= 80_000


def test_the_stretches_follow_one_another_and_end_where_the_range_does(tmp_path: Path) -> None:
    spec = spec_of(50_000, 3, tmp_path, shuffle=1, rows_a_range=5_000)
    range_ = CoordinateRange("0", Coordinate(10_000), Coordinate(40_000))
    held = list(stretches_held(spec, range_))
    assert (held[0].range_.low, held[-1].range_.high) == (range_.low, range_.high)
    assert all(one.range_.high == two.range_.low for one, two in pairwise(held))
    assert sum(one.history.num_rows for one in held) == 30_000


@pytest.mark.parametrize("shuffle", [None, 7])
def test_a_history_by_id_is_staged_in_stretches_and_says_what_it_says_as_a_whole(
    tmp_path: Path, shuffle: int | None
) -> None:
    rows, shown, told = 50_000, [], []
    for name, more in (("whole", {}), ("cut", {"rows_a_range": 20_000})):
        spec = spec_of(rows, 0, tmp_path / name, shuffle, earlier={"0": Coordinate(1_000)}, **more)
        staged = history_stage(spec, 0, IdType.BIGINT)
        stored = stored_make(spec.evidence, staged.pop("staged"))
        shown.append(rows_read(stored, stored.of(HISTORY), HISTORY_IDS).sort_by("position"))
        told.append((fold(staged["blocks"]), staged["history"], staged["earlier"], staged["strange"]))
    assert shown[0].equals(shown[1]) and told[0] == told[1]
    assert shown[0].num_rows == told[0][1]["count"] == rows
    held = [history.num_rows for history, _ in history_held(spec, spec.ranges[0])]
    assert len(held) >= 5 and sum(held) == rows and max(held) <= 16_000


class CountedIds(CountedEnd):
    """The same record, that knows the ids alone."""

    kind, needs_order, options = "counted", False, {NO_REUSE: True}

    def read_ids(self, reading: Any, part: int, parts: int) -> Iterator[pa.RecordBatch]:
        whole = CoordinateRange("0", None, None)
        for batch in self._batches(whole, ["event_id"], schemas.HISTORY) if part == 0 else ():
            yield batch.append_column("is_accepted", pa.array([True] * batch.num_rows))

    def _not_asked(self, *_: Any) -> Any:
        raise AssertionError("a record of ids is asked for its ids alone")

    test = capability = said = undisciplined_paths = hold_snapshot = _not_asked


def test_what_is_matched_by_id_is_the_same_whether_a_range_is_held_whole_or_in_stretches(tmp_path: Path) -> None:
    found = []
    for name, more in (("whole", {}), ("cut", {"rows_a_range": 5_000})):
        spec = spec_of(20_000, 97, tmp_path / name, **more)
        ids = RecordIds(IdType.BIGINT, Lifetime(None), datetime(2026, 3, 1, tzinfo=UTC))
        spec = replace(
            spec,
            source=CountedIds(20_000),  # type: ignore[arg-type]
            sink=CountedIds(20_000, 97),  # type: ignore[arg-type]
            source_reading=replace(spec.source_reading, ids=SourceIds(IdType.BIGINT)),
            sink_reading=replace(spec.sink_reading, ids=ids),
        )
        judged = ids_judge(InProcess(), spec, {}, {}).summaries
        stored = stored_make(spec.evidence, (row for one in judged for row in one.get("written", ())))
        rows = rows_read(stored, stored.of(FINDINGS), FINDING)
        found.append((fold(one["counts"] for one in judged), judged[0]["history"], judged[0]["batch_digest"], rows))
    assert found[0] == found[1]
    assert (found[0][0].lost_journal, found[0][0].obligations_journal) == (20_000 // 97, 20_000)


class OneCoordinate(CountedEnd):
    """Every row at one and the same coordinate."""

    def _batches(self, range_: CoordinateRange, names: list[str], schema: pa.Schema) -> Any:
        for batch in CountedEnd._batches(self, CoordinateRange("0", None, None), names, schema):
            yield batch.set_column(0, "position", pa.repeat(pa.scalar(5), batch.num_rows))


def test_rows_of_one_coordinate_are_not_parted_however_many_they_are(tmp_path: Path) -> None:
    spec = replace(spec_of(5_000, 0, tmp_path, rows_a_range=1_000), source=OneCoordinate(5_000), sink=OneCoordinate(0))  # type: ignore[arg-type]
    assert cuts_find(spec, spec.ranges[0]) == []
    assert [one.history.num_rows for one in stretches_held(spec, spec.ranges[0])] == [5_000]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["0", "lane é"]),
            st.integers(-(2**63), 2**63 - 1),
            st.integers(0, 9),
            st.binary(min_size=32, max_size=32),
        )
    )
)
def test_a_batch_digest_worked_out_in_columns_is_the_one_of_its_rows(rows: list[tuple[str, int, int, bytes]]) -> None:
    names = ["lane", "position", "ordinal", "payload_digest"]
    types = [pa.string(), pa.int64(), pa.int64(), pa.binary(32)]
    columns = list(zip(*rows, strict=True)) or [()] * 4
    table = pa.table([pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)], names)
    assert rows_digest(table) == batch_digest(entry_digests(*columns))


def taken(rows: int, lost_every: int, folder: Path) -> int:
    """What a process of its own took for one task, in bytes."""
    command = [sys.executable, "-m", "tests.unit.counted_ends", str(rows), str(lost_every), str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    said = json.loads(done.stdout)
    assert said["lost"] == (rows // lost_every if lost_every else 0)
    return int(said["beyond_bytes"])


@pytest.mark.slow
def test_a_tasks_memory_is_bounded_whatever_its_range_holds(tmp_path: Path) -> None:
    """200,000 rows an end, and 2,000,000, where every thousandth is missing: the larger one in stretches. And a range that
    is as large as one may be without being cut again, where nothing arrived at all."""
    small, large = (taken(rows, 1_000, tmp_path / str(rows)) for rows in (200_000, 2_000_000))
    assert large <= TASK_BYTES, f"{large / MIB:.0f} MiB"
    nothing = taken(2 * ROWS_A_RANGE, 1, tmp_path / "nothing")
    assert nothing <= TASK_BYTES, f"{nothing / MIB:.0f} MiB"
    assert small <= large
