"""Events and entries brought together by message id: hashed by id and cogrouped, findings back to their ranges.

An id does not say where its event lies, so no task can read both ends of it alone: this is the one shuffle that cannot
be avoided. A second and smaller one takes findings back to the ranges that their events were read from, because a part
of the evidence is a range, in coordinate order.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from recovery_api.domain.errors import FencepostError
from workers.evidence import schemas
from workers.evidence.batch import batch_rows, rows_digest
from workers.evidence.folder import folder_error
from workers.evidence.kernel import ids as kernel
from workers.evidence.store import part_write
from workers.spark.session import engine_errors_mapped, error_rows_raise
from workers.spark.tasks import InProcess, session_chosen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK_ROWS = 500_000
"""Rows of both sides that one set of ids is made for: about 100 MB as Arrow."""

HISTORY, RECORD = "history", "record"
"""Which staged files hold which end: `history-00000.parquet`."""

MET = pa.schema(
    [
        pa.field("row", pa.string()),  # counts | finding | error
        pa.field("counts", pa.string()),  # of the set, as JSON; of an error its code and data
        *(
            pa.field(name, pa.binary() if kind == schemas.DIGEST else kind)
            for name, kind in zip(kernel.FINDING_IDS.names, kernel.FINDING_IDS.types, strict=True)
        ),
    ]
)
WRITTEN = pa.schema(
    [
        ("part", pa.int32()),
        ("findings", pa.int64()),
        ("batch", pa.int64()),
        ("digest", pa.string()),
        ("error", pa.string()),
    ]
)
_SPARK_TYPES = {
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
}


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"`{field.name}` {_SPARK_TYPES[field.type]}" for field in schema)


@dataclass(frozen=True)
class IdsMet:
    """`sets`: of each set of ids its counts, and the few ids that are named. `parts`: part -> findings, batch, digest."""

    sets: list[dict[str, Any]]
    parts: dict[int, dict[str, Any]]


def ids_meet(session: Any, question: kernel.IdQuestion, folder: str, rows: int, evidence: str) -> IdsMet:
    """Judges the staged files of `folder`, about `rows` rows of both sides; writes the parts of `evidence` with findings.

    Raises: Unsuitable from the kernel; EngineUnavailable.
    """
    session = session_chosen(session)
    if isinstance(session, InProcess):
        return _meet_here(question, folder, evidence)
    from pyspark.sql import functions as f

    with engine_errors_mapped():
        sides = [_hashed(_staged(session, folder, end), math.ceil(rows / BLOCK_ROWS) or 1) for end in (HISTORY, RECORD)]
        met = (
            sides[0]
            .groupBy("set")
            .cogroup(sides[1].groupBy("set"))
            .applyInArrow(_judge_with(question), _ddl(MET))
            .persist()
        )
        try:
            sets = met.filter(f.col("row") != "finding").select("row", "counts").toArrow().to_pylist()
            error_rows_raise(json.loads(one["counts"]) for one in sets if one["row"] == "error")
            written = (
                met.filter(f.col("row") == "finding")
                .select(*kernel.FINDING_IDS.names)
                .groupBy("part")
                .applyInArrow(_write_to(evidence), _ddl(WRITTEN))
                .toArrow()
                .to_pylist()
            )
        finally:
            met.unpersist()
    error_rows_raise(json.loads(one["error"]) for one in written if one["error"])
    return IdsMet([json.loads(one["counts"]) for one in sets], {one["part"]: one for one in written})


def _staged(session: Any, folder: str, end: str) -> DataFrame:
    names = (kernel.HISTORY_IDS if end == HISTORY else kernel.RECORD_IDS).names
    frame: DataFrame = session.read.parquet(str(Path(folder).resolve() / f"{end}-*.parquet")).select(*names)
    return frame


def _hashed(side: DataFrame, sets: int) -> DataFrame:
    from pyspark.sql import functions as f

    return side.select(*side.columns, f.pmod(f.xxhash64("id"), f.lit(sets)).alias("set"))


def _judge_with(question: kernel.IdQuestion) -> Callable[[tuple[Any, ...], pa.Table, pa.Table], pa.Table]:
    """The function that runs on executors: one set of ids in, its counts and findings out. Errors travel as rows."""

    def judge(_: tuple[Any, ...], history: pa.Table, record: pa.Table) -> pa.Table:
        try:
            verdict = kernel.judge_ids(
                question,
                history.select(kernel.HISTORY_IDS.names).cast(kernel.HISTORY_IDS),
                record.select(kernel.RECORD_IDS.names).cast(kernel.RECORD_IDS),
            )
        except FencepostError as error:
            return _rows(pa.table({"row": ["error"], "counts": [json.dumps(error.as_row(), default=str)]}))
        counts = pa.table({"row": ["counts"], "counts": [json.dumps(_set_row(verdict))]})
        findings = verdict.findings.append_column("row", pa.repeat(pa.scalar("finding"), verdict.findings.num_rows))
        return pa.concat_tables([_rows(counts), _rows(findings)])

    return judge


def _set_row(verdict: kernel.IdVerdict) -> dict[str, Any]:
    return {
        "counts": dict(verdict.counts),
        "unmatched": verdict.unmatched,
        "repeated": verdict.repeated,
        "oldest_lost_us": verdict.oldest_lost_us,
    }


def _rows(table: pa.Table) -> pa.Table:
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in MET
    ]
    return pa.table(columns, schema=MET)


def _write_to(evidence: str) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    def write(key: tuple[Any, ...], findings: pa.Table) -> pa.Table:
        row: dict[str, Any] = {"part": key[0].as_py(), "findings": 0, "batch": 0, "digest": "", "error": None}
        try:
            row |= part_of(evidence, key[0].as_py(), findings)
        except OSError as failure:
            if (away := folder_error(failure)) is None:
                raise
            row["error"] = json.dumps(away.as_row())
        return pa.Table.from_pylist([row], schema=WRITTEN)

    return write


def part_of(evidence: str, part: int, findings: pa.Table) -> dict[str, Any]:
    """Writes one part, its findings kind by kind in coordinate order, and says what it holds."""
    ordered = findings.sort_by([("finding", "ascending"), ("position", "ascending"), ("ordinal", "ascending")])
    table = ordered.select(schemas.FINDING.names).cast(schemas.FINDING)
    part_write(evidence, f"part-{part:05d}", table)
    batch = batch_rows(table)
    return {"part": part, "findings": table.num_rows, "batch": batch.num_rows, "digest": rows_digest(batch)}


def _meet_here(question: kernel.IdQuestion, folder: str, evidence: str) -> IdsMet:
    """The same in this process: all ids are one set."""
    history = _read(folder, HISTORY, kernel.HISTORY_IDS)
    verdict = kernel.judge_ids(question, history, _read(folder, RECORD, kernel.RECORD_IDS))
    found = verdict.findings
    numbers = sorted(set(found["part"].unique().to_pylist()))
    each = functools.partial(part_of, evidence)
    parts = {one: each(one, found.filter(ds.field("part") == one)) for one in numbers}
    return IdsMet([_set_row(verdict)], parts)


def _read(folder: str, end: str, schema: pa.Schema) -> pa.Table:
    files = sorted(str(path) for path in Path(folder).glob(f"{end}-*.parquet"))
    return ds.dataset(files, format="parquet", schema=schema).to_table()
