"""The image audit's job: both ends, archive and base read by tasks, hashed by key, and each set of keys judged.

What is shuffled is a key's hash, a coordinate and a digest. A task gives of each key its latest event alone, so a key with
many events crosses once for each range. Findings are written where they are found; what comes back is a row a set.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recovery_api.domain.errors import FencepostError
from recovery_api.domain.evidence_places import Stored, stored_make
from recovery_api.domain.images import SAMPLED, ImageCounts, ImageWord, counts_add
from workers.evidence.folder import folder_error
from workers.evidence.image_base import base_write
from workers.evidence.image_spec import MET, ImageSpec, piece_read
from workers.evidence.kernel.image import MEETING, image_judge
from workers.evidence.store import FINDINGS, part_write
from workers.spark.session import engine_errors_mapped, error_rows_raise
from workers.spark.tasks import InProcess, imports_freeze, session_chosen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SET_ROWS = 1_000_000
"""Rows of all sides that one set of keys is made for: about 120 MB as Arrow."""

MET_DDL = "side tinyint, key_hash binary, position bigint, ordinal bigint, digest binary, error string"
JUDGED = pa.schema(
    [
        ("set", pa.int64()),
        ("summary", pa.string()),
        ("sample", pa.string()),
        ("written", pa.string()),
        ("error", pa.string()),
    ]
)
JUDGED_DDL = "set bigint, summary string, sample string, written string, error string"
_WIRE = pa.schema([(one.name, pa.binary() if one.type == pa.binary(32) else one.type) for one in MET])


@dataclass(frozen=True, slots=True)
class ImageMet:
    """`sample`: of each word at most SAMPLED findings, as rows of IMAGE_FINDING with digests as hex."""

    counts: ImageCounts
    sample: list[dict[str, Any]]
    stored: Stored


def image_meet(session: Any, spec: ImageSpec) -> ImageMet:
    """Every key judged; findings are parts of the evidence. Raises: the first error that a task met, as itself."""
    session = session_chosen(session)
    if isinstance(session, InProcess):
        batches = [batch for index in range(len(spec.pieces)) for batch in piece_read(spec, index)]
        answers = [set_judge(spec, 0, pa.Table.from_batches(batches, schema=MET))]
    else:
        frame = session.range(0, len(spec.pieces), 1, len(spec.pieces)).mapInArrow(_read_with(spec), MET_DDL)
        with engine_errors_mapped():
            judged = _hashed(frame, spec.sets).groupBy("set").applyInArrow(_judge_with(spec), JUDGED_DDL)
            answers = judged.select("set", "summary", "sample", "written", "error").toArrow().to_pylist()
    error_rows_raise(json.loads(one["error"]) for one in answers if one["error"])
    counts = counts_add(ImageCounts(**json.loads(one["summary"])) for one in answers)
    sampled: dict[str, list[dict[str, Any]]] = {word.value: [] for word in ImageWord}
    for one in sorted(answers, key=lambda row: row["set"]):
        for row in json.loads(one["sample"]):
            if len(sampled[row["word"]]) < SAMPLED:
                sampled[row["word"]].append(row)
    written = stored_make(spec.evidence, (row for one in answers for row in json.loads(one["written"])))
    return ImageMet(counts, [row for rows in sampled.values() for row in rows], written)


def _hashed(frame: DataFrame, sets: int) -> DataFrame:
    from pyspark.sql import functions as f

    number = f.pmod(f.xxhash64("key_hash"), f.lit(sets))
    return frame.select(*_WIRE.names, number.alias("set"))


def _read_with(spec: ImageSpec) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                for rows in piece_read(spec, index):
                    yield rows.cast(_WIRE)
        imports_freeze()

    return read


def _judge_with(spec: ImageSpec) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    spec = replace(spec, pieces=())

    def judge(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        answer = set_judge(spec, key[0].as_py(), rows.select(MET.names).cast(MET))
        imports_freeze()
        return pa.Table.from_pylist([answer], schema=JUDGED)

    return judge


def set_judge(spec: ImageSpec, number: int, rows: pa.Table) -> dict[str, Any]:
    """One set of keys: its findings written, and its summary; or the error that a reading task met, or writing."""
    answer: dict[str, Any] = {"set": number, "summary": None, "sample": None, "written": None, "error": None}
    errors = rows["error"].drop_null()
    if len(errors):
        return answer | {"error": errors[0].as_py()}
    try:
        judged = image_judge(spec.question, rows.select(MEETING.names))
        written = part_write(spec.evidence, FINDINGS, number, judged.findings)
        if spec.question.has_base:
            written += base_write(spec.evidence, number, judged.base)
    except FencepostError as failure:
        return answer | {"error": json.dumps(failure.as_row(), default=str)}
    except OSError as failure:
        if (away := folder_error(failure)) is None:
            raise
        return answer | {"error": json.dumps(away.as_row())}
    return answer | {
        "summary": json.dumps(asdict(judged.counts)),
        "sample": json.dumps(_sample(judged.findings)),
        "written": json.dumps([one.as_row() for one in written]),
    }


def _sample(findings: pa.Table) -> list[dict[str, Any]]:
    """At most SAMPLED of each word."""
    import pyarrow.compute as pc

    each = functools.partial(pc.equal, findings["word"])
    first = [findings.filter(each(word.value)).slice(0, SAMPLED) for word in ImageWord]
    return [{name: _plain(value) for name, value in row.items()} for table in first for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
