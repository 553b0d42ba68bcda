"""Which accepted rows are not justified, and why: by the journal, by their heads, by what earlier audits saw."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from workers.evidence.kernel.meeting import Keys, Met, coordinate_keys, first_at, meet
from workers.evidence.kernel.questions import LaneQuestion, Rows, at_or_below, rows_of

NEVER_COMMITTED = "never committed"
ALTERED = "altered"
AHEAD = "ahead of its commit"
HEAD_NOT_BELIEVED = "head not believed"
BELOW_FLOOR = "below the floor, no journal"
NOT_READ = "not in the history as far as it was read"
ROW_GONE = "row gone, commit not seen"
UNKNOWN = (BELOW_FLOOR, NOT_READ, ROW_GONE)
"""Of these nothing that was read shows whether they were committed."""

CAUSE_COUNTS = {
    NEVER_COMMITTED: "premature_never_committed",
    ALTERED: "premature_altered",
    AHEAD: "premature_ahead",
    HEAD_NOT_BELIEVED: "premature_head_not_believed",
    **dict.fromkeys(UNKNOWN, "justification_unknown"),
}


def causes_find(
    question: LaneQuestion, record: Rows, journal: Rows, keys: Keys, met: Met
) -> tuple[dict[str, np.ndarray], int]:
    """The accepted rows that are not justified, by the first cause that holds, as row numbers; and how many are only
    because an earlier audit saw them committed."""
    unknown = met.unmet_rows
    has_coordinate = np.zeros(len(unknown), bool)
    if record.words is not None:
        has_coordinate = first_at(keys.accepted[unknown], keys.journal) >= 0
    ahead, beyond = _heads_broken(question, record)
    nowhere = unknown[~has_coordinate]
    is_seen = _seen(question, record, nowhere)
    causes = {ALTERED: unknown[has_coordinate], NEVER_COMMITTED: nowhere[~is_seen]}
    is_bounded = question.floor is not None or not question.is_history_whole or question.rows_go
    if not question.has_journal and is_bounded and len(causes[NEVER_COMMITTED]):
        nowhere = causes[NEVER_COMMITTED]
        may_be_missing = np.ones(len(nowhere), bool)
        if question.is_history_whole and not question.rows_go and question.floor is not None:
            may_be_missing = record.below(question.floor)[nowhere]
        is_wrong = _among(nowhere, ahead) | _among(nowhere, beyond) | _listed(question.premature, record, nowhere)
        is_hidden = may_be_missing & ~is_wrong
        causes[NEVER_COMMITTED] = nowhere[~is_hidden]
        causes[_hidden_cause(question)] = nowhere[is_hidden]
    causes[AHEAD] = np.setdiff1d(ahead, unknown, assume_unique=True)
    causes[HEAD_NOT_BELIEVED] = np.setdiff1d(beyond, np.concatenate([unknown, ahead]))
    return causes, int(np.count_nonzero(is_seen))


def _hidden_cause(question: LaneQuestion) -> str:
    if not question.is_history_whole:
        return NOT_READ
    return ROW_GONE if question.rows_go else BELOW_FLOOR


def _seen(question: LaneQuestion, record: Rows, numbers: np.ndarray) -> np.ndarray:
    """Which of these rows an earlier audit saw, and did not doubt. A record that does not show who admitted a row shows
    none of it."""
    admitted = record.integers("admitted_in")
    if question.admitted_below is None or admitted is None or len(numbers) == 0:
        return np.zeros(len(numbers), bool)
    is_seen = admitted[numbers] < question.admitted_below
    return is_seen & ~_listed(question.doubted, record, numbers)


def _listed(listed: pa.Table | None, record: Rows, numbers: np.ndarray) -> np.ndarray:
    """Which of these rows are among `listed`: by coordinate and content."""
    if listed is None or listed.num_rows == 0 or len(numbers) == 0:
        return np.zeros(len(numbers), bool)
    others = rows_of(listed, by_payload=record.words is not None)
    mine = Rows(
        record.table,
        record.position[numbers],
        None if record.ordinal is None else record.ordinal[numbers],
        None if record.words is None else record.words[numbers],
    )
    return meet(mine, mine, others, coordinate_keys(mine, mine, others)).history_accepted


def _heads_broken(question: LaneQuestion, record: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose head lies below their coordinate, and rows whose head lies past everything committed."""
    none = np.empty(0, np.int64)
    names = record.table.column_names
    if "head_position" not in names or record.table["head_position"].null_count == len(record):
        return none, none
    column = record.table["head_position"]
    is_given = column.is_valid().to_numpy()
    position = column.fill_null(0).to_numpy()
    ordinal = None
    if "head_ordinal" in names:
        ordinal = record.table["head_ordinal"].fill_null(0).to_numpy()
        ordinal = ordinal if ordinal.any() else None
    if record.ordinal is None and ordinal is None:
        is_ahead = is_given & (position < record.position)
    else:
        zero = np.zeros(len(record), np.int64)
        head, own = zero if ordinal is None else ordinal, zero if record.ordinal is None else record.ordinal
        is_ahead = is_given & ((position < record.position) | ((position == record.position) & (head < own)))
    if question.journal_head is None:
        is_beyond = is_given if question.has_journal else np.zeros(len(record), bool)
    else:
        is_beyond = is_given & ~at_or_below(position, ordinal, question.journal_head)
    return np.flatnonzero(is_ahead), np.flatnonzero(is_beyond)


def _among(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.isin(rows, others) if len(others) else np.zeros(len(rows), bool)
