"""Incidents: opened by hand or from an alert, changed, noted, closed with a cause. Each step is an event of the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from recovery_api.domain.actors import subject
from recovery_api.domain.alerts.causes import Severity
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.incidents import IncidentState, move_check
from recovery_api.domain.visible import visible
from recovery_api.domain.words import words
from recovery_api.models import EventKind, Incident, Pipeline
from recovery_api.selectors.versions import version_check
from recovery_api.services.events import event_append

PIPELINES_MOST = 1000
NOTE_LONGEST = 10_000


def incident_open(
    title: str,
    pipelines: Sequence[Pipeline],
    *,
    actor: str,
    now: datetime,
    severity: str = Severity.ERROR,
    commander: str = "",
    alert: str = "",
    noticed_at: datetime | None = None,
) -> Incident:
    """A named incident of these pipelines. `alert`: the key of the alert that it is opened from; `noticed_at`: when that, or a
    person, first said so; None: now.

    Raises: BadInput.
    """
    said = _title(title)
    _severity(severity)
    if len(pipelines) > PIPELINES_MOST:
        raise BadInput("pipelines", f"{len(pipelines)} are given", f"At most {PIPELINES_MOST}.")
    if noticed_at is not None and noticed_at > now:
        raise BadInput("noticed_at", "lies in the future", "Give when it was first said, or leave it out.")
    with transaction.atomic():
        incident = Incident.objects.create(
            title=said,
            severity=severity,
            commander=_line("commander", commander),
            alerts=[alert] if alert else [],
            noticed_at=noticed_at or now,
            opened_at=now,
            opened_by=actor,
        )
        incident.pipelines.set(pipelines)
        names = ", ".join(one.name for one in pipelines[:5]) + (" and others" if len(pipelines) > 5 else "")
        says = f"{subject(actor)} opened {said!r}, {severity}{f', of {names}' if names else ''}."
        _told(EventKind.INCIDENT_OPENED, incident, says, actor, now)
    return incident


def incident_change(
    incident: Incident,
    *,
    actor: str,
    now: datetime,
    title: str | None = None,
    state: str | None = None,
    severity: str | None = None,
    commander: str | None = None,
    cause: str | None = None,
    pipelines: Sequence[Pipeline] | None = None,
    alert: str = "",
    read: frozenset[str] | None = None,
) -> Incident:
    """What is given is changed, the rest stays. Closed, it says its cause; opened again, it keeps it. `read`: the versions that
    this is a change of (selectors.versions); None: of any.

    Raises: Outdated; BadInput; Refused where the state does not follow, or it would be closed without a cause.
    """
    with transaction.atomic():
        locked = Incident.objects.select_for_update().get(pk=incident.pk)
        version_check(locked, read)
        changes: list[str] = []
        wanted: dict[str, Any] = {
            "title": None if title is None else _title(title),
            "severity": severity if severity is None else _severity(severity),
            "commander": None if commander is None else _line("commander", commander),
            "cause": None if cause is None else cause.strip()[:NOTE_LONGEST],
        }
        for name, value in wanted.items():
            if value is not None and getattr(locked, name) != value:
                setattr(locked, name, value)
                changes.append(f"{name}: {value or 'none'}")
        if state is not None and state != locked.state:
            if state not in words(IncidentState):
                raise BadInput("state", f"{state!r} is no state", f"One of: {', '.join(words(IncidentState))}.")
            move_check(locked.title, locked.state, state)
            if state == IncidentState.CLOSED and not locked.cause:
                raise Refused(f"closing {locked.title!r}", "nobody wrote down its cause", "Give the cause with it.")
            changes.append(f"{locked.state} to {state}")
            locked.state = state
            locked.closed_at = now if state == IncidentState.CLOSED else None
        if alert and alert not in locked.alerts:
            locked.alerts = [*locked.alerts, alert]
            changes.append("an alert was added")
        locked.save()
        if pipelines is not None:
            before, after = {one.name for one in locked.pipelines.all()}, {one.name for one in pipelines}
            if before != after:
                locked.pipelines.set(pipelines)
                changes += [f"with {name}" for name in sorted(after - before)[:20]]
                changes += [f"without {name}" for name in sorted(before - after)[:20]]
        if changes:
            says = f"{subject(actor)} changed {locked.title!r}: {'; '.join(changes)}."
            _told(EventKind.INCIDENT_CHANGED, locked, says, actor, now)
    return locked


def incident_note(incident: Incident, text: str, *, actor: str, now: datetime) -> None:
    """A note in its timeline. Raises: BadInput."""
    said = text.strip()
    if not said or len(said) > NOTE_LONGEST:
        raise BadInput("text", "is empty or too long", f"Write a sentence, at most {NOTE_LONGEST:,} characters.")
    _told(EventKind.INCIDENT_NOTED, incident, said, actor, now)


def _told(kind: str, incident: Incident, says: str, actor: str, now: datetime) -> None:
    event_append(kind, actor=actor, now=now, says=says, data={"incident": str(incident.id), "title": incident.title})


def _title(text: str) -> str:
    said = _line("title", text)
    if not said:
        raise BadInput("title", "is missing", "Name it as people will call it, like: Orders owed after the relay died.")
    return said


def _line(field: str, text: str) -> str:
    said = text.strip()
    if len(said) > 200 or visible(said) != said or not said.isprintable():
        raise BadInput(field, "is longer than 200 characters, or holds what cannot be read", "Write one line.")
    return said


def _severity(word: str) -> str:
    if word not in words(Severity):
        raise BadInput("severity", f"{word!r} is no severity", f"One of: {', '.join(words(Severity))}.")
    return word
