"""Acknowledged coordinates beside the evidence: cut to a range, and which of them the record holds all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.evidence_places import Stored, Written
from workers.connectors.readings import CoordinateRange
from workers.evidence import schemas
from workers.evidence.kernel import LaneQuestion
from workers.evidence.kernel.questions import rows_of
from workers.evidence.store import ACKNOWLEDGED, part_write, parts_read

KEYS = ["position", "ordinal"]
NONE = schemas.HISTORY.empty_table().select(KEYS)


def acknowledged_narrow(question: LaneQuestion, range_: CoordinateRange) -> LaneQuestion:
    """The question with the acknowledged coordinates of this range alone: what lies elsewhere cannot be met here."""
    listed = question.acknowledged
    if listed is None or listed.num_rows == 0 or (range_.low is None and range_.high is None):
        return question
    rows = rows_of(listed, by_payload=False)
    inside = np.ones(len(rows), bool)
    if range_.low is not None:
        inside &= ~rows.below(range_.low)
    if range_.high is not None:
        inside &= rows.below(range_.high)
    return replace(question, acknowledged=listed.filter(pa.array(inside)))


def acknowledged_accepted(question: LaneQuestion, findings: pa.Table, accepted: pa.Table) -> pa.Table:
    """The acknowledged coordinates that the record holds, and neither as lost nor as altered: accepted all the same."""
    listed = question.acknowledged
    if listed is None or listed.num_rows == 0 or accepted.num_rows == 0:
        return NONE
    if "ordinal" not in listed.column_names:
        listed = listed.append_column("ordinal", pa.array(np.zeros(listed.num_rows, np.int64)))
    held = listed.join(accepted.select(KEYS), KEYS, join_type="left semi")
    wrong = pc.is_in(findings["finding"], value_set=pa.array(["lost", "premature"], findings["finding"].type))
    return held.join(findings.filter(wrong).select(KEYS), KEYS, join_type="left anti").select(KEYS)


def acknowledged_write(url: str, index: int, lane: str, found: list[pa.Table]) -> list[Written]:
    """Keeps what was acknowledged and is accepted all the same, of one range."""
    held = pa.concat_tables([NONE, *found])
    lanes = pa.repeat(pa.scalar(lane), held.num_rows)
    return part_write(url, ACKNOWLEDGED, index, held.append_column("lane", lanes))


def acknowledged_read(stored: Stored) -> Iterator[tuple[str, list[int], list[int]]]:
    """(lane, positions, ordinals) of what was acknowledged and is accepted all the same, part by part."""
    for _, table in parts_read(stored, ACKNOWLEDGED, schemas.COORDINATE):
        yield str(table["lane"][0]), table["position"].to_pylist(), table["ordinal"].to_pylist()
