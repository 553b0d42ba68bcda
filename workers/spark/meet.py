"""The cogrouped way to meet: where an end cannot be asked by coordinate, both sides are hashed to blocks and cogrouped.

A block is a range of coordinates of one lane, so whatever a verdict compares lies in one block; the kernel judges it,
and the counts fold on the driver. Many lanes are one job. Findings stay in a DataFrame.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import FencepostError
from recovery_api.domain.verdicts import LaneCounts
from workers.evidence import schemas
from workers.evidence.kernel import LaneQuestion, fold, judge_block
from workers.spark.session import engine_errors_mapped, error_rows_raise, session_get

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BLOCK_ROWS = 500_000
"""Rows of both sides that one block is made for: about 100 MB as Arrow with keys and digests, several times less than
what a Python worker may take, so that a block that came out larger (one position with many rows) still fits."""

QUANTILES = 255
"""How finely block bounds can lie: enough for a hundred million rows a lane at BLOCK_ROWS."""

HISTORY_COLUMNS = ("lane", "position", "ordinal", "entry", "key", "payload_digest")
ACCEPTED_COLUMNS = ("lane", "position", "ordinal", "payload_digest", "head_position", "head_ordinal", "entry")

VERDICT = pa.schema(
    [
        pa.field("row", pa.string()),  # counts | finding | error
        pa.field("counts", pa.string()),  # of the block, as JSON; of an error its code and data
        *(
            pa.field(name, pa.binary() if kind == schemas.DIGEST else kind)
            for name, kind in zip(schemas.FINDING.names, schemas.FINDING.types, strict=True)
        ),
    ]
)
_SPARK_TYPES = {pa.string(): "string", pa.int64(): "bigint", pa.bool_(): "boolean", pa.binary(): "binary"}
VERDICT_DDL = ", ".join(f"`{field.name}` {_SPARK_TYPES[field.type]}" for field in VERDICT)


@dataclass(frozen=True)
class Meeting:
    """The answers of one job. `findings`: schemas.FINDING of every lane. `unasked`: rows of lanes nobody asked about.

    `release` frees what the engine keeps for `findings`.
    """

    counts: dict[str, LaneCounts]
    findings: DataFrame
    unasked: dict[str, int]
    release: Callable[[], Any]


def meet(
    questions: Mapping[str, LaneQuestion],
    history: DataFrame,
    accepted: DataFrame,
    journal: DataFrame | None = None,
    journal_lanes: Collection[str] | None = None,
    block_rows: int = BLOCK_ROWS,
) -> Meeting:
    """Judges every lane asked about, in one job.

    DataFrames in the shapes of workers.evidence.schemas; `payload_digest` never null. `journal_lanes`: which lanes have
    a journal of their own, None: all, where `journal` is given. Heads are taken from the data: `journal_head` of a
    question is not read.

    Raises: BadInput from the kernel; EngineUnavailable.
    """
    from pyspark.sql import functions as f

    separate = frozenset(questions if journal_lanes is None else journal_lanes) if journal is not None else frozenset()
    kept = history.select(*HISTORY_COLUMNS, f.lit("history").alias("end"))
    if journal is not None:
        kept = kept.unionByName(journal.select(*HISTORY_COLUMNS, f.lit("journal").alias("end")))
    record = accepted.select(*ACCEPTED_COLUMNS)
    with engine_errors_mapped():
        heads, bounds, unasked = _survey(questions, kept, record, separate, block_rows)
        asked = {lane: replace(question, journal_head=heads.get(lane)) for lane, question in questions.items()}
        verdicts = (
            _blocked(kept, asked, bounds)
            .groupBy("lane", "block")
            .cogroup(_blocked(record, asked, bounds).groupBy("lane", "block"))
            .applyInArrow(_judge_with(asked, separate), VERDICT_DDL)
            .persist()
        )
        rows = verdicts.filter(f.col("row") != "finding").select("row", "lane", "counts").collect()
    error_rows_raise([json.loads(row.counts) for row in rows if row.row == "error"])
    by_lane: dict[str, list[dict[str, Any]]] = {lane: [] for lane in questions}
    for row in rows:
        by_lane[row.lane].append(json.loads(row.counts))
    return Meeting(
        counts={lane: fold(blocks) for lane, blocks in by_lane.items()},
        findings=verdicts.filter(f.col("row") == "finding").select(*schemas.FINDING.names),
        unasked=unasked,
        release=verdicts.unpersist,
    )


def files_meet(question: LaneQuestion, paths: Mapping[str, Path]) -> tuple[LaneCounts, pa.Table]:
    """One lane from Parquet files in the shapes of evidence, on storage that the engine shares: counts and findings."""
    session = session_get()
    with engine_errors_mapped():
        ends = {end: session.read.parquet(str(path.resolve())) for end, path in paths.items()}
    meeting = meet({question.lane: question}, ends["history"], ends["accepted"], ends.get("journal"))
    try:
        with engine_errors_mapped():
            findings = meeting.findings.toArrow()
    finally:
        meeting.release()
    return meeting.counts[question.lane], findings.cast(schemas.FINDING)


def _survey(
    questions: Mapping[str, LaneQuestion],
    kept: DataFrame,
    record: DataFrame,
    separate: frozenset[str],
    block_rows: int,
) -> tuple[dict[str, Coordinate], dict[str, list[int]], dict[str, int]]:
    """One small aggregation: each lane's journal head and rows; a second one where a lane is more than one block, for
    bounds between which lie about `block_rows` rows.
    """
    from pyspark.sql import functions as f

    coordinate = f.struct("position", "ordinal")
    places = kept.select("lane", "position", "ordinal", "end").unionByName(
        record.select("lane", "position", "ordinal", f.lit("accepted").alias("end"))
    )
    surveyed = (
        places.groupBy("lane")
        .agg(
            f.count(f.lit(1)).alias("rows"),
            f.max(f.when(f.col("end") == "history", coordinate)).alias("history"),
            f.max(f.when(f.col("end") == "journal", coordinate)).alias("journal"),
        )
        .select("lane", "rows", "history", "journal")
        .collect()
    )
    heads, unasked, large = {}, {}, {}
    for row in surveyed:
        if row.lane not in questions:
            unasked[row.lane] = row.rows
            continue
        head = row.journal if row.lane in separate else row.history
        if head is not None:
            heads[row.lane] = Coordinate(head.position, head.ordinal)
        if row.rows > block_rows:
            large[row.lane] = row.rows
    return heads, _bounds(places, large, block_rows) if large else {}, unasked


def _bounds(places: DataFrame, large: Mapping[str, int], block_rows: int) -> dict[str, list[int]]:
    """Positions between which lie about `block_rows` rows, of each lane that has more."""
    from pyspark.sql import functions as f

    shares = f.array(*(f.lit(place / (QUANTILES + 1)) for place in range(1, QUANTILES + 1)))
    quantiles = (
        places.filter(f.col("lane").isin(list(large)))
        .groupBy("lane")
        .agg(f.percentile_approx("position", shares, f.lit(1000)).alias("quantiles"))
        .select("lane", "quantiles")
        .collect()
    )
    steps = {lane: max(1, block_rows * (QUANTILES + 1) // rows) for lane, rows in large.items()}
    return {row.lane: sorted(set(row.quantiles[steps[row.lane] - 1 :: steps[row.lane]])) for row in quantiles}


def _blocked(side: DataFrame, lanes: Collection[str], bounds: Mapping[str, list[int]]) -> DataFrame:
    """The rows of the lanes asked about, each with its block: how many of its lane's bounds lie at or below it."""
    from pyspark.sql import functions as f

    asked = side.filter(f.col("lane").isin(list(lanes)))
    if not bounds:
        return asked.select(*side.columns, f.lit(0).alias("block"))

    def is_below(bound: Column) -> Column:
        return bound <= f.col("position")

    split = side.sparkSession.createDataFrame(list(bounds.items()), "lane string, bounds array<bigint>")
    placed = asked.join(f.broadcast(split.select("lane", "bounds")), on="lane", how="left")
    block = f.when(f.col("bounds").isNull(), f.lit(0)).otherwise(f.size(f.filter("bounds", is_below)))
    return placed.select(*side.columns, block.alias("block"))


def _judge_with(
    questions: Mapping[str, LaneQuestion], separate: frozenset[str]
) -> Callable[[tuple[Any, ...], pa.Table, pa.Table], pa.Table]:
    """The function that runs on executors: one block in, its counts and findings out. Errors travel as rows."""

    def judge(key: tuple[Any, ...], kept: pa.Table, record: pa.Table) -> pa.Table:
        import pyarrow.compute as pc

        lane = key[0].as_py()
        is_journal = pc.equal(kept["end"], "journal")
        history = kept.filter(pc.invert(is_journal))
        journal = kept.filter(is_journal) if lane in separate else None
        try:
            verdict = judge_block(questions[lane], history, record, journal)
        except FencepostError as error:
            return _rows(pa.table({"row": ["error"], "lane": [lane], "counts": [json.dumps(error.as_row())]}))
        findings = verdict.findings.append_column("row", pa.repeat(pa.scalar("finding"), verdict.findings.num_rows))
        counts = pa.table({"row": ["counts"], "lane": [lane], "counts": [json.dumps(verdict.counts)]})
        return pa.concat_tables([_rows(counts), _rows(findings)])

    return judge


def _rows(table: pa.Table) -> pa.Table:
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in VERDICT
    ]
    return pa.table(columns, schema=VERDICT)
