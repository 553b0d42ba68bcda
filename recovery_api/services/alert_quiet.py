"""What people do with alerts: acknowledge one until a moment, give it back, mute what fits a name or a label until a moment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from recovery_api.domain.actors import subject
from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.alerts.evaluation import Silence
from recovery_api.domain.alerts.outbox import DeliveryKind
from recovery_api.domain.alerts.quiet import Mutes, note_check, until_check
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.labels import label_parse
from recovery_api.domain.words import words
from recovery_api.models import Alert, AlertLine, EventKind, Mute, Pipeline, Sink, Source
from recovery_api.selectors.alerts import mute_says, served_by
from recovery_api.selectors.timelines import event_newest
from recovery_api.services.alert_telling import destinations_used, group_message, members_of
from recovery_api.services.alerts import acknowledgement_clear
from recovery_api.services.deliveries import deliveries_make
from recovery_api.services.events import event_append


def alert_acknowledge(alert: Alert, *, note: str, until: datetime | None, actor: str, now: datetime) -> Alert:
    """The alert, told to nobody again until then, unless it becomes worse.

    Raises: BadInput without a note or an end; Refused where it is over, or somebody else has acknowledged it.
    """
    text, end = note_check(note, "acknowledgement"), until_check(until, now, "acknowledgement")
    with transaction.atomic():
        locked = _locked(alert)
        if locked.resolved_at is not None:
            raise Refused(
                "acknowledging it", f"it resolved at {locked.resolved_at:%Y-%m-%d %H:%M} UTC", "Nothing is to be done."
            )
        if locked.acknowledged_until is not None and locked.acknowledged_until > now:
            until_text = f"{locked.acknowledged_until:%Y-%m-%d %H:%M} UTC"
            reason = f"{locked.acknowledged_by} acknowledged it until {until_text}"
            raise Refused("acknowledging it", reason, "Ask them, or give it back first.")
        locked.acknowledged_at, locked.acknowledged_until = now, end
        locked.acknowledged_by, locked.acknowledged_note = actor, text
        _keep(locked, Silence.ACKNOWLEDGED, f"Until {end:%Y-%m-%d %H:%M} UTC: {text}", actor, now)
        _tell_acknowledged(locked, f"{subject(actor)} acknowledged it until {end:%Y-%m-%d %H:%M} UTC: {text}", now)
    return locked


def alert_give_back(alert: Alert, *, actor: str, now: datetime) -> Alert:
    """The alert without its acknowledgement: it comes back as if that had ended. Raises: Refused where it has none."""
    with transaction.atomic():
        locked = _locked(alert)
        if locked.acknowledged_until is None or locked.resolved_at is not None:
            raise Refused("giving it back", "nobody has acknowledged it", "Nothing is to be done.")
        locked.acknowledged_until = max(now, locked.acknowledged_at) if locked.acknowledged_at else now
        if locked.acknowledged_until == locked.acknowledged_at:
            acknowledgement_clear(locked)
            locked.told = "nothing"
        _keep(locked, Silence.GIVEN_BACK, "It comes back at the next evaluation.", actor, now)
    return locked


def mute_add(
    by: str, value: str, *, note: str, until: datetime | None, actor: str, now: datetime, cause: str = ""
) -> Mute:
    """A mute. Raises: BadInput without an end or a note, and for a name, a label or a cause that is none."""
    text, end = note_check(note, "mute"), until_check(until, now, "mute")
    if by not in words(Mutes):
        raise BadInput("by", f"{by!r} is nothing to mute by", f"One of: {', '.join(words(Mutes))}.")
    if cause and cause not in words(Cause):
        raise BadInput("cause", f"{cause!r} is no cause", f"One of: {', '.join(words(Cause))}.")
    _value_check(Mutes(by), value)
    with transaction.atomic():
        mute = Mute.objects.create(
            by=by, value=value, cause=cause, note=text, until=end, created_at=now, created_by=actor
        )
        says = f"{mute_says(mute)} until {end:%Y-%m-%d %H:%M} UTC: {text}"
        _mute_told(mute, f"Muted: {says}", actor, now)
    return mute


def mute_end(mute: Mute, *, actor: str, now: datetime) -> Mute:
    """The mute, over from now on. Raises: Refused where it is over already."""
    with transaction.atomic():
        if not Mute.objects.filter(pk=mute.pk, ended_at__isnull=True, until__gt=now).update(
            ended_at=now, ended_by=actor
        ):
            raise Refused("ending this mute", "it is over already", "Nothing is to be done.")
        mute.ended_at, mute.ended_by = now, actor
        _mute_told(mute, f"No longer muted: {mute_says(mute)}", actor, now)
    return mute


def _value_check(by: Mutes, value: str) -> None:
    if by is Mutes.LABEL:
        label_parse(value, "value")
        return
    models: dict[Mutes, Any] = {Mutes.PIPELINE: Pipeline, Mutes.SOURCE: Source, Mutes.SINK: Sink}
    model = models[by]
    if not model._default_manager.filter(name=value, retired_at__isnull=True).exists():
        raise BadInput("value", f"there is no {by} {value!r}", "Give its name as it is registered.")


def _mute_told(mute: Mute, says: str, actor: str, now: datetime) -> None:
    """Of one pipeline's mute, and of its sink's, the event is that pipeline's."""
    used = Pipeline.objects.filter(retired_at__isnull=True)
    of: Pipeline | None = None
    if mute.by == Mutes.PIPELINE:
        of = used.filter(name=mute.value).first()
    elif mute.by == Mutes.SINK:
        of = served_by(Sink.objects.filter(name=mute.value, retired_at__isnull=True).first())
    data = {"mute": str(mute.pk)}
    event_append(EventKind.ALERTING_CHANGED, actor=actor, now=now, says=says, pipeline=of, data=data)


def _locked(alert: Alert) -> Alert:
    found: Alert = Alert.objects.select_for_update(of=("self",)).select_related("group").get(pk=alert.pk)
    return found


def _keep(alert: Alert, change: Silence, says: str, actor: str, now: datetime) -> None:
    alert.save(
        update_fields=[
            *("acknowledged_at", "acknowledged_until", "acknowledged_by", "acknowledged_note", "told"),
        ]
    )
    AlertLine.objects.create(alert=alert, at=now, change=change, actor=actor, says=says, after_event=event_newest())
    event_append(
        EventKind.ALERT_ACKNOWLEDGED,
        actor=actor,
        now=now,
        says=f"{Cause(alert.cause).label} was {change}. {says}",
        pipeline=alert.pipeline or served_by(alert.sink),
        data={"alert": str(alert.pk)},
    )


def _tell_acknowledged(alert: Alert, note: str, now: datetime) -> None:
    """Once every member of its page is acknowledged, where that page was told."""
    group = alert.group
    if group is None or group.closed_at is not None:
        return
    members: Sequence[Alert] = members_of([group]).get(group.pk, [])
    if not members or any(one.acknowledged_until is None or one.acknowledged_until <= now for one in members):
        return
    used = destinations_used([group]).get((group.pk, group.key), [])
    deliveries_make([(group_message(group, DeliveryKind.ACKNOWLEDGE, members, now, note=note), used)], now)
