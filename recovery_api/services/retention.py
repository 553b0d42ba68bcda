"""Retention of our own: what goes by age, and how that is told. domain.retention says what stays, and why.

The law: a row tells that its parts are gone before they are taken away, and rows go only after their parts. Each step is a
bounded piece of work in a transaction of its own, so a sweep that dies half way has done half of it, and the next goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from recovery_api.domain.retention import EVENTS_KEPT_AT_LEAST, Ages, Piece
from recovery_api.models import (
    WAITING_STATES,
    ArchivePart,
    Audit,
    Drill,
    Event,
    EventKind,
    EvidencePlace,
    Finding,
    ImageAudit,
    Intent,
    IntentState,
    LedgerLane,
    Pipeline,
    Plan,
    PlanState,
    Recovery,
    RecoveryState,
    RefusalCount,
    Upkeep,
)
from recovery_api.selectors.drills import drills_unneeded
from recovery_api.selectors.retention import Kept, audits_unneeded, evidence_kept, images_kept
from recovery_api.services.events import event_append
from recovery_api.services.evidence_places import WITH_PARTS, evidence_release
from recovery_api.services.gone import audits_delete, intents_delete
from recovery_api.services.settled import settled_retire

ACTOR = "retention"
AT_ONCE = 1000
"""Rows of a sort in one transaction."""
ROUNDS = 20
"""Such transactions of one sweep: it has other things to do. What is left over waits for the next."""
ENDED = (IntentState.DONE, IntentState.FAILED, IntentState.CANCELLED)


class Retired(NamedTuple):
    """What one sweep took out of the tables. `items`: of the ledger, settled; `lanes`: of the ledger, as earlier epochs had
    them; `archive`: what told of files of the archive that went."""

    events: int = 0
    items: int = 0
    lanes: int = 0
    archive: int = 0
    images: int = 0
    drills: int = 0
    audits: int = 0
    plans: int = 0
    intents: int = 0


def upkeep_begin(name: str, now: datetime, every: timedelta) -> bool:
    """Whether a chore is this sweep's to do: of several at once one is told so. A clock that jumped back delays nothing."""
    row, is_new = Upkeep.objects.get_or_create(name=name, defaults={"done_at": now})
    if is_new:
        return True
    due = Q(done_at__lte=now - every) | Q(done_at__gt=now + every)
    return Upkeep.objects.filter(due, pk=row.pk, done_at=row.done_at).update(done_at=now) == 1


def evidence_retire(now: datetime, ages: Ages) -> list[Kept]:
    """The audits, plans and image audits whose parts go: they say by now that these are gone, and the parts are released."""
    old = Q(evidence_gone_at__isnull=True) & ~Q(evidence_uri="")
    before = now - ages.evidence
    keys = {
        key
        for rows in _with_old_parts(old, before)
        for key in rows.order_by().values_list("pipeline_id", flat=True).distinct()
    }
    return [kept for key in sorted(keys) for kept in _pipeline_retire(key, old, before, now, ages)]


def records_retire(now: datetime, ages: Ages) -> Retired:
    """How many rows of finished work went because they were older than they are kept; the timeline says so of its events."""
    before = now - max(ages.records, EVENTS_KEPT_AT_LEAST)
    return Retired(
        events=_events_retire(before, now),
        items=settled_retire(before, AT_ONCE, AT_ONCE * ROUNDS),
        lanes=_rounds(_lanes_old(before), partial(_lanes_delete, before)),
        archive=_rounds(_archive_old(before), _deleter(ArchivePart)),
        images=_rounds(_images_old(before), _deleter(ImageAudit)),
        drills=_rounds(drills_unneeded(before), _deleter(Drill)),
        audits=_rounds(_audits_old(before), audits_delete),
        plans=_rounds(_plans_old(before), _plans_delete),
        intents=_rounds(_intents_old(before), intents_delete),
    )


def _pipeline_retire(key: int, old: Q, before: datetime, now: datetime, ages: Ages) -> list[Kept]:
    """Marks what may go of one pipeline, under the lock that everything takes that could begin to rest on it."""
    with transaction.atomic():
        pipeline = Pipeline.objects.select_for_update(no_key=True).get(pk=key)
        audits, plans, images = (rows.filter(pipeline=pipeline) for rows in _with_old_parts(old, before))
        found = [*evidence_kept(audits, plans), *images_kept(images)]
        gone = [one for one in found if not one.keeping(ages, now).stays]
        for model in WITH_PARTS:
            model._default_manager.filter(pk__in=[one.id for one in gone]).update(evidence_gone_at=now)
        evidence_release([*(one.uri for one in gone), *_under_claims(gone)], now)
    return gone


def _with_old_parts(old: Q, before: datetime) -> tuple[QuerySet[Audit], QuerySet[Plan], QuerySet[ImageAudit]]:
    return (
        Audit.objects.filter(old, finished_at__lt=before),
        Plan.objects.filter(old, created_at__lt=before),
        ImageAudit.objects.filter(old, finished_at__lt=before),
    )


def _under_claims(gone: Sequence[Kept]) -> list[str]:
    """What recoveries read under their claims: it goes with their verification's parts."""
    audits = [one.id for one in gone if one.parts.piece is Piece.AUDIT and one.parts.of_certificate]
    of_them = EvidencePlace.objects.filter(recovery__audits__in=audits)
    return list(of_them.values_list("uri", flat=True).distinct())


def _events_retire(before: datetime, now: datetime) -> int:
    """Deletes the timeline's events of before `before`, but those of what is not over, and of newest certificates.

    What went is told by one new event: how many, of when, and a digest of them. The trigger that keeps the timeline lets
    them go only under the bound that is named to it, and none that is younger than 30 days by the server's own clock.
    """
    unfinished = Recovery.objects.exclude(state=RecoveryState.FINISHED)
    certified = Recovery.objects.filter(state=RecoveryState.FINISHED).order_by("pipeline_id", "-created_at")
    newest = list(certified.distinct("pipeline_id").values_list("pk", "plan_id"))
    kept_recoveries = [pk for pk, _ in newest] + list(unfinished.values_list("pk", flat=True))
    kept_plans = [plan for _, plan in newest] + list(unfinished.values_list("plan_id", flat=True))
    waiting = Plan.objects.filter(state__in=[*WAITING_STATES, PlanState.DRAFT, PlanState.COMPUTING])
    old = Event.objects.filter(at__lt=before)
    old = old.exclude(recovery_id__in=kept_recoveries).exclude(plan_id__in=kept_plans)
    old = old.exclude(plan_id__in=waiting.values("pk"))
    total = 0
    for _ in range(ROUNDS):
        with transaction.atomic():
            rows = list(
                old.order_by("id").values_list("id", "at", "kind", "actor", "pipeline_id", "says", "data")[:AT_ONCE]
            )
            if not rows:
                break
            ids = [row[0] for row in rows]
            digest = hashlib.sha256("\n".join(repr(row) for row in rows).encode()).hexdigest()
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('fencepost.retire_events_before', %s, true)", [before.isoformat()])
                RefusalCount.objects.filter(event_id__in=ids).delete()
                cursor.execute("DELETE FROM recovery_api_event WHERE id = ANY(%s)", [ids])
                cursor.execute("SELECT set_config('fencepost.retire_events_before', '', true)")
            first, last = rows[0][1], max(row[1] for row in rows)
            says = (
                f"{len(rows):,} events of {first:%Y-%m-%d} to {last:%Y-%m-%d} went from the timeline: they were older than"
                " events are kept."
            )
            data = {
                "events": str(len(rows)),
                "first": str(ids[0]),
                "last": str(ids[-1]),
                "before": before.isoformat(),
                "digest": digest,
            }
            event_append(EventKind.RETIRED, actor=ACTOR, now=now, says=says, data=data)
        total += len(rows)
        if len(rows) < AT_ONCE:
            break
    return total


def _lanes_old(before: datetime) -> QuerySet[LedgerLane]:
    """Lanes as they were known in an earlier epoch, or before that was void, and of which nobody decided anything."""
    newer = LedgerLane.objects.filter(
        pipeline=OuterRef("pipeline"), lane=OuterRef("lane"), read_at__gt=OuterRef("read_at")
    )
    found = LedgerLane.objects.filter(Exists(newer), read_at__lt=before, decided_at__isnull=True)
    return found.order_by("read_at")


def _archive_old(before: datetime) -> QuerySet[ArchivePart]:
    """Of files that went those that are not the last of what they are of: the next audit goes on from where that ends."""
    same = {name: OuterRef(name) for name in ("pipeline", "lane", "incarnation", "mapping")}
    beyond = Q(high_position__gt=OuterRef("high_position")) | Q(
        high_position=OuterRef("high_position"), high_ordinal__gt=OuterRef("high_ordinal")
    )
    later = ArchivePart.objects.filter(beyond, **same, audit__isnull=False)
    newer = ArchivePart.objects.filter(pipeline=OuterRef("pipeline"), pk__gt=OuterRef("pk"))
    found = ArchivePart.objects.filter(Exists(later), Exists(newer), gone_at__lt=before)
    return found.order_by("gone_at")


def _images_old(before: datetime) -> QuerySet[ImageAudit]:
    """Those that another one followed, and without parts."""
    newer = ImageAudit.objects.filter(pipeline=OuterRef("pipeline"), finished_at__gt=OuterRef("finished_at"))
    return ImageAudit.objects.filter(Exists(newer), _without_parts(), finished_at__lt=before).order_by("finished_at")


def _audits_old(before: datetime) -> QuerySet[Audit]:
    """Those that nothing rests on, superseded or void, followed by another one, and without parts."""
    newer = Audit.objects.filter(pipeline=OuterRef("pipeline"), finished_at__gt=OuterRef("finished_at"))
    found = audits_unneeded(Audit.objects.filter(Exists(newer), _without_parts(), finished_at__lt=before))
    found = found.filter(Q(is_standing=False) | Q(void_since__isnull=False) | Q(pipeline__retired_at__lt=before))
    return found.order_by("finished_at")


def _plans_old(before: datetime) -> QuerySet[Plan]:
    """Those that ended without being applied. What was applied is its certificate's, and stays."""
    newer = Plan.objects.filter(pipeline=OuterRef("pipeline"), created_at__gt=OuterRef("created_at"))
    found = Plan.objects.filter(
        Exists(newer),
        _without_parts(),
        created_at__lt=before,
        state__in=[PlanState.NOTHING_OWED, PlanState.REFUSED, PlanState.LAPSED],
        recoveries__isnull=True,
    )
    return found.filter(~Exists(Event.objects.filter(plan=OuterRef("pk")))).order_by("created_at")


def _intents_old(before: datetime) -> QuerySet[Intent]:
    """Finished work that no audit, image audit, drill or content is of."""
    found = Intent.objects.filter(state__in=ENDED, finished_at__lt=before)
    found = found.filter(audits__isnull=True, image__isnull=True, drill__isnull=True, content__isnull=True)
    return found.filter(Q(recovery__isnull=True) | Q(recovery__state=RecoveryState.FINISHED)).order_by("finished_at")


def _without_parts() -> Q:
    return Q(evidence_uri="") | Q(evidence_gone_at__isnull=False)


def _rounds(old: QuerySet[Any], delete: Callable[[Sequence[Any]], Any]) -> int:
    total = 0
    for _ in range(ROUNDS):
        try:
            with transaction.atomic():
                ids = list(old.values_list("pk", flat=True)[:AT_ONCE])
                delete(ids)
        except IntegrityError:  # something began to rest on one of them meanwhile: a later sweep chooses again
            break
        total += len(ids)
        if len(ids) < AT_ONCE:
            break
    return total


def _lanes_delete(before: datetime, ids: Sequence[int]) -> None:
    """Under the lock under which audits are merged, and chosen once more: an epoch may have come back."""
    keys = LedgerLane.objects.filter(pk__in=ids).values("pipeline")
    list(Pipeline.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk"))
    LedgerLane.objects.filter(pk__in=_lanes_old(before).filter(pk__in=ids).values("pk")).delete()


def _deleter(model: type[Model]) -> Callable[[Sequence[Any]], Any]:
    return lambda ids: model._default_manager.filter(pk__in=ids).delete()


def _plans_delete(ids: Sequence[UUID]) -> None:
    Finding.objects.filter(plan__in=ids).delete()
    Intent.objects.filter(plan__in=ids, state__in=ENDED, audits__isnull=True).delete()
    Plan.objects.filter(pk__in=ids).delete()
