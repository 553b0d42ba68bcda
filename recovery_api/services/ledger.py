"""The ledger learns what an audit found, in the transaction that records the audit; and forgets nothing by itself.

The law: knowledge is ordered by the record's snapshot, and merged by who read on top of what is there. A reading that
finds that the ledger moved on since it began is done again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection, transaction

from recovery_api.domain.actors import subject
from recovery_api.domain.coordinates import coordinate_format, coordinate_parse
from recovery_api.domain.errors import BadInput, LedgerMoved, NotFound
from recovery_api.domain.frontiers import SINGLE_LANE, coordinate_as_row
from recovery_api.domain.ledger.lanes import LaneKnown
from recovery_api.models import Audit, EventKind, LedgerItem, LedgerLane, Pipeline
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.ledger import ledger_token
from recovery_api.services.events import event_append

ITEMS_AT_MOST = 50_000
"""Open items of a pipeline that are kept as rows. What lies beyond stays with the evidence of the audit that found it."""


LANES_AT_ONCE = 200


class LearntItem(NamedTuple):
    """One item as it is copied; `settled_by` empty: it is open."""

    lane: str
    position: int
    ordinal: int
    word: str
    cause: str
    digest: bytes
    other_digest: bytes | None
    entry: int | None
    copies: int | None
    event_id: str | None
    key: str | None
    shown_key: str | None
    committed_at: datetime | None
    is_acknowledged: bool
    is_content_gone: bool
    settled_by: str


@dataclass(frozen=True, slots=True)
class Learnt:
    """What one whole reading of both ends tells the ledger. `token`: of the ledger that it was judged on top of."""

    epoch: str
    token: str
    lanes: Mapping[str, LaneKnown]
    items: Iterable[LearntItem]


def ledger_merge(pipeline: Pipeline, audit: Audit, learnt: Learnt) -> None:
    """Adds what `audit` found. Called with the pipeline's row locked, in the transaction that records the audit.

    Raises: LedgerMoved where another audit's knowledge came in since this one began to read.
    """
    if ledger_token(pipeline) != learnt.token:
        raise LedgerMoved(pipeline.name)
    _lanes_merge(pipeline, audit, learnt)
    _items_merge(pipeline, audit, learnt)


def _lanes_merge(pipeline: Pipeline, audit: Audit, learnt: Learnt) -> None:
    """Two statements and one more for new lanes, however many there are."""
    standing = LedgerLane.objects.filter(pipeline=pipeline, epoch=learnt.epoch, void_since__isnull=True)
    held = dict(standing.values_list("lane", "pk"))
    columns = {lane: _lane_row(known) for lane, known in learnt.lanes.items()}
    same = {"pipeline": pipeline, "epoch": learnt.epoch, "audit": audit, "read_at": audit.record_read_at}
    new = [LedgerLane(lane=lane, **same, **row) for lane, row in columns.items() if lane not in held]
    LedgerLane.objects.bulk_create(new, batch_size=LANES_AT_ONCE)
    told = [{"id": held[lane], **row} for lane, row in columns.items() if lane in held]
    if told:
        names = [name for name in told[0] if name != "id"]
        types = {name: LedgerLane._meta.get_field(name).db_type(connection) for name in ("id", *names)}
        statement = _SEEN_AGAIN.format(
            lanes=connection.ops.quote_name(LedgerLane._meta.db_table),
            sets=", ".join(f"{name} = f.{name}" for name in names),
            columns=", ".join(f"{name} {'bigint' if name == 'id' else types[name]}" for name in types),
        )
        with connection.cursor() as cursor:
            cursor.execute(statement, [audit.pk, audit.record_read_at, json.dumps(told)])


def ledger_void(pipeline: Pipeline, says: str, now: datetime) -> None:
    """What was seen of acceptances and history says nothing any more; every item stays, and what was settled by an
    acceptance that is gone will be found open again."""
    LedgerLane.objects.filter(pipeline=pipeline, void_since__isnull=True).update(void_since=now, void_says=says)


def ledger_unsettle(pipeline: Pipeline, lane: str) -> None:
    """A row came in below a frontier that was taken to be safe: how far the lane's history was seen is not known any more.

    What was seen of acceptances stands.
    """
    LedgerLane.objects.filter(pipeline=pipeline, lane=lane, void_since__isnull=True).update(frontier=None)


def ledger_decide_below(
    pipeline: Pipeline, coordinate: str, *, reason: str, actor: str, now: datetime, lane: str = SINGLE_LANE
) -> LedgerLane:
    """That nothing is owed below `coordinate` (the source's spelling), where nobody saw what was committed.

    Every verdict that rests on it names it. Raises: BadCoordinate; BadInput for a missing reason; NotFound where no
    audit has read the lane.
    """
    found = coordinate_parse(coordinate, source_spelling(pipeline.source))
    if not reason.strip():
        raise BadInput("reason", "is missing", "Say how you know that nothing is owed there.")
    with transaction.atomic():
        Pipeline.objects.select_for_update(no_key=True).get(pk=pipeline.pk)
        rows = LedgerLane.objects.filter(pipeline=pipeline, lane=lane, void_since__isnull=True)
        row = rows.order_by("-read_at").first()
        if row is None:
            raise NotFound(f"Lane {lane}", f"the ledger of pipeline {pipeline.name}", "Run an audit first.")
        row.decided_below, row.decided_by = coordinate_as_row(found), actor
        row.decided_at, row.decided_because = now, reason.strip()
        row.save(update_fields=["decided_below", "decided_by", "decided_at", "decided_because"])
        spelled = coordinate_format(found, source_spelling(pipeline.source))
        says = f"{subject(actor)} decided that nothing is owed below {spelled} in lane {lane}: {reason.strip()}"
        data = {"lane": lane, **coordinate_as_row(found)}
        event_append(EventKind.LEDGER_DECIDED, actor=actor, now=now, says=says, pipeline=pipeline, data=data)
    return row


def _lane_row(known: LaneKnown) -> dict[str, Any]:
    unseen = known.unseen
    return {
        "frontier": coordinate_as_row(known.frontier) if known.frontier else None,
        "lowest": coordinate_as_row(known.lowest) if known.lowest else None,
        "earliest": coordinate_as_row(known.earliest) if known.earliest else None,
        "head": coordinate_as_row(known.head) if known.head else None,
        "admitted_below": known.admitted_below,
        "prefix": {name: str(value) for name, value in known.prefix.items()},
        "unseen_above": coordinate_as_row(unseen.above) if unseen and unseen.above else None,
        "unseen_below": coordinate_as_row(unseen.below) if unseen else None,
        "evidence": known.evidence,
        "unjustifiable_count": known.unjustifiable,
        "is_whole": known.is_whole,
        "givens": list(known.givens),
    }


_SEEN_AGAIN = """
UPDATE {lanes} l SET audit_id = %s, read_at = %s, {sets}
FROM jsonb_to_recordset(%s::jsonb) AS f ({columns}) WHERE l.id = f.id
"""  # nosec B608 # names of our own columns, values are parameters

FOUND = "ledger_found"
_SAME = "i.pipeline_id = %(pipeline)s AND (i.lane, i.position, i.ordinal, i.word, i.digest) = (f.lane, f.position, f.ordinal, f.word, f.digest)"

_TABLE = f"""
CREATE TEMPORARY TABLE {FOUND} (lane text, position bigint, ordinal bigint, word text, cause text, digest bytea,
    other_digest bytea, entry bigint, copies bigint, event_id text, key text, shown_key text, committed_at timestamptz,
    is_acknowledged boolean, is_content_gone boolean, settled_by text) ON COMMIT DROP
"""  # nosec B608 # names of our own tables, values are parameters

_SETTLE = f"""
UPDATE {{items}} i SET settled_by = f.settled_by, settled_at = %(now)s, last_audit_id = %(audit)s
FROM {FOUND} f WHERE f.settled_by <> '' AND i.settled_at IS NULL AND {_SAME}
"""  # nosec B608 # names of our own tables, values are parameters

_SEE = f"""
UPDATE {{items}} i SET cause = f.cause, other_digest = f.other_digest, entry = f.entry, copies = f.copies,
    event_id = coalesce(f.event_id, i.event_id), key = coalesce(f.key, i.key),
    shown_key = coalesce(f.shown_key, i.shown_key),
    committed_at = coalesce(f.committed_at, i.committed_at), is_acknowledged = f.is_acknowledged,
    is_content_gone = f.is_content_gone, epoch = CASE WHEN f.is_content_gone THEN i.epoch ELSE %(epoch)s END,
    last_audit_id = %(audit)s, last_seen_at = %(seen)s, settled_by = '', settled_at = NULL
FROM {FOUND} f WHERE f.settled_by = '' AND {_SAME}
"""  # nosec B608 # names of our own tables, values are parameters

_OPEN = f"""
INSERT INTO {{items}} (pipeline_id, lane, position, ordinal, word, cause, digest, other_digest, entry, copies, event_id,
    key, shown_key, committed_at, epoch, is_acknowledged, is_content_gone, first_audit_id, first_seen_at, last_audit_id,
    last_seen_at, settled_by)
SELECT DISTINCT ON (f.lane, f.position, f.ordinal, f.word, f.digest) %(pipeline)s, f.lane, f.position, f.ordinal, f.word,
    f.cause, f.digest, f.other_digest, f.entry, f.copies, f.event_id, f.key, f.shown_key, f.committed_at, %(epoch)s,
    f.is_acknowledged, f.is_content_gone, %(audit)s, %(seen)s, %(audit)s, %(seen)s, ''
FROM {FOUND} f WHERE f.settled_by = '' AND NOT EXISTS (SELECT FROM {{items}} i WHERE {_SAME})
ORDER BY f.lane, f.position, f.ordinal, f.word, f.digest LIMIT %(room)s
"""  # nosec B608 # names of our own tables, values are parameters


_LEFT_OUT = f"""
SELECT EXISTS (SELECT FROM {FOUND} f WHERE f.settled_by = '' AND NOT EXISTS (SELECT FROM {{items}} i WHERE {_SAME}))
"""  # nosec B608 # names of our own tables, values are parameters


def _items_merge(pipeline: Pipeline, audit: Audit, learnt: Learnt) -> None:
    """By sets: what was settled, what is open still or again, and what is new, as far as there is room for rows."""
    table = connection.ops.quote_name(LedgerItem._meta.db_table)
    given = {
        "pipeline": pipeline.pk,
        "audit": audit.pk,
        "seen": audit.record_read_at,
        "now": audit.finished_at,
        "epoch": learnt.epoch,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TABLE)
        with cursor.copy(f"COPY {FOUND} FROM STDIN") as copy:
            for item in _bounded(learnt.items):
                copy.write_row(item)
        cursor.execute(f"CREATE INDEX ON {FOUND} (position, ordinal)")  # the other side's statistics may be of before
        cursor.execute(f"ANALYZE {FOUND}")
        cursor.execute(_SETTLE.format(items=table), given)
        cursor.execute(_SEE.format(items=table), given)
        held = LedgerItem.objects.filter(pipeline=pipeline, settled_at__isnull=True).count()
        cursor.execute(_OPEN.format(items=table), {**given, "room": max(ITEMS_AT_MOST - held, 0)})
        cursor.execute(_LEFT_OUT.format(items=table), given)
        (is_cut,) = cursor.fetchone()
        cursor.execute(f"DROP TABLE {FOUND}")
    if is_cut:
        mine = LedgerLane.objects.filter(pipeline=pipeline, audit=audit)
        mine.update(is_whole=False, evidence=audit.evidence_uri)


def _bounded(items: Iterable[LearntItem]) -> Iterable[LearntItem]:
    """All that was settled, and one open item more than rows are kept of: so that it is seen where some are left out."""
    room = ITEMS_AT_MOST + 1
    for item in items:
        if not item.settled_by:
            if room <= 0:
                continue
            room -= 1
        yield item
