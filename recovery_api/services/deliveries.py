"""The outbox: messages are made, taken by a pager, and what each destination answered is kept.

The law: at least once and in order (domain.alerts.outbox). A pager takes a row by a guarded update before it sends, and writes down
the answer under the same guard, so that several may run and one may die.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.db.models import Q

from recovery_api.domain.alerts.messages import Message
from recovery_api.domain.alerts.outbox import (
    LEASE,
    SUMMARY_EVERY,
    UNSENT,
    Answer,
    DeliveryKind,
    DeliveryState,
    late_by,
    next_after,
)
from recovery_api.domain.alerts.routing import Way, spare_next
from recovery_api.domain.alerts.shapes.base import Shape
from recovery_api.models import AlertGroup, Delivery, Destination
from recovery_api.selectors.destinations import deliveries_due

ANSWERS_KEPT = 20
EXCERPT_KEPT = 500
PAGER = "pager"
RECORDED = ("state", "due_at", "taken_by", "taken_until", "answers", "is_late", "sent_at", "attempts", "superseded_by")
"""What an attempt changes of a delivery; the message stays as it is."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that has no destination yet. Its members are those of domain.alerts.messages.Message."""

    key: str
    kind: DeliveryKind
    cause: str
    severity: Any
    end: str
    count: int
    members: tuple[Any, ...]
    since: datetime
    due_since: datetime
    note: str
    labels: dict[str, str]
    url: str
    runbook_url: str
    group: AlertGroup | None = None

    def message(self, id_: str) -> Message:
        given = {name: getattr(self, name) for name in Message.__dataclass_fields__ if name != "id"}
        return Message(id=id_, **given)


def deliveries_make(drafts: Iterable[tuple[Draft, Sequence[int]]], now: datetime, actor: str = PAGER) -> int:
    """How many rows were made: each draft for each of its destinations, in the order given.

    An older message of the same destination and key that was not sent is superseded: what it was to page for, the new one does.
    """
    wanted = [(draft, key) for draft, keys in drafts for key in keys]
    if not wanted:
        return 0
    shapes = {one.pk: Shape(one.shape) for one in Destination.objects.filter(pk__in={key for _, key in wanted})}
    keys = {draft.key for draft, _ in wanted}
    unsent: dict[tuple[int, str], list[Delivery]] = {}
    of_keys = Delivery.objects.filter(key__in=keys, destination__in=shapes)
    for row in of_keys.filter(state=DeliveryState.WAITING).select_for_update().order_by("number"):
        unsent.setdefault((row.destination_id, row.key), []).append(row)
    last = {
        (row["destination_id"], row["key"]): row["sent_at"]
        for row in of_keys.filter(sent_at__isnull=False).order_by("sent_at").values("destination_id", "key", "sent_at")
    }
    made = 0
    for draft, destination in wanted:
        older = unsent.pop((destination, draft.key), [])
        row = _row(draft, destination, shapes[destination], older, last.get((destination, draft.key)), now, actor)
        row.save(force_insert=True)
        made += 1
        unsent[(destination, draft.key)] = [row]
        replaced = Delivery.objects.filter(pk__in=[one.pk for one in older], state=DeliveryState.WAITING)
        replaced.update(state=DeliveryState.SUPERSEDED, superseded_by=row.pk, due_at=None)
        resent = Delivery.objects.filter(
            destination=destination, key=draft.key, state=DeliveryState.SENT, number__lt=row.pk
        )
        resent.filter(due_at__isnull=False).update(due_at=None)
    return made


def _row(
    draft: Draft,
    destination: int,
    shape: Shape,
    older: Sequence[Delivery],
    last_sent: datetime | None,
    now: datetime,
    actor: str,
) -> Delivery:
    unheard = [one for one in older if one.kind == DeliveryKind.TRIGGER]
    due_since, kind, due_at = draft.due_since, draft.kind, now
    if unheard and kind is DeliveryKind.UPDATE:
        kind, due_since = DeliveryKind.TRIGGER, min(due_since, *(one.due_since for one in unheard))
        due_at = min(one.due_at or now for one in unheard)  # what its destination asked for still counts
    elif kind is DeliveryKind.UPDATE and shape.is_read_by_people:
        waits = [one.due_at for one in older if one.due_at is not None]
        due_at = min(waits) if waits else max(now, (last_sent or now - SUMMARY_EVERY) + SUMMARY_EVERY)
        due_since = due_at
    id_ = uuid4()
    message = replace(draft.message(str(id_)), kind=kind, due_since=due_since)
    return Delivery(
        message_id=id_,
        destination_id=destination,
        group=draft.group,
        key=draft.key,
        kind=kind,
        message=message.as_row(),
        created_at=now,
        created_by=actor,
        due_since=due_since,
        due_at=due_at,
    )


def deliveries_take(
    by: str, now: datetime, most: int, per_destination: int, busy: Mapping[int, int] | None = None
) -> list[Delivery]:
    """Up to `most` that are due, now `by`'s for a while; of each destination no more than `per_destination`, with those that it is
    `busy` with. Each destination is asked by itself: what waits for one that hangs is in nobody's way."""
    taken: list[Delivery] = []
    with transaction.atomic():
        for destination in Destination.objects.filter(retired_at__isnull=True, disabled_at__isnull=True).order_by("pk"):
            room = min(per_destination - (busy or {}).get(destination.pk, 0), most - len(taken))
            if room <= 0:
                continue
            due = deliveries_due(now).filter(destination=destination).select_for_update(skip_locked=True, of=("self",))
            for row in due[:room]:
                row.destination = destination
                taken.append(row)
        for row in taken:
            row.state, row.taken_by, row.attempts = DeliveryState.SENDING, by, row.attempts + 1
            row.taken_until = now + LEASE
        Delivery.objects.bulk_update(taken, ["state", "taken_by", "taken_until", "attempts"])
    return taken


def deliveries_return(taken: Iterable[Delivery]) -> None:
    """Those that were taken and not tried, for another pager at once."""
    for row in taken:
        mine = Delivery.objects.filter(
            pk=row.pk, state=DeliveryState.SENDING, taken_by=row.taken_by, attempts=row.attempts
        )
        mine.update(state=DeliveryState.WAITING, taken_by="", taken_until=None, attempts=row.attempts - 1)


def delivery_record(delivery: Delivery, answer: Answer, took_seconds: float, now: datetime) -> bool:
    """Keeps what came of an attempt. False: it was no longer ours, and nothing was written."""
    with transaction.atomic():
        row = (
            Delivery.objects.select_for_update(of=("self",))
            .select_related("destination", "group")
            .filter(
                pk=delivery.pk,
                state=DeliveryState.SENDING,
                taken_by=delivery.taken_by,
                attempts=delivery.attempts,
            )
            .first()
        )
        if row is None:
            return False
        is_over = row.kind in (DeliveryKind.RESOLVE, DeliveryKind.TEST) or getattr(row.group, "closed_at", None)
        is_resent = Shape(row.destination.shape).resends and not is_over
        following = next_after(answer, row.attempts, row.created_at, now, resends=is_resent)
        row.state, row.due_at, row.taken_by, row.taken_until = following.state, following.due_at, "", None
        row.answers = [*row.answers, _answer_row(answer, row.attempts, took_seconds, now)][-ANSWERS_KEPT:]
        if following.state is DeliveryState.SENT:
            row.is_late = row.is_late or (row.sent_at is None and late_by(row.due_since, now) is not None)
            row.sent_at, row.attempts = row.sent_at or now, 0 if is_resent else row.attempts
        _newer_settle(row)
        row.save(update_fields=RECORDED)
        if answer.disables:
            destination_disable(row.destination, answer.problem, now)
        if following.is_spare_due and row.spare_at is None and row.state is not DeliveryState.SUPERSEDED:
            spare_page(row, answer.problem, now)
    return True


def _newer_settle(row: Delivery) -> None:
    """Where a newer message of its key waits: this one is not tried again, and is not told again."""
    newer = Delivery.objects.filter(
        destination=row.destination_id, key=row.key, number__gt=row.pk, state__in=[one.value for one in UNSENT]
    ).order_by("number")
    following = newer.first()
    if following is None:
        return
    if row.state == DeliveryState.SENT:
        row.due_at = None
        return
    if row.state == DeliveryState.WAITING:
        row.state, row.due_at, row.superseded_by = DeliveryState.SUPERSEDED, None, following.pk
    if row.kind == DeliveryKind.TRIGGER and following.kind == DeliveryKind.UPDATE:
        message = {**following.message, "kind": DeliveryKind.TRIGGER.value, "due_since": row.message["due_since"]}
        newer.filter(pk=following.pk, kind=DeliveryKind.UPDATE).update(
            kind=DeliveryKind.TRIGGER, message=message, due_since=row.due_since
        )


def spare_page(failed: Delivery, problem: str, now: datetime) -> bool:
    """Pages the next route because this delivery's destination failed. False: there is none left, or it was done."""
    group = failed.group
    if group is None or group.closed_at is not None or failed.kind in (DeliveryKind.RESOLVE, DeliveryKind.TEST):
        return False
    used = list(Delivery.objects.filter(group=group, key=failed.key).values_list("destination_id", flat=True))
    on = set(Destination.objects.filter(disabled_at__isnull=True, retired_at__isnull=True).values_list("pk", flat=True))
    way = Way.from_text(group.way)
    spare = spare_next(replace(way, spares=tuple(key for key in way.spares if key in on)), used)
    Delivery.objects.filter(pk=failed.pk).update(spare_at=now)
    if spare is None:
        return False
    told = Message.from_row(failed.message)
    note = f"{failed.destination.name} does not take it ({problem}), so it is paged here."
    given = {name: getattr(told, name) for name in Message.__dataclass_fields__ if name not in ("id", "note", "kind")}
    draft = Draft(**{**given, "kind": DeliveryKind.TRIGGER, "note": note, "labels": dict(told.labels)}, group=group)
    return bool(deliveries_make([(draft, [spare])], now))


def destination_disable(destination: Destination, says: str, now: datetime) -> None:
    """Nothing more is sent there. What waits for it is refused, and the next route is paged."""
    Destination.objects.filter(pk=destination.pk, disabled_at__isnull=True).update(
        disabled_at=now, disabled_says=f"{says[:1].upper()}{says[1:]}."
    )
    waiting_refuse(destination, says, now)


def waiting_refuse(destination: Destination, says: str, now: datetime) -> None:
    for row in destination.deliveries.filter(state=DeliveryState.WAITING).select_related("group", "destination"):
        answer = _answer_row(Answer(0, f"was not sent: its destination {says}"), row.attempts, 0.0, now)
        mine = Delivery.objects.filter(pk=row.pk, state=DeliveryState.WAITING)
        if mine.update(state=DeliveryState.REFUSED, due_at=None, answers=[*row.answers, answer][-ANSWERS_KEPT:]):
            spare_page(row, says, now)
    destination.deliveries.filter(Q(state=DeliveryState.SENT), due_at__isnull=False).update(due_at=None)


def _answer_row(answer: Answer, attempt: int, took_seconds: float, now: datetime) -> dict[str, Any]:
    return {
        "at": now.isoformat(),
        "attempt": attempt,
        "status": answer.status,
        "problem": answer.problem,
        "excerpt": answer.excerpt[:EXCERPT_KEPT],
        "took_seconds": round(took_seconds, 3),
    }
