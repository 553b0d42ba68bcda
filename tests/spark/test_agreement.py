"""The two ways to meet agree: random damage over real tables by ranges, and the same rows cogrouped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.evidence_places import stored_make
from tests.contract import verdict_cases as vc
from tests.spark.test_ranges_vectors import ends_of, spec_of, tables_make
from workers.connectors.readings import CoordinateRange, Width
from workers.evidence import ranges, schemas
from workers.evidence.judging import written_of
from workers.evidence.kernel import fold
from workers.evidence.ranges import MeetSpec
from workers.evidence.store import FINDINGS, rows_read
from workers.spark.meet import meet

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COMPARED = [name for name in schemas.FINDING.names if name not in ("lane", "journal_entry")]
COMPARED_OF_LOST = [name for name in COMPARED if name != "entry"]  # a table gives no committed order beside coordinates
CUTS = [10, 20]
NOBODY = {"coordinate": 1, "op": "insert", "key": None, "value": None, "generation": 0, "head": None}
"""Of a lane nobody asks about: a DataFrame needs a row."""

coordinates = st.integers(min_value=1, max_value=30)
payloads = {
    "op": st.sampled_from(["insert", "update", "delete"]),
    "key": st.sampled_from(["a", "b", None]),
    "value": st.sampled_from([0, 1.5, "x", None, {"n": 1, "m": [2.50]}]),
}
events = st.fixed_dictionaries({"coordinate": coordinates, **payloads})


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """A history in coordinate order; a record of most of it, some of it altered, and of events that never were."""
    history = draw(st.lists(events, max_size=20, unique_by=lambda event: event["coordinate"]))
    history.sort(key=lambda event: event["coordinate"])
    sent = draw(st.lists(st.sampled_from(history), max_size=25)) if history else []
    sent = [*sent, *draw(st.lists(events, max_size=5))]
    accepted = [
        {
            **event,
            "generation": draw(st.integers(0, 2)),
            "head": draw(st.none() | st.integers(event["coordinate"] - 1, 30)),
        }
        for event in draw(st.permutations(sent))
    ]
    return {
        "history": history,
        "accepted": accepted,
        "journal": None,
        "floor": None,
        "frontier": draw(st.integers(0, 31)),
        "scope": draw(st.none() | st.lists(st.sampled_from(["a", "b"]), min_size=1, unique=True)),
        "acknowledged_omissions": sorted(draw(st.sets(coordinates, max_size=4))),
    }


def ranges_of(lane: str) -> tuple[CoordinateRange, ...]:
    bounds = [None, *(Coordinate(cut) for cut in CUTS), None]
    return tuple(CoordinateRange(lane, low, high) for low, high in pairwise(bounds))


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(several=st.lists(cases(), min_size=8, max_size=12))
def test_ranges_and_cogroups_find_the_same(
    several: list[dict[str, Any]], spark: Any, database_factory: Callable[[str], str], tmp_path_factory: Any
) -> None:
    folder: Path = tmp_path_factory.mktemp("agreement")
    by_ranges = _by_ranges(several, spark, database_factory("agreement"), folder)
    cogrouped = _cogrouped(several, spark)
    for number, case in enumerate(several):
        (counts, findings), (other_counts, other_findings) = by_ranges[number], cogrouped[number]
        assert asdict(counts) == asdict(other_counts), case
        assert _rows(findings) == _rows(other_findings), case


def _rows(findings: pa.Table) -> list[str]:
    """What both ways give, in an order of its own."""
    return sorted(
        repr([row[name] for name in (COMPARED_OF_LOST if row["finding"] == "lost" else COMPARED)])
        for row in findings.to_pylist()
    )


def _by_ranges(several: list[dict[str, Any]], spark: Any, dsn: str, folder: Path) -> list[tuple[Any, pa.Table]]:
    (folder / "dsn").write_text(dsn)
    for number, case in enumerate(several):
        tables_make(dsn, case, number)
    source, sink = ends_of(folder / "dsn")
    with source.source().hold_snapshot() as source_reading, sink.record().hold_snapshot() as sink_reading:
        lane = next(iter(source_reading.lanes))
        whole = MeetSpec(
            source, sink, source_reading, sink_reading, ranges_of(lane), {}, Width.PAYLOAD, str(folder / "evidence")
        )
        specs = [spec_of(whole, case, number, lane, folder) for number, case in enumerate(several)]
        parts = len(whole.ranges)
        summaries = ranges.tasks_run(spark, len(specs) * parts, _one_range_a_task(specs, parts))
    answers = []
    for number, spec in enumerate(specs):
        mine = summaries[number * parts : (number + 1) * parts]
        stored = stored_make(spec.evidence, written_of(mine))
        found = rows_read(stored, stored.of(FINDINGS), schemas.FINDING)
        answers.append((fold([summary["counts"] for summary in mine]), found))
    return answers


def _one_range_a_task(specs: list[MeetSpec], parts: int) -> Callable[[Any], Any]:
    def run(batches: Any) -> Any:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                spec, part = specs[index // parts], index % parts
                yield ranges.summary_row(index, "0", lambda spec=spec, part=part: ranges.range_judge(spec, part))

    return run


def _cogrouped(several: list[dict[str, Any]], spark: Any) -> list[tuple[Any, pa.Table]]:
    def frame(end: str, shape: Callable[..., pa.Table]) -> Any:
        tables = [shape(case[end], str(number)) for number, case in enumerate(several)]
        return spark.createDataFrame(pa.concat_tables([shape([NOBODY], "nobody's"), *tables]))

    meeting = meet(
        {str(number): vc.question_of(case, str(number)) for number, case in enumerate(several)},
        frame("history", vc.history_of),
        frame("accepted", _accepted_of),
        block_rows=7,
    )
    findings = meeting.findings.toArrow().cast(schemas.FINDING)
    meeting.release()
    return [
        (meeting.counts[str(number)], findings.filter(pc.equal(findings["lane"], str(number))))
        for number in range(len(several))
    ]


def _accepted_of(accepted: list[dict[str, Any]], lane: str) -> pa.Table:
    """Entries as an identity column numbers them, from 1."""
    table = vc.accepted_of(accepted, lane)
    at = table.column_names.index("entry")
    return table.set_column(at, table.schema.field(at), pc.add(table["entry"], 1))
