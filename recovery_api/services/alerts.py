"""Alerts are evaluated here, whole and in one transaction: what is observed, what that does to each alert, and who is told.

The law: one evaluation at a time, whoever makes it; and what is to be told is a row in the same transaction (deliveries).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Q

from recovery_api.domain.actors import by
from recovery_api.domain.alerts.causes import Cause, Scope, Severity
from recovery_api.domain.alerts.ends import Reached
from recovery_api.domain.alerts.evaluation import (
    REOPENS_WITHIN,
    Change,
    Held,
    Observed,
    Silence,
    Subject,
    is_quiet_after_reopening,
    observe,
)
from recovery_api.domain.alerts.quiet import About, Told, is_to_be_told, mute_of
from recovery_api.domain.errors import FencepostError
from recovery_api.models import Alert, AlertGroup, AlertLine, Delivery, Mute, Pipeline, Sink, Upkeep
from recovery_api.selectors.alerts import EVALUATED, abouts_get, evaluated_at, mute_says, muted_of, mutes_standing
from recovery_api.selectors.alerts_seen import alerts_seen
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_list
from recovery_api.selectors.headroom import PipelineHeadroom, fleet_headroom
from recovery_api.selectors.headroom_figures import Figure, events_newest, figures_standing
from recovery_api.selectors.timelines import event_newest
from recovery_api.services.alert_telling import Telling, tell
from recovery_api.services.headroom import headroom_keep

ACTOR = "pager"
LOCK = 0x46454E4345
"""Of the database: who holds it evaluates."""
HEADROOMS_AT_ONCE = 50
"""So many pipelines' headroom one evaluation works out at most; workers do it, too."""
NOT_SHOWN = {
    Change.CLEARING: "Not so in a newer observation, and one more is needed: ",
    Change.RESOLVED: "No longer so: ",
}
"""Words put before the alert's last sentence where an observation that does not show the cause has no sentence of its own."""
HELD = tuple(field.name for field in fields(Held))
SAVED = (*HELD, "end", "told", "told_since", "group", "muted_until")
"""Without the acknowledgement: a person may write that while an evaluation runs, and it is only ever taken away here, on purpose."""
UNACKNOWLEDGED = {
    "acknowledged_at": None,
    "acknowledged_until": None,
    "acknowledged_by": "",
    "acknowledged_note": "",
}


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What one evaluation came to. `unrouted`: open alerts that no route takes. `changes`: how many of each word."""

    at: datetime
    observed: int
    open_count: int
    changes: Mapping[str, int]
    unrouted: int
    messages: int


def alerts_evaluate(
    reached: Mapping[Cause, Reached], newest_kit: int | None = None, at: datetime | None = None
) -> Evaluated | None:
    """One whole evaluation, committed. None: another pager was at it. `at`: when it is; None: now, by this database's clock."""
    figures = _headrooms(at or now_get())
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
            if not cursor.fetchone()[0]:
                return None
        now = at or now_get()
        return Evaluation(now, evaluated_at() or now).run(alerts_seen(now, figures, reached, newest_kit))


def _headrooms(now: datetime) -> dict[int, Figure]:
    """Headroom as it was worked out before, and of a few whose figure counts no more as it is now."""
    keys = list(pipeline_list().values_list("pk", flat=True))
    found = figures_standing(keys, now)
    missing = [key for key in keys if key not in found][:HEADROOMS_AT_ONCE]
    if missing:
        events, pipelines = events_newest(missing), list(pipeline_list().filter(pk__in=missing))
        live = _worked_out(pipelines, now)
        headroom_keep([(one, live[one.pk]) for one in pipelines if one.pk in live], events)
        found |= {key: Figure(one.found.standing, one.found.decide_by) for key, one in live.items()}
    return found


def _worked_out(pipelines: Sequence[Pipeline], now: datetime) -> dict[int, PipelineHeadroom]:
    """Headroom of each; without those whose options this release does not understand."""
    try:
        return fleet_headroom(pipelines, now)
    except FencepostError:
        if len(pipelines) == 1:
            return {}
        return {key: one for pipeline in pipelines for key, one in _worked_out([pipeline], now).items()}


class Evaluation:
    """One pass. `last`: when the one before it was made: what is new now appeared after that."""

    def __init__(self, now: datetime, last: datetime) -> None:
        self.now, self.last = now, last
        self.alerts: dict[tuple[str, str], Alert] = {}
        self.new: list[Alert] = []
        self.touched: dict[str, Alert] = {}
        self.lines: list[AlertLine] = []
        self.worsened: set[str] = set()
        self.returned: set[str] = set()
        self.cleared: set[str] = set()

    def run(self, observed: Collection[Observed]) -> Evaluated:
        self._load()
        for one in observed:
            self._apply(one)
        self._gone()
        self._acknowledged()
        telling = self._tell()
        self._save()
        Upkeep.objects.update_or_create(name=EVALUATED, defaults={"done_at": self.now})
        still = [alert for alert in self._every() if alert.resolved_at is None]
        counts: dict[str, int] = {}
        for line in self.lines:
            counts[line.change] = counts.get(line.change, 0) + 1
        return Evaluated(self.now, len(observed), len(still), counts, telling.unrouted, telling.messages)

    def _load(self) -> None:
        lately = Alert.objects.filter(Q(resolved_at__isnull=True) | Q(resolved_at__gt=self.now - REOPENS_WITHIN))
        for alert in lately.order_by("-resolved_at").reverse():
            key = (alert.cause, alert.subject)
            held = self.alerts.get(key)
            if held is None or alert.resolved_at is None or (held.resolved_at and held.resolved_at < alert.resolved_at):
                self.alerts[key] = alert

    def _apply(self, seen: Observed) -> None:
        key = (seen.cause.value, subject_text(seen.subject))
        alert = self.alerts.get(key)
        step = observe(held_of(alert) if alert else None, seen, self.now)
        if step.change is None or step.held is None:
            return
        if step.is_new or alert is None:
            alert = _alert_of(seen, step.held, told_since=max(step.held.since, min(self.last, self.now)))
            self.alerts[key] = alert
            self.new.append(alert)
        else:
            self._change(alert, step.held, step.change, seen)
        if step.change is not Change.SEEN:
            self._line(alert, step.change, seen.says or f"{NOT_SHOWN.get(step.change, '')}{alert.says}", seen.evidence)

    def _change(self, alert: Alert, held: Held, change: Change, seen: Observed) -> None:
        is_worse = (held.level_severity, held.level_number) != (Severity(alert.level_severity), alert.level_number)
        for name in HELD:
            setattr(alert, name, getattr(held, name))
        self.touched[str(alert.pk)] = alert
        if change is Change.REOPENED:
            alert.told, alert.told_since, alert.end = Told.NOTHING, self.now + REOPENS_WITHIN, seen.end[:300]
            alert.muted_until = None  # of when it was open before
            if is_worse:  # that is told at once, as it would be of an open one
                self.worsened.add(str(alert.pk))
                alert.told_since = self.now
        elif change is Change.WORSENED:
            self.worsened.add(str(alert.pk))
            alert.told_since = self.now
            if alert.acknowledged_until is not None:
                self._line(
                    alert, Silence.BROKE_THROUGH, f"It is worse than when {alert.acknowledged_by} acknowledged it."
                )
            self._unacknowledge(alert)
        elif change is Change.RESOLVED:
            self._unacknowledge(alert)

    def _unacknowledge(self, alert: Alert) -> None:
        acknowledgement_clear(alert)
        self.cleared.add(str(alert.pk))

    def _gone(self) -> None:
        """What an alert is about was taken out of use: nothing will be observed of it any more."""
        in_use = {Scope.INSTALLATION.value}
        in_use |= {
            f"pipeline:{key}" for key in Pipeline.objects.filter(retired_at__isnull=True).values_list("pk", flat=True)
        }
        used = Pipeline.objects.filter(retired_at__isnull=True)
        for which in ("sink_id", "delivery_id"):
            in_use |= {f"sink:{key}" for key in used.values_list(which, flat=True) if key is not None}
        retired = set(Sink.objects.filter(retired_at__isnull=False).values_list("pk", flat=True))
        for alert in self._every():
            is_retired = alert.sink_id in retired if alert.sink_id else False
            if alert.resolved_at is None and (alert.subject not in in_use or is_retired):
                alert.resolved_at, alert.clear_at = self.now, alert.clear_at or self.now
                self._unacknowledge(alert)
                self.touched[str(alert.pk)] = alert
                self._line(alert, Change.RESOLVED, "It was taken out of use.")

    def _acknowledged(self) -> None:
        """An acknowledgement whose end has come: the alert comes back by itself."""
        for alert in self._every():
            until = alert.acknowledged_until
            if alert.resolved_at is None and until is not None and until <= self.now:
                self._line(alert, Silence.CAME_BACK, f"The acknowledgement of {alert.acknowledged_by} ended.")
                self.returned.add(str(alert.pk))
                alert.told_since = max(until, min(self.last, self.now))
                acknowledgement_clear(alert)
                self.touched[str(alert.pk)] = alert

    def _tell(self) -> Telling:
        standing = {str(one.pk): one for one in mutes_standing(self.now)}
        mutes = muted_of(list(standing.values()))
        abouts = abouts_get()
        due: list[tuple[Alert, About, bool]] = []
        for alert in self._every():
            if alert.resolved_at is not None:
                continue
            about = replace(abouts.get(alert.subject, About("")), cause=alert.cause)
            mute = mute_of(about, mutes, self.now) if mutes else None
            self._mute_keep(alert, standing[mute.key] if mute else None)
            is_again = str(alert.pk) in self.worsened | self.returned
            if is_to_be_told(
                Told(alert.told),
                is_open=True,
                is_acknowledged=alert.acknowledged_until is not None,
                is_muted=mute is not None,
                is_flapping=is_quiet_after_reopening(held_of(alert), self.now),
                is_broken_through=is_again,
            ):
                due.append((alert, about, is_again))
            elif is_again:
                alert.told = Told.NOTHING  # muted now: it is told once the mute ends
        over = [alert for alert in self._every() if alert.resolved_at is not None and alert.told == Told.FIRING]
        telling = tell(due, over, self.now)
        for alert in telling.touched:
            self.touched[str(alert.pk)] = alert
        return telling

    def _mute_keep(self, alert: Alert, mute: Mute | None) -> None:
        until = mute.until if mute else None
        if alert.muted_until == until:
            return
        if mute is None:
            alert.told_since = max(alert.told_since, min(alert.muted_until or self.now, self.now))
            self._line(alert, Silence.UNMUTED, "No mute keeps it silent any more.")
        else:
            says = f"{mute_says(mute)} until {mute.until:%Y-%m-%d %H:%M} UTC, {by(mute.created_by)}: {mute.note}"
            self._line(alert, Silence.MUTED, f"{says[:1].upper()}{says[1:]}")
        alert.muted_until = until
        self.touched[str(alert.pk)] = alert

    def _save(self) -> None:
        new = {str(alert.pk) for alert in self.new}
        Alert.objects.bulk_create(self.new, batch_size=1000)
        Alert.objects.bulk_create(  # many rows of many columns: an UPDATE with a CASE for each takes longer than all the rest
            [alert for key, alert in self.touched.items() if key not in new],
            batch_size=1000,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=SAVED,
        )
        Alert.objects.filter(pk__in=self.cleared).update(**UNACKNOWLEDGED)
        ended = Alert.objects.filter(pk__in=self.returned, acknowledged_until__lte=self.now)  # not one that began since
        ended.update(**UNACKNOWLEDGED)
        newest = event_newest()
        for line in self.lines:
            line.after_event = newest
        AlertLine.objects.bulk_create(self.lines, batch_size=1000)

    def _every(self) -> Iterable[Alert]:
        return self.alerts.values()

    def _line(self, alert: Alert, change: str, says: str, evidence: str = "") -> None:
        self.lines.append(
            AlertLine(alert=alert, at=self.now, change=str(change), actor=ACTOR, says=says, evidence=evidence)
        )


def held_of(alert: Alert) -> Held:
    """What is kept of an alert, as the domain has it."""
    given = {name: getattr(alert, name) for name in HELD}
    words = {name: Severity(given[name]) for name in ("severity", "level_severity")}
    return Held(**{**given, **words})


def subject_text(subject: Subject) -> str:
    """As stored: `pipeline:12`."""
    return f"{subject.scope}:{subject.key}" if subject.key else str(subject.scope)


def acknowledgement_clear(alert: Alert) -> None:
    for name, value in UNACKNOWLEDGED.items():
        setattr(alert, name, value)


def _alert_of(seen: Observed, held: Held, told_since: datetime) -> Alert:
    key = {Scope.PIPELINE: "pipeline_id", Scope.SOURCE: "source_id", Scope.SINK: "sink_id"}.get(seen.subject.scope)
    about = {key: seen.subject.key} if key else {}
    given = {name: getattr(held, name) for name in HELD}
    return Alert(
        cause=seen.cause.value,
        subject=subject_text(seen.subject),
        end=seen.end[:300],
        first_opened_at=held.opened_at,
        told=Told.NOTHING,
        told_since=told_since,
        **about,
        **given,
    )


def alerts_forget(now: datetime, kept: timedelta) -> int:
    """How many rows went: alerts that resolved longer ago than rows are kept, their pages, and messages of before that."""
    before = now - kept
    gone = Alert.objects.filter(resolved_at__lt=before).delete()[0]
    gone += Delivery.objects.filter(created_at__lt=before, due_at__isnull=True).delete()[0]
    gone += AlertGroup.objects.filter(closed_at__lt=before, alerts__isnull=True, deliveries__isnull=True).delete()[0]
    gone += Mute.objects.filter(until__lt=before).delete()[0]
    return int(gone)
