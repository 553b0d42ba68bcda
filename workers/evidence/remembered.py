"""What earlier audits saw of a range, judged together with what both ends hold of it now (recovery_api.domain.ledger).

1. The ledger's rows are put beside the evidence (`remembered`) before anything is read; what an earlier audit kept with
   its evidence alone lies there. Each task reads its range of both.
2. A lost event that the history does not hold any more is an obligation all the same: it joins the journal.
3. Where the record does not hold it either, the record is asked once more, in a snapshot that was opened after the
   source's: else a relay that delivers and deletes in between looks like a loss.
4. What was found, and what became of what was remembered, is written as the range's `ledger` part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from recovery_api.domain.coordinates import INT64_MAX, Coordinate
from recovery_api.domain.errors import EvidenceGone
from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.ledger.words import DOUBTED, WRONG, ItemWord, SettledBy
from workers.connectors.readings import CoordinateRange
from workers.evidence import schemas
from workers.evidence.grounds import at_or_below, history_fingerprint
from workers.evidence.kernel import BlockVerdict, LaneQuestion, judge_block
from workers.evidence.naming import owed_named
from workers.evidence.store import ITEMS, objects_in, part_write, range_filter, rows_read

if TYPE_CHECKING:
    from workers.evidence.ranges import MeetSpec

REMEMBERED = "remembered"
PLACE = ["position", "ordinal"]
SAME = [*PLACE, "digest"]


def remembered_write(url: str, items: pa.Table) -> Stored:
    """Puts the ledger's rows (schemas.ITEM), in the order of coordinates, where the tasks of this reading find them."""
    ordered = items.sort_by([(name, "ascending") for name in ("lane", *PLACE)])
    return Stored(url, tuple(part_write(url, REMEMBERED, 0, ordered)))


def evidence_counts(stored: Stored | None, lane: str) -> int | None:
    """How many unjustifiable acceptances of the lane an audit kept with its evidence. None: it is not kept any more, or is
    not what was written."""
    if stored is None:
        return None
    wanted = (ds.field("lane") == lane) & (ds.field("word") == ItemWord.UNJUSTIFIABLE.value)
    objects = [one for one in stored.of(ITEMS) if one.lane in (None, lane)]
    try:
        return rows_read(stored, objects, schemas.ITEM, columns=["word"], wanted=wanted).num_rows
    except EvidenceGone:
        return None


def remembered_read(spec: MeetSpec, range_: CoordinateRange) -> pa.Table:
    """What is remembered of the range: schemas.ITEM, each once."""
    inside = range_filter(range_)
    tables = [schemas.ITEM.empty_table()]
    if spec.remembered is not None:
        objects = objects_in(spec.remembered.of(REMEMBERED), range_)
        tables.append(rows_read(spec.remembered, objects, schemas.ITEM, wanted=inside))
    kept = spec.kept.get(range_.lane)
    if kept is not None:
        wanted = inside & ds.field("settled_by").is_null()
        if not kept.is_everything:
            wanted &= ds.field("word") == ItemWord.UNJUSTIFIABLE.value
        objects = objects_in(kept.stored.of(ITEMS), range_)
        found = rows_read(kept.stored, objects, schemas.ITEM, wanted=wanted)
        found = found.set_column(0, schemas.ITEM.field("id"), pa.nulls(found.num_rows, pa.int64()))
        if not kept.is_this_epoch:
            at = schemas.ITEM.get_field_index("is_this_epoch")
            others = pa.repeat(pa.scalar(False), found.num_rows)
            found = found.set_column(at, schemas.ITEM.field("is_this_epoch"), others)
            key = schemas.ITEM.get_field_index("key")  # it may be of another mapping: no scope is judged by it
            found = found.set_column(key, schemas.ITEM.field("key"), pa.nulls(found.num_rows, pa.string()))
        tables.append(found.join(tables[-1].select([*SAME, "word"]), [*SAME, "word"], join_type="left anti"))
    return pa.concat_tables([table.select(schemas.ITEM.names).cast(schemas.ITEM) for table in tables])


def judge_remembering(
    spec: MeetSpec,
    range_: CoordinateRange,
    question: LaneQuestion,
    history: pa.Table,
    accepted: pa.Table,
    remembered: pa.Table,
) -> tuple[BlockVerdict, pa.Table]:
    """The verdict of the range with what is remembered of it; and the acceptances, those included that were found by
    asking once more."""
    question = replace(question, doubted=_doubted(remembered, DOUBTED), premature=_doubted(remembered, WRONG))
    gone = _gone(history, remembered)
    if not gone.num_rows:
        return judge_block(question, history, accepted), accepted
    journal = pa.concat_tables([history, _as_history(gone, history)])
    verdict = judge_block(question, history, accepted, journal)
    missing = _remembered_lost(verdict.findings, gone)
    if missing.num_rows:
        since = _asked_again(spec, range_, missing)
        if since.num_rows:
            accepted = pa.concat_tables([accepted, since.cast(accepted.schema)]) if accepted.num_rows else since
            verdict = judge_block(question, history, accepted, journal)
            missing = _remembered_lost(verdict.findings, gone)
    acknowledged = int(pc.sum(missing["is_acknowledged"].cast(pa.int64())).as_py() or 0)
    counts = {
        **verdict.counts,
        "lost_remembered": missing.num_rows,
        "acknowledged_remembered": acknowledged,
        "unjudged_remembered": _unjudged(question, gone),
    }
    return replace(verdict, counts=counts), accepted


def ledger_tell(
    spec: MeetSpec,
    question: LaneQuestion,
    findings: pa.Table,
    history: pa.Table,
    accepted: pa.Table,
    remembered: pa.Table,
) -> tuple[pa.Table, dict[str, int]]:
    """What these findings tell the ledger (schemas.ITEM), and how many items are open, and how many unjustifiable."""
    found = _found_items(findings, history, remembered, question.lane)
    found = owed_named(spec, found, history, question.lane)
    settled = _settled(found, history, accepted, remembered)
    unjustifiable = int(pc.sum(pc.equal(found["word"], ItemWord.UNJUSTIFIABLE.value)).as_py() or 0)
    told = pa.concat_tables([found, settled])
    return told, {"open": found.num_rows - unjustifiable, "unjustifiable": unjustifiable}


# -- what is gone from the history ------------------------------------------------------------------------------------


def _gone(history: pa.Table, remembered: pa.Table) -> pa.Table:
    """The remembered obligations that the history does not hold: by content, and by coordinate where contents were
    digested otherwise then."""
    lost = remembered.filter(pc.equal(remembered["word"], ItemWord.LOST.value))
    if not lost.num_rows or "payload_digest" not in history.column_names:
        return lost.slice(0, 0) if "payload_digest" not in history.column_names else lost
    held = history.select([*PLACE, "payload_digest"]).rename_columns(SAME)
    is_this = lost["is_this_epoch"]
    same = lost.filter(is_this).join(held, SAME, join_type="left anti")
    other = lost.filter(pc.invert(is_this)).join(held.select(PLACE), PLACE, join_type="left anti")
    return pa.concat_tables([same.select(schemas.ITEM.names), other.select(schemas.ITEM.names)]).combine_chunks()


def _as_history(gone: pa.Table, history: pa.Table) -> pa.Table:
    columns = {
        "position": gone["position"],
        "ordinal": gone["ordinal"],
        "key": gone["key"],
        "payload_digest": gone["digest"],
    }
    rows = [
        columns[field.name] if field.name in columns else pa.nulls(gone.num_rows, field.type)
        for field in history.schema
    ]
    return pa.table(rows, schema=history.schema)


def _remembered_lost(findings: pa.Table, gone: pa.Table) -> pa.Table:
    """The findings that are lost events which only the ledger remembers."""
    lost = findings.filter(pc.equal(findings["finding"], "lost"))
    here = gone.select(SAME).rename_columns([*PLACE, "history_digest"])
    return lost.join(here, [*PLACE, "history_digest"], join_type="left semi").select(findings.column_names)


def _asked_again(spec: MeetSpec, range_: CoordinateRange, missing: pa.Table) -> pa.Table:
    """Acceptances of the missing events in a snapshot of the record that is opened now, after the source's."""
    low, high = _ends(missing)
    record = spec.sink.record()
    with record.hold_snapshot() as reading:
        batches = list(record.read_accepted(reading, CoordinateRange(range_.lane, low, high), spec.width))
    if not batches:
        return schemas.ACCEPTED.empty_table()
    rows = pa.Table.from_batches(batches)
    wanted = missing.select([*PLACE, "history_digest"]).rename_columns([*PLACE, "payload_digest"])
    return rows.join(wanted, [*PLACE, "payload_digest"], join_type="left semi").select(rows.column_names)


def _ends(rows: pa.Table) -> tuple[Coordinate, Coordinate | None]:
    """The lowest coordinate of `rows`, and the next after the highest. None: there is none."""
    pairs = list(zip(rows["position"].to_pylist(), rows["ordinal"].to_pylist(), strict=True))
    position, ordinal = max(pairs)
    if ordinal < INT64_MAX:
        return Coordinate(*min(pairs)), Coordinate(position, ordinal + 1)
    return Coordinate(*min(pairs)), Coordinate(position + 1, 0) if position < INT64_MAX else None


def _unjudged(question: LaneQuestion, gone: pa.Table) -> int:
    """How many open ones at or below the frontier have no key to be in scope by: they were seen when none was asked."""
    if question.scope is None:
        return 0
    is_open = pc.and_(gone["settled_by"].is_null(), gone["key"].is_null())
    mine = gone.filter(is_open)
    return int(at_or_below(mine, question.frontier).sum())


def _doubted(remembered: pa.Table, words: Sequence[ItemWord]) -> pa.Table | None:
    """The acceptances that are open under one of these words, as the kernel compares them. None: there are none."""
    listed = pa.array([word.value for word in words])
    is_open = pc.and_(pc.is_in(remembered["word"], value_set=listed), remembered["settled_by"].is_null())
    rows = remembered.filter(is_open)
    return rows.select(SAME).rename_columns([*PLACE, "payload_digest"]) if rows.num_rows else None


# -- what the ledger is told ------------------------------------------------------------------------------------------


def _found_items(findings: pa.Table, history: pa.Table, remembered: pa.Table, lane: str) -> pa.Table:
    """Each finding as an item that is open."""
    word = _words(findings)
    is_lost = pc.equal(word, ItemWord.LOST.value)
    mine = pc.if_else(is_lost, findings["history_digest"], findings["accepted_digest"])
    other = pc.if_else(is_lost, findings["accepted_digest"], findings["history_digest"])
    count = findings.num_rows
    columns: dict[str, Any] = {
        "lane": pa.repeat(pa.scalar(lane), count),
        "position": findings["position"],
        "ordinal": findings["ordinal"],
        "word": word,
        "cause": findings["cause"],
        "digest": mine,
        "other_digest": other,
        "entry": findings["entry"],
        "copies": findings["accepted_count"],
        "is_this_epoch": pa.repeat(pa.scalar(True), count),
        "is_acknowledged": pc.fill_null(findings["is_acknowledged"], False),
        "is_content_gone": pa.repeat(pa.scalar(False), count),
    }
    items = _items(columns, count)
    lost = items.filter(is_lost)
    if not lost.num_rows:
        return items
    rest = items.filter(pc.invert(is_lost))
    return pa.concat_tables([_with_source(lost, history, remembered), rest])


def _with_source(lost: pa.Table, history: pa.Table, remembered: pa.Table) -> pa.Table:
    """Lost items with the key that the source, or the ledger, has of each, and whether the source holds its row."""
    known = [name for name in ("key",) if name in history.column_names]
    if "payload_digest" not in history.column_names:
        return lost
    here = history.select([*PLACE, "payload_digest", *known]).rename_columns([*SAME, *known])
    here = here.join(lost.select(PLACE), PLACE, join_type="left semi")  # few, where few are lost
    here = _one_each(here, known)
    held = here.append_column("is_held", pa.repeat(pa.scalar(True), here.num_rows))
    earlier = remembered.filter(pc.equal(remembered["word"], ItemWord.LOST.value))
    names = ["event_id", "key", "committed_at", "is_this_epoch"]
    earlier = _one_each(earlier, names).rename_columns([*SAME, *(f"earlier_{name}" for name in names)])
    bare = lost.drop_columns(["event_id", "key", "committed_at", "is_content_gone", "is_this_epoch"])
    met = bare.join(held, SAME, join_type="left outer").join(earlier, SAME, join_type="left outer")
    is_held = pc.fill_null(met["is_held"], False)
    columns = {name: met[name] for name in bare.column_names}
    own_key = met["key"] if known else pa.nulls(met.num_rows, pa.string())
    columns |= {
        "event_id": met["earlier_event_id"],
        "key": pc.coalesce(own_key, met["earlier_key"]),
        "committed_at": met["earlier_committed_at"],
        "is_content_gone": pc.invert(is_held),
        "is_this_epoch": pc.or_(is_held, pc.fill_null(met["earlier_is_this_epoch"], True)),
    }
    return _items(columns, met.num_rows)


def _one_each(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Of rows that are alike in place and content one, with these columns."""
    found = rows.group_by(SAME).aggregate([(name, "one") for name in names])
    return found.select([*SAME, *(f"{name}_one" for name in names)]).rename_columns([*SAME, *names])


def _settled(found: pa.Table, history: pa.Table, accepted: pa.Table, remembered: pa.Table) -> pa.Table:
    """What was remembered as open, was judged in this range, and is not open any more: with by what."""
    was_open = remembered.filter(pc.and_(remembered["settled_by"].is_null(), remembered["id"].is_valid()))
    was_open = was_open.filter(pc.not_equal(was_open["word"], ItemWord.UNJUSTIFIABLE.value))
    if not was_open.num_rows:
        return was_open
    still = found.select([*SAME, "word"])
    gone = was_open.join(still, [*SAME, "word"], join_type="left anti").select(schemas.ITEM.names)
    is_lost = pc.equal(gone["word"], ItemWord.LOST.value)
    wrong = found.filter(pc.not_equal(found["word"], ItemWord.LOST.value)).select(SAME)
    acceptances = gone.filter(pc.invert(is_lost))
    otherwise = acceptances.join(wrong, SAME, join_type="left semi").select(schemas.ITEM.names)
    rest = acceptances.join(wrong, SAME, join_type="left anti").select(schemas.ITEM.names)
    return pa.concat_tables(
        [
            _settled_lost(gone.filter(is_lost), history, accepted),
            _by(otherwise, SettledBy.REPLACED),
            _settled_acceptances(rest, accepted),
        ]
    )


def _settled_lost(lost: pa.Table, history: pa.Table, accepted: pa.Table) -> pa.Table:
    """Those that the record holds now are accepted; those that another mapping reads otherwise are replaced. What was
    not judged (above the frontier, out of scope) is as it was."""
    if not lost.num_rows or "payload_digest" not in accepted.column_names:
        return lost.slice(0, 0)
    taken = accepted.select([*PLACE, "payload_digest"]).rename_columns(SAME)
    arrived = lost.join(taken, SAME, join_type="left semi").select(schemas.ITEM.names)
    rest = lost.filter(pc.invert(lost["is_this_epoch"])).join(taken, SAME, join_type="left anti")
    replaced = rest.join(history.select(PLACE), PLACE, join_type="left semi").select(schemas.ITEM.names)
    return pa.concat_tables([_by(arrived, SettledBy.ACCEPTED), _by(replaced, SettledBy.REPLACED)])


def _settled_acceptances(items: pa.Table, accepted: pa.Table) -> pa.Table:
    """An entry that is there still and is not wrong any more is shown committed; one that is not there was trimmed."""
    if not items.num_rows or "payload_digest" not in accepted.column_names:
        return items.slice(0, 0)
    held = accepted.select([*PLACE, "payload_digest"]).rename_columns(SAME)
    there = items.join(held, SAME, join_type="left semi").select(schemas.ITEM.names)
    away = items.join(held, SAME, join_type="left anti").select(schemas.ITEM.names)
    is_copy = pc.equal(there["word"], ItemWord.DUPLICATE.value)
    return pa.concat_tables(
        [
            _by(there.filter(pc.invert(is_copy)), SettledBy.COMMITTED),
            _by(there.filter(is_copy), SettledBy.TRIMMED),
            _by(away, SettledBy.TRIMMED),
        ]
    )


def _by(items: pa.Table, word: SettledBy) -> pa.Table:
    at = schemas.ITEM.get_field_index("settled_by")
    return items.set_column(at, schemas.ITEM.field("settled_by"), pa.repeat(pa.scalar(word.value), items.num_rows))


def _words(findings: pa.Table) -> pa.Array:
    """The ledger's word for each finding: domain.ledger.words.item_word, in columns."""
    is_altered = pc.equal(pc.fill_null(findings["cause"], ""), ItemWord.ALTERED.value)
    is_premature = pc.equal(findings["finding"], "premature")
    word = pc.if_else(pc.equal(findings["finding"], "unknown"), ItemWord.UNJUSTIFIABLE.value, findings["finding"])
    return pc.if_else(pc.and_(is_premature, is_altered), ItemWord.ALTERED.value, word)


def _items(columns: dict[str, Any], count: int) -> pa.Table:
    held = [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in schemas.ITEM]
    return pa.table(held, names=schemas.ITEM.names).cast(schemas.ITEM)


def prefix_of(accepted: pa.Table, admitted_below: int | None) -> dict[str, int]:
    """Count and sums of the entries that older transactions than this admitted. None: the count of all of them."""
    if admitted_below is None:
        return {"count": accepted.num_rows}
    if "admitted_in" not in accepted.column_names:
        return {"count": 0, "positions": 0}
    is_older = pc.fill_null(pc.less(accepted["admitted_in"], admitted_below), False)
    return history_fingerprint(accepted.filter(is_older), Coordinate(INT64_MAX, INT64_MAX))
