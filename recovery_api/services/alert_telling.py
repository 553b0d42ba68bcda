"""Who is told of which alerts: grouped into pages, each message a row of the outbox in the transaction of what it tells.

The law: a group is one page. Its first message pages; members that come later bring it up to date; one that became worse, or whose
acknowledgement ended, pages anew under a new key, after the old one was resolved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

from django.conf import settings

from recovery_api.domain.alerts.causes import Cause, Severity
from recovery_api.domain.alerts.evaluation import REOPENS_WITHIN
from recovery_api.domain.alerts.messages import NAMES_KEPT, MemberTold, labels_common
from recovery_api.domain.alerts.outbox import DeliveryKind
from recovery_api.domain.alerts.quiet import About, Told
from recovery_api.domain.alerts.routing import Way, way_of
from recovery_api.models import Alert, AlertGroup, Delivery, Destination
from recovery_api.selectors.alerts import abouts_get
from recovery_api.selectors.destinations import routes_standing
from recovery_api.services.deliveries import Draft, deliveries_make

GROUP_SAVED = ("severity", "round", "told_at", "told_count", "closed_at")


@dataclass(slots=True)
class Telling:
    """What was told. `unrouted`: alerts that no route takes, so that nobody is."""

    unrouted: int = 0
    messages: int = 0
    touched: list[Alert] = field(default_factory=list)


@dataclass(slots=True)
class Page:
    """One group in this pass. `is_paging`: it is new, or a member pages anew. `old_key`: what is resolved before that."""

    group: AlertGroup
    is_new: bool = False
    is_paging: bool = False
    old_key: str = ""
    due_since: datetime | None = None
    lost: list[Alert] = field(default_factory=list)


def tell(due: Sequence[tuple[Alert, About, bool]], over: Sequence[Alert], now: datetime) -> Telling:
    """Tells of those that are `due` (whether each pages anew) and of those that are `over`."""
    telling = Telling()
    if not due and not over:
        return telling
    routes = routes_standing() if due else []
    pages: dict[str, Page] = {}
    groups = {(one.cause, one.end, one.way): one for one in AlertGroup.objects.filter(closed_at__isnull=True)}
    by_id = {one.pk: one for one in groups.values()}
    for alert in over:
        alert.told = Told.RESOLVED
        telling.touched.append(alert)
        _leave(alert, by_id, pages)
    for alert, about, is_again in due:
        way = way_of(Cause(alert.cause), Severity(alert.severity), about.labels or {}, routes)
        if way.is_nobody:
            telling.unrouted += 1
            continue
        key = (alert.cause, alert.end, way.as_text())
        group = groups.get(key) or _reopened(alert, key, now)
        is_new = group is None
        if group is None:
            group = AlertGroup(cause=key[0], end=key[1], way=key[2], severity=alert.severity, opened_at=now)
        groups[key] = by_id[group.pk] = group
        if alert.group_id is not None and alert.group_id != group.pk:
            _leave(alert, by_id, pages)
        page = pages.setdefault(str(group.pk), Page(group))
        page.is_new = page.is_new or is_new
        page.is_paging = page.is_paging or is_new or group.closed_at is not None or is_again
        is_told = group.told_at is not None and group.closed_at is None
        if is_again and is_told and not page.is_new and not page.old_key:
            page.old_key = group.key
            group.round += 1
        group.closed_at = None
        page.due_since = min(page.due_since or alert.told_since, alert.told_since)
        alert.group, alert.told = group, Told.FIRING
        telling.touched.append(alert)
    return _write(pages, telling, now)


def group_message(
    group: AlertGroup,
    kind: DeliveryKind,
    members: Sequence[Alert],
    due_since: datetime,
    *,
    note: str = "",
    key: str = "",
    abouts: dict[str, About] | None = None,
) -> Draft:
    """The state of a group, whole. `members`: the open ones; of a resolve: those that it had last."""
    known = abouts_get({one.subject for one in members}) if abouts is None else abouts
    told = [
        MemberTold(str(one.pk), subject_name(one.subject, known), one.says, one.since)
        for one in sorted(members, key=lambda one: (one.since, one.subject))[:NAMES_KEPT]
    ]
    base = settings.FENCEPOST_URL.rstrip("/")
    page = f"/alerts/{members[0].pk}/" if len(members) == 1 else f"/alerts/?cause={group.cause}"
    is_one_pipeline = len(members) == 1 and members[0].pipeline_id is not None
    of = f"/pipelines/{quote(told[0].name, safe='')}" if is_one_pipeline else ""  # filled in with its values
    severities = [Severity(one.severity) for one in members] or [Severity(group.severity)]
    return Draft(
        key=key or group.key,
        kind=kind,
        cause=group.cause,
        severity=max(severities, key=lambda one: one.rank),
        end=group.end,
        count=len(members),
        members=tuple(told),
        since=min((one.since for one in members), default=group.opened_at),
        due_since=due_since,
        note=note,
        labels=labels_common([known[one.subject].labels or {} for one in members if one.subject in known]),
        url=f"{base}{page}" if base else "",
        runbook_url=f"{base}{of}/runbooks/{group.cause}/" if base else "",
        group=group,
    )


def subject_name(subject: str, abouts: dict[str, About]) -> str:
    """What a person calls it."""
    about = abouts.get(subject)
    if about is None:
        return subject.replace(":", " ")
    if subject.startswith("sink:"):
        return about.sinks[0] if about.sinks else subject
    return about.pipeline or about.source or "Fencepost"


def members_of(groups: Iterable[AlertGroup]) -> dict[object, list[Alert]]:
    """The open alerts that each group tells of, as stored."""
    found: dict[object, list[Alert]] = {}
    asked = Alert.objects.filter(group__in=list(groups), resolved_at__isnull=True, told=Told.FIRING)
    for alert in asked:
        found.setdefault(alert.group_id, []).append(alert)
    return found


def destinations_used(groups: Iterable[AlertGroup]) -> dict[tuple[object, str], list[int]]:
    """By group and key: where messages of it were made for, in that order."""
    found: dict[tuple[object, str], list[int]] = {}
    rows = Delivery.objects.filter(group__in=list(groups)).order_by("number")
    for group, key, destination in rows.values_list("group_id", "key", "destination_id"):
        into = found.setdefault((group, key), [])
        if destination not in into:
            into.append(destination)
    return found


def _leave(alert: Alert, groups: dict[object, AlertGroup], pages: dict[str, Page]) -> None:
    group = groups.get(alert.group_id)
    if group is not None:
        pages.setdefault(str(group.pk), Page(group)).lost.append(alert)


def _reopened(alert: Alert, key: tuple[str, str, str], now: datetime) -> AlertGroup | None:
    """The page that this alert was on, where it closed only lately: it keeps its key."""
    if alert.group_id is None or not alert.reopened_count:
        return None
    before = AlertGroup.objects.filter(pk=alert.group_id, closed_at__gt=now - 3 * REOPENS_WITHIN).first()
    return before if before is not None and (before.cause, before.end, before.way) == key else None


def _turned_on(drafts: Sequence[tuple[Draft, Sequence[int]]]) -> list[tuple[Draft, Sequence[int]]]:
    """The same without destinations that were turned off since the page began; in their place its spares."""
    on = set(Destination.objects.filter(disabled_at__isnull=True, retired_at__isnull=True).values_list("pk", flat=True))
    found: list[tuple[Draft, Sequence[int]]] = []
    for draft, keys in drafts:
        left = [key for key in keys if key in on]
        if not left and draft.kind is DeliveryKind.TRIGGER and draft.group is not None:
            left = [key for key in Way.from_text(draft.group.way).spares if key in on][:1]
        found.append((draft, left))
    return found


def _write(pages: dict[str, Page], telling: Telling, now: datetime) -> Telling:
    AlertGroup.objects.bulk_create([page.group for page in pages.values() if page.is_new])
    groups = [page.group for page in pages.values()]
    stored, used = members_of(groups), destinations_used(groups)
    mine = {alert.pk: alert for alert in telling.touched}
    told_now: dict[object, list[Alert]] = {}
    for alert in mine.values():
        if alert.told == Told.FIRING:
            told_now.setdefault(alert.group_id, []).append(alert)
    abouts = abouts_get()
    drafts: list[tuple[Draft, Sequence[int]]] = []
    for page in pages.values():
        group = page.group
        kept = [one for one in stored.get(group.pk, []) if one.pk not in mine]
        lost = {one.pk for one in page.lost}
        members = [one for one in (*kept, *told_now.get(group.pk, [])) if one.pk not in lost]
        way, due_since = Way.from_text(group.way), page.due_since or now
        if page.old_key:
            note = "It pages anew: it became worse, or its acknowledgement ended."
            gone = group_message(group, DeliveryKind.RESOLVE, members, now, note=note, key=page.old_key, abouts=abouts)
            drafts.append((gone, used.get((group.pk, page.old_key), way.told)))
        told = used.get((group.pk, group.key), [])
        if not members:
            group.closed_at = now
            drafts.append((group_message(group, DeliveryKind.RESOLVE, page.lost, now, abouts=abouts), told or way.told))
        else:
            kind = DeliveryKind.TRIGGER if page.is_paging else DeliveryKind.UPDATE
            draft = group_message(group, kind, members, due_since, abouts=abouts)
            group.severity = draft.severity
            drafts.append((draft, list(dict.fromkeys([*way.told, *told])) if page.is_paging else (told or way.told)))
        group.told_at, group.told_count = now, len(members)
    AlertGroup.objects.bulk_update(groups, GROUP_SAVED)
    telling.messages = deliveries_make(_turned_on(drafts), now)
    return telling
