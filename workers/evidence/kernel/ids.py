"""The verdict of a record that knows only message ids: events and entries are matched by id.

A block here is a set of ids, the same on both sides, and never a range of coordinates: an id does not say where its
event lies. What needs the order of coordinates (condition P4, the frontier, the scope) is counted before, from the
history alone (`history_prepare`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import INT64_MAX, INT64_MIN, Coordinate
from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.identity import IdType
from workers.evidence import schemas
from workers.evidence.kernel.block import history_counts
from workers.evidence.kernel.questions import LaneQuestion, at_or_below, in_scope, one_array, rows_of

TRIMMED = "record trimmed"
UNTIMED = "commit time not known"
UNREADABLE = "the record holds ids that cannot be read"
RECEIVED = "received, not accepted"
CAUSE_COUNTS = {TRIMMED: "absent_trimmed", UNTIMED: "absent_untimed", UNREADABLE: "absent_unreadable"}

APART, OWED, ABOVE = 0, 1, 2
"""How an event stands to the question: out of scope; an obligation; in scope above the frontier."""

HISTORY_IDS = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("part", pa.int32()),  # which range of coordinates it lies in
        pa.field("position", pa.int64()),
        pa.field("ordinal", pa.int64()),
        pa.field("entry", pa.int64()),
        pa.field("committed_us", pa.int64()),  # microseconds since 1970, UTC; null: not known
        pa.field("standing", pa.int8()),  # APART | OWED | ABOVE
        pa.field("is_acknowledged", pa.bool_()),
        pa.field("payload_digest", pa.binary()),
    ]
)
"""The history as it meets a record of ids: `id` canonical, never null."""

RECORD_IDS = pa.schema([pa.field("id", pa.string()), pa.field("is_accepted", pa.bool_())])
"""A record of ids: one row an entry. `is_accepted` False: it was received, and the acceptance condition does not hold."""

EXAMPLES = 5
"""How many ids are named of what cannot be shown by coordinate."""


@dataclass(frozen=True)
class IdQuestion:
    """What an absent id means. Times in microseconds since 1970, UTC.

    `lost_since_us`: an absent event committed at or after it is lost; None: whenever it was committed. `believed_to_us`:
    a later commit time is not believed. `certified_below`: up to there an earlier audit found every id. `has_unreadable`:
    the record holds ids that cannot be the source's type, among which an absent one may be.
    """

    lane: str
    lost_since_us: int | None
    believed_to_us: int
    certified_below: Coordinate | None = None
    has_unreadable: bool = False


@dataclass(frozen=True)
class IdVerdict:
    """`counts`: names of recovery_api.domain.verdicts.LaneCounts, and `stranded`. `findings`: schemas.FINDING with `part`.

    `unmatched`, `repeated`: a few accepted ids that the history does not hold, and of those that come again.
    `oldest_lost_us`: when the oldest lost event was committed, acknowledged ones apart; None: none, or for ever the same.
    """

    counts: Mapping[str, int]
    findings: pa.Table
    unmatched: tuple[str, ...]
    repeated: tuple[str, ...]
    oldest_lost_us: int | None = None


FINDING_IDS = schemas.FINDING.append(pa.field("part", pa.int32()))

_UUID = "[0-9A-Fa-f]{4}(-?[0-9A-Fa-f]{4}){7}"
_UUIDS = rf"^(\{{{_UUID}\}}|\({_UUID}\)|([Uu][Rr][Nn]:[Uu][Uu][Ii][Dd]:)?{_UUID})$"
_NUMBERS = r"^[ \t]*[+-]?[0-9]+[ \t]*$"
_GREATEST, _LEAST = str(INT64_MAX), str(-INT64_MIN)


def ids_canonical(texts: pa.Array | pa.ChunkedArray, id_type: IdType) -> pa.ChunkedArray:
    """Each id in the one spelling in which equal ids of the type are equal texts; null for null and for what is none.

    >>> ids_canonical(pa.array(["{6F1C0B7E-1D2A-4C55-9A3E-0D9F5B7E2A10}", "7"]), IdType.UUID).to_pylist()
    ['6f1c0b7e1d2a4c559a3e0d9f5b7e2a10', None]
    >>> ids_canonical(pa.array(["+007", "-0", "9223372036854775808"]), IdType.BIGINT).to_pylist()
    ['7', '0', None]
    """
    given = pa.chunked_array([texts]) if isinstance(texts, pa.Array) else texts
    given = given.cast(pa.string())
    match id_type:
        case IdType.UUID:
            is_one = pc.match_substring_regex(given, _UUIDS)
            digits = pc.ascii_lower(pc.replace_substring_regex(given, r"^[Uu][Rr][Nn]:[Uu][Uu][Ii][Dd]:|[{}()-]", ""))
        case IdType.BIGINT:
            is_one, digits = _numbers(given)
        case _:
            return given
    return pc.if_else(pc.fill_null(is_one, False), digits, pa.scalar(None, pa.string()))


def _numbers(given: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    is_number = pc.match_substring_regex(given, _NUMBERS)
    is_below = pc.match_substring(given, "-")
    size = pc.replace_substring_regex(given, r"^[ \t]*[+-]?0*|[ \t]+$", "")
    size = pc.if_else(pc.equal(size, ""), "0", size)
    length = pc.binary_length(size)
    limit = pc.if_else(is_below, _LEAST, _GREATEST)
    fits = pc.or_(pc.less(length, 19), pc.and_(pc.equal(length, 19), pc.less_equal(size, limit)))
    signed = pc.if_else(pc.and_(is_below, pc.not_equal(size, "0")), pc.binary_join_element_wise("-", size, ""), size)
    return pc.and_(is_number, fits), signed


def history_prepare(
    question: LaneQuestion, history: pa.Table, id_type: IdType, part: int
) -> tuple[pa.Table, dict[str, int | None], list[str]]:
    """HISTORY_IDS of one range of coordinates, its counts for the fold, and the first ids that are none of the type.

    An obligation without an id the record could hold is counted (`ids_missing`), told, and matched with nothing.
    """
    rows = rows_of(history, by_payload=False)
    is_below = at_or_below(rows.position, rows.ordinal, question.frontier)
    inside = in_scope(rows, question.scope)
    standing = np.where(is_below, OWED, ABOVE).astype(np.int8)
    if inside is not None:
        standing[~inside] = APART
    ids = ids_canonical(history["event_id"], id_type)
    is_named = one_array(ids.is_valid().cast(pa.uint8())).view(np.bool_)
    counts = history_counts(question, history)
    counts["ids_missing"] = int(np.count_nonzero(~is_named & (standing == OWED)))
    strange = history["event_id"].filter(pa.array(~is_named & (standing == OWED))).drop_null()[:EXAMPLES].to_pylist()
    times = history["committed_at"].cast(schemas.TIME).cast(pa.int64())
    table = pa.table(
        {
            "id": ids,
            "part": pa.array(np.full(len(rows), part, np.int32)),
            "position": history["position"],
            "ordinal": history["ordinal"],
            "entry": history["entry"] if "entry" in history.column_names else pa.nulls(len(rows), pa.int64()),
            "committed_us": times,
            "standing": pa.array(standing),
            "is_acknowledged": pa.array(_acknowledged(question, rows.position, rows.ordinal)),
            "payload_digest": history["payload_digest"].cast(pa.binary()),
        },
        schema=HISTORY_IDS,
    )
    return table.filter(pa.array(is_named)), counts, strange


def record_prepare(record: pa.Table, id_type: IdType) -> tuple[pa.Table, int, list[str]]:
    """RECORD_IDS with canonical ids, how many accepted entries have none of the type, and the first of those."""
    ids = ids_canonical(record["event_id"], id_type)
    is_lost_to_us = pc.and_(pc.is_null(ids), record["is_accepted"])
    strange = record.filter(is_lost_to_us)["event_id"]
    first = [text if text is not None else "none" for text in strange[:EXAMPLES].to_pylist()]
    table = pa.table({"id": ids, "is_accepted": record["is_accepted"]}, schema=RECORD_IDS)
    return table.filter(ids.is_valid()), len(strange), first


def judge_ids(question: IdQuestion, history: pa.Table, record: pa.Table) -> IdVerdict:
    """The verdict of one set of ids: every row of HISTORY_IDS and RECORD_IDS whose id is in it.

    Raises: Unsuitable where an id comes twice at the source.
    """
    codes, names = _codes(history, record)
    of_event, of_entry = codes[: history.num_rows], codes[history.num_rows :]
    is_accepted = _booleans(record["is_accepted"])
    accepted_times = np.bincount(of_entry[is_accepted], minlength=len(names))
    received_times = np.bincount(of_entry, minlength=len(names))
    event_times = np.bincount(of_event, minlength=len(names))
    _twice_refuse(event_times, of_event, history, names)

    standing = one_array(history["standing"])
    is_absent = accepted_times[of_event] == 0
    absent = np.flatnonzero(is_absent & (standing == OWED))
    causes = _causes(question, history, absent, received_times[of_event])
    repeated = np.flatnonzero(accepted_times[of_event] > 1)
    foreign = event_times == 0
    is_acknowledged = _booleans(history["is_acknowledged"])
    findings = [
        _findings(question, history, rows, "lost" if cause is None or cause == RECEIVED else "unknown", cause)
        for cause, rows in causes.items()
        if len(rows)
    ]
    findings.append(_findings(question, history, repeated, "duplicate", None, accepted_times[of_event[repeated]]))
    lost = np.concatenate([causes[None], causes[RECEIVED]])
    unknown = np.concatenate([causes[cause] for cause in CAUSE_COUNTS])
    again = accepted_times > 1
    unmatched = foreign & (accepted_times > 0)
    return IdVerdict(
        counts={
            "accepted_rows": int(accepted_times.sum()),
            "lost": len(lost),
            "lost_retained": len(lost),
            "lost_journal": len(lost),
            "acknowledged": int(is_acknowledged[lost].sum()),
            "acknowledged_retained": int(is_acknowledged[lost].sum()),
            "absent_acknowledged": int(is_acknowledged[unknown].sum()),
            **{name: len(causes[cause]) for cause, name in CAUSE_COUNTS.items()},
            "duplicate_payloads": int(again.sum()),
            "duplicate_copies": int((accepted_times[again] - 1).sum()),
            "ids_unmatched": int(accepted_times[unmatched].sum()),
            "stranded": int(np.count_nonzero(is_absent & (standing == ABOVE))),
        },
        findings=pa.concat_tables([FINDING_IDS.empty_table(), *findings]),
        unmatched=_named(names, unmatched),
        repeated=_named(names, foreign & again),
        oldest_lost_us=_oldest(question, history, causes[None][~is_acknowledged[causes[None]]]),
    )


def _oldest(question: IdQuestion, history: pa.Table, lost: np.ndarray) -> int | None:
    if question.lost_since_us is None or not len(lost):
        return None
    return int(one_array(history["committed_us"].take(pa.array(lost))).min())


def _codes(history: pa.Table, record: pa.Table) -> tuple[np.ndarray, pa.Array]:
    """One number an id, the same on both sides, and the ids by that number."""
    both = pa.chunked_array([*history["id"].chunks, *record["id"].chunks], pa.string()).combine_chunks()
    encoded = pc.dictionary_encode(both)
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary


def _causes(
    question: IdQuestion, history: pa.Table, absent: np.ndarray, received_times: np.ndarray
) -> dict[str | None, np.ndarray]:
    """The absent obligations by what their absence shows, first cause that holds. None: lost.

    What an earlier audit found accepted is none of them where its row may be gone by now. Where the row must still be
    there, it is lost: the record has changed under us.
    """
    is_certified = np.zeros(len(absent), bool)
    if question.certified_below is not None:
        position, ordinal = (one_array(history[name])[absent] for name in ("position", "ordinal"))
        is_certified = at_or_below(position, ordinal, question.certified_below)
    is_received = received_times[absent] > 0
    left = ~is_received
    unreadable = left & question.has_unreadable
    left &= ~unreadable
    untimed = trimmed = np.zeros(len(absent), bool)
    if question.lost_since_us is not None:
        column = history["committed_us"]
        is_timed = _booleans(column.is_valid())[absent]
        times = column.fill_null(INT64_MAX).to_numpy()[absent]
        untimed = left & (~is_timed | (times > question.believed_to_us))
        trimmed = left & ~untimed & (times < question.lost_since_us)
    return {
        None: absent[left & ~untimed & ~trimmed],
        RECEIVED: absent[is_received],
        UNREADABLE: absent[unreadable & ~is_certified],
        UNTIMED: absent[untimed & ~is_certified],
        TRIMMED: absent[trimmed & ~is_certified],
    }


def _twice_refuse(event_times: np.ndarray, of_event: np.ndarray, history: pa.Table, names: pa.Array) -> None:
    twice = np.flatnonzero(event_times > 1)
    if not len(twice):
        return
    places = np.flatnonzero(of_event == twice[0])[:2]
    at = " and ".join(str(history["position"][int(place)].as_py()) for place in places)
    raise Unsuitable(
        f"id {names[int(twice[0])].as_py()!r}",
        f"is of two events at the source (positions {at}, as held), and {len(twice):,} ids are so",
        "An id can stand for an event only where no two share one: give each event its own, or map another column.",
    )


def _findings(
    question: IdQuestion,
    history: pa.Table,
    rows: np.ndarray,
    finding: str,
    cause: str | None,
    accepted_count: np.ndarray | None = None,
) -> pa.Table:
    count, taken = len(rows), history.take(pa.array(rows, pa.int64()))
    is_lost = finding == "lost"
    digest = taken["payload_digest"].cast(schemas.DIGEST)
    columns = {
        "finding": pa.repeat(pa.scalar(finding), count),
        "cause": pa.repeat(pa.scalar(cause, pa.string()), count),
        "lane": pa.repeat(pa.scalar(question.lane), count),
        **{name: taken[name] for name in ("position", "ordinal", "entry", "part")},
        "history_digest": digest,
    }
    if finding != "duplicate":
        columns["is_acknowledged"] = taken["is_acknowledged"]
    if is_lost:
        columns |= {name: pa.repeat(pa.scalar(True), count) for name in ("is_retained", "is_in_journal")}
        columns["is_keyed_hidden"] = pa.repeat(pa.scalar(False), count)
    if accepted_count is not None:
        columns["accepted_count"] = pa.array(accepted_count, pa.int64())
    return pa.table([columns.get(field.name, pa.nulls(count, field.type)) for field in FINDING_IDS], schema=FINDING_IDS)


def _acknowledged(question: LaneQuestion, position: np.ndarray, ordinal: np.ndarray | None) -> np.ndarray:
    if question.acknowledged is None or question.acknowledged.num_rows == 0:
        return np.zeros(len(position), bool)
    listed = rows_of(question.acknowledged, by_payload=False)
    own = np.zeros(len(position), np.int64) if ordinal is None else ordinal
    other = np.zeros(len(listed), np.int64) if listed.ordinal is None else listed.ordinal
    pair = [("position", np.int64), ("ordinal", np.int64)]
    mine, theirs = np.empty(len(position), pair), np.empty(len(listed), pair)
    mine["position"], mine["ordinal"], theirs["position"], theirs["ordinal"] = position, own, listed.position, other
    return np.isin(mine, theirs)


def _booleans(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    return one_array(column.cast(pa.uint8())).view(np.bool_)


def _named(names: pa.Array, chosen: np.ndarray) -> tuple[str, ...]:
    return tuple(names.take(pa.array(np.flatnonzero(chosen)[:EXAMPLES])).to_pylist())
