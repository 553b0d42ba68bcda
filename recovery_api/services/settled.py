"""Settled items of the ledger go by age, and an aggregate of them stays.

The law: an item goes only where no audit would look at it again, or where the acceptance that settled it is among those that
the lane's count and sums are of. So no verdict is another without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from recovery_api.domain.ledger.sums import sum_add
from recovery_api.domain.ledger.words import ItemWord, SettledBy
from recovery_api.models import LedgerItem, LedgerLane, Pipeline, SettledItems
from recovery_api.selectors.ledger import SETTLED_LOOKED_AT


class _Added(NamedTuple):
    """Items of one lane and word that were settled in one way, added up."""

    lane: str
    word: str
    settled_by: str
    items: int
    digests: str
    first_seen_at: datetime
    last_settled_at: datetime


def settled_retire(before: datetime, at_once: int, most: int) -> int:
    """How many items went that were settled before `before`: at most `most`, `at_once` in a transaction."""
    old = LedgerItem.objects.filter(settled_at__lt=before)
    total = 0
    for key in sorted(old.order_by().values_list("pipeline_id", flat=True).distinct()):
        while total < most:
            count = _pipeline_retire(key, before, min(at_once, most - total))
            total += count
            if count < at_once:
                break
    return total


def _pipeline_retire(key: int, before: datetime, most: int) -> int:
    with transaction.atomic():
        pipeline = Pipeline.objects.select_for_update(no_key=True).get(pk=key)  # no audit is merged meanwhile
        ids = list(_unneeded(pipeline, before).order_by("settled_at").values_list("pk", flat=True)[:most])
        _add_up(pipeline, ids)
        LedgerItem.objects.filter(pk__in=ids).delete()
    return len(ids)


def _unneeded(pipeline: Pipeline, before: datetime) -> QuerySet[LedgerItem]:
    """What was settled before `before`, without what a later audit may still need.

    An audit looks again at the newest events that were found missing and were accepted since: where their row is gone at the
    source, the item alone shows that they were committed. It need not where the record shows who admitted an entry, since
    then the lane's count and sums tell of each acceptance, from the first audit after it on.
    """
    mine = LedgerItem.objects.filter(pipeline=pipeline, settled_at__lt=before)
    if pipeline.retired_at is not None and pipeline.retired_at < before:
        return mine
    arrived = Q(word=ItemWord.LOST, settled_by=SettledBy.ACCEPTED)
    lanes = LedgerLane.objects.filter(pipeline=pipeline)
    newer = lanes.filter(lane=OuterRef("lane"), read_at__gt=OuterRef("read_at"))
    telling = lanes.filter(~Exists(newer), void_since__isnull=True, admitted_below__isnull=False)
    is_told = Exists(telling.filter(lane=OuterRef("lane"), read_at__gt=OuterRef("settled_at")))
    unneeded = ~arrived | Q(is_told)
    looked_at = LedgerItem.objects.filter(arrived, pipeline=pipeline).order_by("-settled_at")
    oldest = looked_at.values_list("settled_at", flat=True)[SETTLED_LOOKED_AT - 1 : SETTLED_LOOKED_AT].first()
    return mine.filter(unneeded if oldest is None else unneeded | Q(settled_at__lt=oldest))


_SUM = """
SELECT lane, word, settled_by, count(*), {limbs}, min(first_seen_at), max(settled_at)
FROM (SELECT *, sha256(convert_to(lane, 'UTF8') || '\\x00' || int8send(position) || int8send(ordinal) || digest) AS summed
      FROM {items} WHERE id = ANY(%s)) i
GROUP BY lane, word, settled_by
"""  # nosec B608 # names of our own, values are parameters
_LIMB = "sum(('x' || encode(substr(summed, {start}, 8), 'hex'))::bit(64)::bigint)"
_LIMBS = " || ':' || ".join(_LIMB.format(start=start) for start in (1, 9, 17, 25))


def _add_up(pipeline: Pipeline, ids: Sequence[int]) -> None:
    """Adds these items to what went before, with the sum of their entry digests (docs/architecture.md)."""
    if not ids:
        return
    items = connection.ops.quote_name(LedgerItem._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(_SUM.format(limbs=_LIMBS, items=items), [list(ids)])
        added = [_Added(*row) for row in cursor.fetchall()]
    for one in added:
        same: dict[str, Any] = {"pipeline": pipeline, "lane": one.lane, "word": one.word, "settled_by": one.settled_by}
        times = {"first_seen_at": one.first_seen_at, "last_settled_at": one.last_settled_at}
        row, _ = SettledItems.objects.get_or_create(**same, defaults=times)
        row.count += one.items
        row.digests = sum_add(row.digests, one.digests)
        row.first_seen_at = min(row.first_seen_at, one.first_seen_at)
        row.last_settled_at = max(row.last_settled_at, one.last_settled_at)
        row.save(update_fields=["count", "digests", "first_seen_at", "last_settled_at"])
