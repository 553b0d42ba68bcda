"""The verdict of one block of coordinates: findings, and counts that a fold can add up (THEORY section 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from recovery_api.domain.coordinates import Coordinate
from workers.evidence import schemas
from workers.evidence.kernel.causes import ALTERED as ALTERED
from workers.evidence.kernel.causes import CAUSE_COUNTS, UNKNOWN, causes_find
from workers.evidence.kernel.meeting import Keys, Met, coordinate_keys, first_at, meet
from workers.evidence.kernel.questions import (
    LaneQuestion,
    Rows,
    coordinate_max,
    coordinate_min,
    in_scope,
    rows_of,
)


@dataclass(frozen=True)
class BlockVerdict:
    """`counts`: names of recovery_api.domain.verdicts.LaneCounts and the block's bounds. `findings`: schemas.FINDING."""

    counts: dict[str, int | None]
    findings: pa.Table


def judge_block(
    question: LaneQuestion, history: pa.Table, accepted: pa.Table, journal: pa.Table | None = None
) -> BlockVerdict:
    """The verdict of one contiguous range of coordinates of one lane.

    `history` and `accepted` hold every row of the range, below and above the frontier; `journal` None: the history is
    the journal (as far as `question.has_journal` says so). Columns: position; ordinal where any is not zero;
    payload_digest on every side, or on none and then rows match by coordinate; key where a scope is asked; entry (on
    the history: committed order; on the record: shown in findings); head_position and head_ordinal.

    By coordinate alone an altered payload cannot be seen and every further entry at a coordinate counts as its
    duplicate: use it only where `coordinates_repeated` and the premature counts are zero, and say so.

    Raises: BadInput.
    """
    sides = [history, accepted] if journal is None else [history, accepted, journal]
    by_payload = all("payload_digest" in side.column_names for side in sides)
    kept, record = rows_of(history, by_payload), rows_of(accepted, by_payload)
    whole = kept if journal is None else rows_of(journal, by_payload)
    keys = coordinate_keys(kept, whole, record)
    met = meet(kept, whole, record, keys)

    retained_lost, retained_owed = _lost(question, kept, met.history_accepted, from_floor=True)
    journal_lost, journal_owed = _lost(question, whole, met.journal_accepted, from_floor=False)
    causes, seen_earlier = causes_find(question, record, whole, keys, met)
    lost, lost_counts = _lost_findings(question, kept, whole, record, keys, met, retained_lost, journal_lost)
    premature, premature_counts = _premature_findings(question, whole, record, keys, causes)
    repeated, payloads, copies = _repeated_findings(question, record, met)

    counts: dict[str, int | None] = {
        "history_rows": len(kept),
        "journal_rows": len(whole),
        "accepted_rows": len(record),
        "obligations_retained": retained_owed,
        "obligations_journal": journal_owed,
        "lost_retained": len(retained_lost),
        "lost_journal": len(journal_lost),
        "floor_uncovered": 0 if question.floor is None else _count_below(whole, journal_lost, question.floor),
        "duplicate_payloads": payloads,
        "duplicate_copies": copies,
        "justified_earlier": seen_earlier,
        "rows_by_coordinate": 0 if by_payload else len(kept) + len(record),
        **lost_counts,
        **premature_counts,
        **_bounds(kept, keys, met),
    }
    return BlockVerdict(counts, pa.concat_tables([lost, premature, repeated]))


def history_counts(question: LaneQuestion, history: pa.Table) -> dict[str, int | None]:
    """What the history alone tells of its range: obligations, and whether coordinates ascend. Nothing is judged lost."""
    kept = rows_of(history, by_payload=False)
    none = rows_of(history.slice(0, 0), by_payload=False)
    keys = coordinate_keys(kept, kept, none)
    met = meet(kept, kept, none, keys)
    _, retained_owed = _lost(question, kept, met.history_accepted, from_floor=True)
    _, journal_owed = _lost(question, kept, met.history_accepted, from_floor=False)
    return {
        "history_rows": len(kept),
        "journal_rows": len(kept),
        "obligations_retained": retained_owed,
        "obligations_journal": journal_owed,
        **_bounds(kept, keys, met),
    }


def _lost(question: LaneQuestion, rows: Rows, is_accepted: np.ndarray, from_floor: bool) -> tuple[np.ndarray, int]:
    """Row numbers of the obligations that the record does not hold, and how many obligations there are."""
    owed = rows.at_or_below(question.frontier)
    if from_floor and question.floor is not None:
        owed &= ~rows.below(question.floor)
    inside = in_scope(rows, question.scope)
    if inside is not None:
        owed &= inside
    count = int(np.count_nonzero(owed))
    owed &= ~is_accepted
    return np.flatnonzero(owed), count


def _count_below(rows: Rows, numbers: np.ndarray, floor: Coordinate) -> int:
    return int(np.count_nonzero(rows.below(floor)[numbers]))


def _lost_findings(
    question: LaneQuestion,
    kept: Rows,
    whole: Rows,
    record: Rows,
    keys: Keys,
    met: Met,
    retained_lost: np.ndarray,
    journal_lost: np.ndarray,
) -> tuple[pa.Table, dict[str, int]]:
    """One row a lost event. With a journal of its own, an event that both hold is one row."""
    if whole is kept:
        below = np.setdiff1d(journal_lost, retained_lost, assume_unique=True)
        parts = [(kept, keys.history, retained_lost, True, retained_lost), (kept, keys.history, below, False, below)]
    else:
        partner, alone = _paired(kept, whole, keys, retained_lost, journal_lost)
        parts = [(kept, keys.history, retained_lost, True, partner), (whole, keys.journal, alone, False, alone)]
    tables = [schemas.FINDING.empty_table()]
    counts = dict.fromkeys(("lost", "acknowledged", "acknowledged_retained", "lost_hidden"), 0)
    for rows, key, numbers, is_retained, in_journal in parts:
        if len(numbers) == 0:
            continue
        hiding = _hiding(key[numbers], whole is kept, record, keys, met)
        is_acknowledged = _acknowledged(question, rows, numbers)
        tables.append(
            _findings(
                question,
                "lost",
                rows,
                numbers,
                is_acknowledged=pa.array(is_acknowledged),
                is_retained=pa.array(np.full(len(numbers), is_retained)),
                is_in_journal=pa.array(in_journal >= 0),
                journal_entry=_entries(whole, in_journal),
                is_keyed_hidden=pa.array(hiding >= 0),
                history_digest=_digests(rows, numbers),
                accepted_digest=_digests(record, hiding),
            )
        )
        counts["lost"] += len(numbers)
        counts["acknowledged"] += int(np.count_nonzero(is_acknowledged))
        counts["acknowledged_retained"] += int(np.count_nonzero(is_acknowledged)) if is_retained else 0
        counts["lost_hidden"] += int(np.count_nonzero(hiding >= 0)) if is_retained else 0
    return pa.concat_tables(tables), counts


def _hiding(lost: np.ndarray, is_one_history: bool, record: Rows, keys: Keys, met: Met) -> np.ndarray:
    """For each lost coordinate an accepted row at it, with another payload, or -1."""
    if record.words is None:
        return np.full(len(lost), -1, np.int64)
    if not is_one_history or met.repeated_coordinates:
        return first_at(lost, keys.accepted)
    unmet = met.unmet_rows  # where every coordinate is its event's own, only these can be in the way
    found = first_at(lost, keys.accepted[unmet])
    found[found >= 0] = unmet[found[found >= 0]]
    return found


def _paired(
    kept: Rows, whole: Rows, keys: Keys, retained_lost: np.ndarray, journal_lost: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each retained lost row the journal row of the same event, or -1; and the journal lost rows left over.

    The n-th copy of a payload on one side is the n-th on the other.
    """
    columns = [np.concatenate([keys.history[retained_lost], keys.journal[journal_lost]])]
    if kept.words is not None and whole.words is not None:
        columns = [*np.concatenate([kept.words[retained_lost], whole.words[journal_lost]]).T, *columns]
    count = len(retained_lost)
    partner = np.full(count, -1, np.int64)
    if count == 0 or len(journal_lost) == 0:
        return partner, journal_lost
    is_journal = np.arange(len(columns[0])) >= count
    order = np.lexsort([is_journal, *columns])
    starts = np.ones(len(order), bool)
    starts[1:] = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    group = np.cumsum(starts) - 1
    first = np.flatnonzero(starts)
    retained_copies = np.bincount(group[~is_journal[order]], minlength=len(first))
    journal_copies = np.bincount(group) - retained_copies
    place = np.arange(len(order)) - first[group]
    has_partner = np.flatnonzero(~is_journal[order] & (place < journal_copies[group]))
    taken = order[has_partner + retained_copies[group[has_partner]]] - count
    partner[order[has_partner]] = journal_lost[taken]
    return partner, np.delete(journal_lost, taken)


def _entries(rows: Rows, numbers: np.ndarray) -> pa.Array:
    """Committed order of these rows; null where there is no row (-1) or the history gives none."""
    if "entry" not in rows.table.column_names:
        return pa.nulls(len(numbers), pa.int64())
    taken = rows.table["entry"].take(pa.array(numbers, mask=numbers < 0))
    return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken


def _acknowledged(question: LaneQuestion, rows: Rows, numbers: np.ndarray) -> np.ndarray:
    if question.acknowledged is None or question.acknowledged.num_rows == 0 or len(numbers) == 0:
        return np.zeros(len(numbers), bool)
    listed = rows_of(question.acknowledged, by_payload=False)
    lost = Rows(rows.table, rows.position[numbers], None if rows.ordinal is None else rows.ordinal[numbers], None)
    keys = coordinate_keys(lost, lost, listed)
    return np.isin(keys.history, keys.accepted)


def _premature_findings(
    question: LaneQuestion, journal: Rows, record: Rows, keys: Keys, causes: dict[str, np.ndarray]
) -> tuple[pa.Table, dict[str, int]]:
    tables = [schemas.FINDING.empty_table()]
    counts = dict.fromkeys(CAUSE_COUNTS.values(), 0)
    for cause, numbers in causes.items():
        counts[CAUSE_COUNTS[cause]] += len(numbers)
        if len(numbers):
            committed = (
                first_at(keys.accepted[numbers], keys.journal) if cause == ALTERED else np.full(len(numbers), -1)
            )
            tables.append(
                _findings(
                    question,
                    "unknown" if cause in UNKNOWN else "premature",
                    record,
                    numbers,
                    cause=pa.repeat(pa.scalar(cause), len(numbers)),
                    history_digest=_digests(journal, committed),
                    accepted_digest=_digests(record, numbers),
                )
            )
    return pa.concat_tables(tables), counts


def _repeated_findings(question: LaneQuestion, record: Rows, met: Met) -> tuple[pa.Table, int, int]:
    """One row a payload that the record holds more than once, at its first entry."""
    if len(met.repeated_rows) == 0:
        return schemas.FINDING.empty_table(), 0, 0
    entry = record.integers("entry")
    rank = met.repeated_rows if entry is None else entry[met.repeated_rows]
    order = np.lexsort((rank, met.repeated_identity))
    identity = met.repeated_identity[order]
    _, first, times = np.unique(identity, return_index=True, return_counts=True)
    numbers = met.repeated_rows[order[first]]
    table = _findings(
        question,
        "duplicate",
        record,
        numbers,
        accepted_count=pa.array(times, pa.int64()),
        accepted_digest=_digests(record, numbers),
    )
    return table, len(numbers), int(times.sum()) - len(numbers)


def _findings(question: LaneQuestion, finding: str, rows: Rows, numbers: np.ndarray, **columns: pa.Array) -> pa.Table:
    columns |= {
        "finding": pa.repeat(pa.scalar(finding), len(numbers)),
        "lane": pa.repeat(pa.scalar(question.lane), len(numbers)),
        "position": pa.array(rows.position[numbers]),
        "ordinal": pa.array(np.zeros(len(numbers), np.int64) if rows.ordinal is None else rows.ordinal[numbers]),
        "entry": _entries(rows, numbers),
    }
    return pa.table(
        [columns.get(field.name, pa.nulls(len(numbers), field.type)) for field in schemas.FINDING],
        schema=schemas.FINDING,
    )


def _digests(rows: Rows, numbers: np.ndarray) -> pa.Array:
    """Payload digests of these rows; null where there is no row (-1) or the reading has no digests."""
    if rows.words is None or len(numbers) == 0 or len(rows) == 0:
        return pa.nulls(len(numbers), schemas.DIGEST)
    held = np.ascontiguousarray(rows.words[np.maximum(numbers, 0)])
    is_held = pa.py_buffer(np.packbits(numbers >= 0, bitorder="little"))
    return pa.FixedSizeBinaryArray.from_buffers(schemas.DIGEST, len(numbers), [is_held, pa.py_buffer(held)])


def _bounds(history: Rows, keys: Keys, met: Met) -> dict[str, int | None]:
    """What the fold needs to see whether coordinates ascend across blocks."""
    low, high = coordinate_min(history.position, history.ordinal), coordinate_max(history.position, history.ordinal)
    entry = history.integers("entry") if len(history) else None
    descending = 0
    if entry is not None:
        ordered = entry if bool((keys.history[1:] >= keys.history[:-1]).all()) else entry[np.argsort(keys.history)]
        descending = int(np.count_nonzero(ordered[1:] <= ordered[:-1]))
    return {
        "coordinates_repeated": met.repeated_coordinates,
        "entries_descending": descending,
        "first_position": low.position if low else None,
        "first_ordinal": low.ordinal if low else None,
        "last_position": high.position if high else None,
        "last_ordinal": high.ordinal if high else None,
        "first_entry": None if entry is None else int(entry.min()),
        "last_entry": None if entry is None else int(entry.max()),
    }
