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
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from recovery_api.domain.errors import FencepostError
from recovery_api.domain.evidence_places import Stored
from workers.evidence import schemas
from workers.evidence.batch import batch_rows, rows_digest
from workers.evidence.folder import folder_error
from workers.evidence.kernel import ids as kernel
from workers.evidence.store import FINDINGS, part_write, rows_read
from workers.spark.session import engine_errors_mapped, error_rows_raise
from workers.spark.stored import ddl_of, stored_frame
from workers.spark.tasks import InProcess, session_chosen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK_ROWS = 500_000
"""Rows of both sides that one set of ids is made for: about 100 MB as Arrow."""

HISTORY, RECORD = "staged-history", "staged-record"
"""The sorts of staged objects: which end they hold."""

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
        ("written", pa.string()),
        ("error", pa.string()),
    ]
)


@dataclass(frozen=True)
class IdsMet:
    """`sets`: of each set of ids its counts, and the few ids that are named. `parts`: part -> findings, batch, digest, and what was written."""

    sets: list[dict[str, Any]]
    parts: dict[int, dict[str, Any]]


def ids_meet(session: Any, question: kernel.IdQuestion, staged: Stored, rows: int, evidence: str) -> IdsMet:
    """Judges what is staged, about `rows` rows of both sides; writes the parts of `evidence` with findings.

    Raises: Unsuitable from the kernel; EngineUnavailable.
    """
    session = session_chosen(session)
    if isinstance(session, InProcess):
        return _meet_here(question, staged, evidence)
    from pyspark.sql import functions as f

    with engine_errors_mapped():
        sides = [_hashed(_staged(session, staged, end), math.ceil(rows / BLOCK_ROWS) or 1) for end in (HISTORY, RECORD)]
        met = (
            sides[0]
            .groupBy("set")
            .cogroup(sides[1].groupBy("set"))
            .applyInArrow(_judge_with(question), ddl_of(MET))
            .persist()
        )
        try:
            sets = met.filter(f.col("row") != "finding").select("row", "counts").toArrow().to_pylist()
            error_rows_raise(json.loads(one["counts"]) for one in sets if one["row"] == "error")
            written = (
                met.filter(f.col("row") == "finding")
                .select(*kernel.FINDING_IDS.names)
                .groupBy("part")
                .applyInArrow(_write_to(evidence), ddl_of(WRITTEN))
                .toArrow()
                .to_pylist()
            )
        finally:
            met.unpersist()
    error_rows_raise(json.loads(one["error"]) for one in written if one["error"])
    parts = {one["part"]: one | {"written": json.loads(one["written"])} for one in written}
    return IdsMet([json.loads(one["counts"]) for one in sets], parts)


def _staged(session: Any, staged: Stored, end: str) -> DataFrame:
    return stored_frame(session, staged, end, kernel.HISTORY_IDS if end == HISTORY else kernel.RECORD_IDS)


def _hashed(side: DataFrame, sets: int) -> DataFrame:
    from pyspark.sql import functions as f

    return side.select(*side.columns, f.pmod(f.xxhash64("id"), f.lit(sets)).alias("set"))


def _judge_with(question: kernel.IdQuestion) -> Callable[[tuple[Any, ...], pa.Table, pa.Table], pa.Table]:
    """The function that runs on executors: one set of ids in, its counts and findings out. Errors travel as rows."""

    def judge(_: tuple[Any, ...], history: pa.Table, record: pa.Table) -> pa.Table:
        met = [side["error"].drop_null() for side in (history, record)]
        if errors := [text for column in met for text in column.slice(0, 1).to_pylist()]:
            return _rows(pa.table({"row": ["error"], "counts": errors[:1]}))
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
        row: dict[str, Any] = {
            "part": key[0].as_py(),
            "findings": 0,
            "batch": 0,
            "digest": "",
            "written": "[]",
            "error": None,
        }
        try:
            told = part_of(evidence, key[0].as_py(), findings)
            row |= told | {"written": json.dumps(told["written"])}
        except FencepostError as failure:
            row["error"] = json.dumps(failure.as_row(), default=str)
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
    written = [one.as_row() for one in part_write(evidence, FINDINGS, part, table)]
    batch = batch_rows(table)
    counted = {"findings": table.num_rows, "batch": batch.num_rows, "digest": rows_digest(batch)}
    return {"part": part, **counted, "written": written}


def _meet_here(question: kernel.IdQuestion, staged: Stored, evidence: str) -> IdsMet:
    """The same in this process: all ids are one set."""
    history = rows_read(staged, staged.of(HISTORY), kernel.HISTORY_IDS)
    verdict = kernel.judge_ids(question, history, rows_read(staged, staged.of(RECORD), kernel.RECORD_IDS))
    found = verdict.findings
    numbers = sorted(set(found["part"].unique().to_pylist()))
    each = functools.partial(part_of, evidence)
    parts = {one: each(one, found.filter(ds.field("part") == one)) for one in numbers}
    return IdsMet([_set_row(verdict)], parts)
