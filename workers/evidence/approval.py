"""What a person approved, compared with what is owed now."""

from __future__ import annotations

import pyarrow as pa

from recovery_api.domain.evidence_places import Stored
from workers.connectors.readings import CoordinateRange
from workers.evidence import schemas
from workers.evidence.batch import batch_rows
from workers.evidence.kernel import LaneQuestion
from workers.evidence.store import FINDINGS, objects_in, range_filter, rows_read


def approval_read(
    approved: Stored, range_: CoordinateRange, question: LaneQuestion, excluded: pa.Table | None
) -> pa.Table:
    """What was approved of the range, at or below the frontier that is asked now."""
    objects = objects_in(approved.of(FINDINGS), range_)
    wanted = range_filter(range_, question.frontier)
    return batch_rows(rows_read(approved, objects, schemas.FINDING, wanted=wanted), excluded)


def approval_compare(promised: pa.Table, question: LaneQuestion, armed: pa.Table, accepted: pa.Table) -> dict[str, int]:
    """How the batch differs from what was approved of the same coordinates: only fewer is allowed, each of those found
    accepted or acknowledged since."""
    keys = ["position", "ordinal", "payload_digest"]
    newly = armed.select(keys).join(promised.select(keys), keys, join_type="left anti")
    gone = promised.select(keys).join(armed.select(keys), keys, join_type="left anti")
    unaccepted = gone.join(accepted.select(keys), keys, join_type="left anti")
    unexplained = unaccepted
    if question.acknowledged is not None:
        unexplained = unaccepted.join(question.acknowledged, ["position", "ordinal"], join_type="left anti")
    return {
        "approved": promised.num_rows,
        "not_approved": newly.num_rows,
        "landed_meanwhile": gone.num_rows - unaccepted.num_rows,
        "acknowledged_since": unaccepted.num_rows - unexplained.num_rows,
        "unexplained": unexplained.num_rows,
    }
