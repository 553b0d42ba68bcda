"""The verdict cases that two tables can hold, through the co-partitioned path over real PostgreSQL, in one Spark job."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.evidence_places import stored_make
from tests.contract.verdict_cases import cases_file
from workers.connectors.readings import CoordinateRange, Width
from workers.evidence import ranges, schemas
from workers.evidence.kernel import LaneQuestion, fold
from workers.evidence.ranges import EndSpec, MeetSpec
from workers.evidence.store import FINDINGS, rows_read

pytestmark = pytest.mark.spark

FILES = ["verdicts.json", "verdicts_random.json"]


def fits_two_tables(case: dict[str, Any]) -> bool:
    """A table has no journal beside it, drops nothing, and its committed order is coordinate order."""
    coordinates = [event["coordinate"] for event in case["history"]]
    return case["journal"] is None and case["floor"] is None and coordinates == sorted(coordinates)


def tables_make(dsn: str, case: dict[str, Any], number: int) -> None:
    with psycopg.connect(dsn) as connection:
        for end, rows in (("history", case["history"]), ("accepted", case["accepted"])):
            table = sql.Identifier(f"{end}_{number}")
            connection.execute(
                sql.SQL(
                    "CREATE TABLE {} (entry bigint GENERATED ALWAYS AS IDENTITY, coordinate bigint NOT NULL, op text,"
                    ' "key" text, value jsonb, generation bigint, head bigint)'
                ).format(table)
            )
            connection.cursor().executemany(
                sql.SQL(
                    'INSERT INTO {} (coordinate, op, "key", value, generation, head) VALUES (%s, %s, %s, %s, %s, %s)'
                ).format(table),
                [
                    (
                        row["coordinate"],
                        row["op"],
                        row["key"],
                        json.dumps(row["value"]),
                        row.get("generation"),
                        row.get("head"),
                    )
                    for row in rows
                ],
            )


def ends_of(reference: Path) -> tuple[EndSpec, EndSpec]:
    """Source and sink over the first case's tables; `spec_of` names those of another."""
    options = {
        "connection": f"file:{reference}",
        "coordinate": ["coordinate"],
        "op": "op",
        "key": "key",
        "content": "value",
    }
    return (
        EndSpec("postgresql_outbox", {**options, "table": "history_0"}),
        EndSpec("postgresql_table", {**options, "table": "accepted_0", "head": ["head"], "entry": "entry"}),
    )


@pytest.mark.parametrize("name", FILES)
def test_cases_over_two_tables(name: str, spark: Any, database_factory: Callable[[str], str], tmp_path: Path) -> None:
    cases = [case for case in json.loads(cases_file(name).read_text())["cases"] if fits_two_tables(case)]
    dsn = database_factory("vectors")
    reference = tmp_path / "dsn"
    reference.write_text(dsn)
    for number, case in enumerate(cases):
        tables_make(dsn, case, number)
    source, sink = ends_of(reference)
    with source.source().hold_snapshot() as source_reading, sink.record().hold_snapshot() as sink_reading:
        lane = next(iter(source_reading.lanes))
        spec = MeetSpec(
            source,
            sink,
            source_reading,
            sink_reading,
            (CoordinateRange(lane, None, None),),
            {},
            Width.PAYLOAD,
            str(tmp_path / "evidence"),
        )
        specs = [spec_of(spec, case, number, lane, tmp_path) for number, case in enumerate(cases)]
        summaries = ranges.tasks_run(spark, len(specs), one_case_a_task(specs))
    failing = {
        case["id"]: differences
        for case, summary, one in zip(cases, summaries, specs, strict=True)
        if (differences := compare(case, summary, one))
    }
    assert not failing, failing


def spec_of(spec: MeetSpec, case: dict[str, Any], number: int, lane: str, tmp_path: Path) -> MeetSpec:
    head = max((event["coordinate"] for event in case["history"]), default=None)
    acknowledged = case["acknowledged_omissions"]
    question = LaneQuestion(
        lane=lane,
        frontier=Coordinate(case["frontier"]),
        journal_head=None if head is None else Coordinate(head),
        scope=None if case["scope"] is None else pa.array(case["scope"], pa.string()),
        acknowledged=pa.table({"position": pa.array(acknowledged, pa.int64())}) if acknowledged else None,
    )
    directory = tmp_path / "evidence" / str(number)
    directory.mkdir(parents=True)
    return replace(
        spec,
        source=replace(spec.source, options={**spec.source.options, "table": f"history_{number}"}),
        sink=replace(spec.sink, options={**spec.sink.options, "table": f"accepted_{number}"}),
        questions={lane: question},
        evidence=str(directory),
    )


def one_case_a_task(specs: list[MeetSpec]) -> Callable[[Any], Any]:
    def run(batches: Any) -> Any:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield ranges.summary_row(index, "0", lambda index=index: ranges.range_judge(specs[index], 0))

    return run


def compare(case: dict[str, Any], summary: dict[str, Any], spec: MeetSpec) -> dict[str, Any]:
    """What differs from the case's answers, by name; empty: nothing."""
    counts = fold([summary["counts"]])
    stored = stored_make(spec.evidence, summary["written"])
    rows = rows_read(stored, stored.of(FINDINGS), schemas.FINDING).to_pylist()
    delta = [row["position"] for row in rows if row["finding"] == "lost" and row["is_retained"]]
    repeated = [
        {"coordinate": row["position"], "count": row["accepted_count"]} for row in rows if row["finding"] == "duplicate"
    ]
    expect = case["expect"]
    premature = sorted(row["entry"] - 1 for row in rows if row["finding"] == "premature")
    found = {
        "coordinates_ascending": counts.coordinates_ascending,
        "hazard_free": counts.is_hazard_free,
        "premature": premature,
        "sink_delta": sorted(delta),
        "acknowledged": sorted({row["position"] for row in rows if row["is_acknowledged"]}),
        "duplicates": sorted(repeated, key=lambda row: (row["coordinate"], row["count"])),
    }
    wanted = {
        **{name: expect[name] for name in ("coordinates_ascending", "hazard_free", "acknowledged")},
        "premature": sorted(expect["premature"]),
        "sink_delta": sorted(expect["sink_delta"]),
        "duplicates": sorted(
            ({"coordinate": row["coordinate"], "count": row["count"]} for row in expect["duplicates"]),
            key=lambda row: (row["coordinate"], row["count"]),
        ),
    }
    return {name: (found[name], wanted[name]) for name in wanted if found[name] != wanted[name]}
