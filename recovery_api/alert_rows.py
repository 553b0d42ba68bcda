"""Alerts, mutes, destinations, routes and deliveries as JSON objects: one spelling for command, REST and page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.alerts.messages import Message
from recovery_api.domain.schedules import span_at_least
from recovery_api.models import Alert, AlertLine, Delivery, Destination, Mute, Route
from recovery_api.rows import Row, time_as_text
from recovery_api.selectors.alerts import mute_says, name_of
from recovery_api.services.destinations import route_says

UNOBSERVED_AFTER = timedelta(minutes=15)
"""An open alert that was not observed for longer says so; of what rests on audits, their own period counts as well."""


def alert_as_row(alert: Alert, now: datetime) -> Row:
    return {
        "alert": str(alert.pk),
        "cause": alert.cause,
        "label": Cause(alert.cause).label,
        "about": name_of(alert),
        "pipeline": alert.pipeline.name if alert.pipeline else None,
        "severity": alert.severity,
        "state": alert_state(alert, now),
        "says": alert.says,
        "number": str(alert.number),
        "evidence": alert.evidence or None,
        "end": alert.end or None,
        "since": time_as_text(alert.since),
        "opened_at": time_as_text(alert.opened_at),
        "first_opened_at": time_as_text(alert.first_opened_at),
        "seen_at": time_as_text(alert.seen_at),
        "observed_says": observed_says(alert, now),
        "reopened_count": alert.reopened_count,
        "resolved_at": time_as_text(alert.resolved_at),
        "acknowledged_by": alert.acknowledged_by or None,
        "acknowledged_note": alert.acknowledged_note or None,
        "acknowledged_until": time_as_text(alert.acknowledged_until),
        "muted_until": time_as_text(alert.muted_until),
        "told": alert.told,
        "group": str(alert.group_id) if alert.group_id else None,
    }


def alert_state(alert: Alert, now: datetime) -> str:
    """open | acknowledged | muted | resolved: what a person is shown first."""
    if alert.resolved_at is not None:
        return "resolved"
    if alert.muted_until is not None and alert.muted_until > now:
        return "muted"
    if alert.acknowledged_until is not None and alert.acknowledged_until > now:
        return "acknowledged"
    return "open"


def observed_says(alert: Alert, now: datetime) -> str:
    """That nothing newer is known of an open alert; "" where something is."""
    if alert.resolved_at is not None or now - alert.observed_at <= UNOBSERVED_AFTER:
        return ""
    return f"Not observed since {alert.observed_at:%Y-%m-%d %H:%M} UTC, {span_at_least(now - alert.observed_at)} ago."


def line_as_row(line: AlertLine) -> Row:
    return {
        "at": time_as_text(line.at),
        "change": line.change,
        "actor": line.actor,
        "says": line.says,
        "evidence": line.evidence or None,
    }


def mute_as_row(mute: Mute) -> Row:
    return {
        "mute": str(mute.pk),
        "by": mute.by,
        "value": mute.value,
        "cause": mute.cause or None,
        "says": mute_says(mute),
        "note": mute.note,
        "until": time_as_text(mute.until),
        "created_at": time_as_text(mute.created_at),
        "created_by": mute.created_by,
        "ended_at": time_as_text(mute.ended_at),
        "ended_by": mute.ended_by or None,
    }


def destination_as_row(destination: Destination) -> Row:
    return {
        "name": destination.name,
        "shape": destination.shape,
        "address": destination.address,
        "secret": destination.secret or None,
        "is_on": destination.disabled_at is None,
        "disabled_at": time_as_text(destination.disabled_at),
        "disabled_says": destination.disabled_says or None,
        "created_at": time_as_text(destination.created_at),
        "created_by": destination.created_by,
    }


def route_as_row(route: Route) -> Row:
    return {
        "route": str(route.pk),
        "position": route.position,
        "destination": route.destination.name,
        "least": route.least,
        "causes": route.causes,
        "labels": route.labels,
        "goes_on": route.goes_on,
        "says": route_says(route),
    }


def delivery_as_row(delivery: Delivery) -> Row:
    return {
        "delivery": str(delivery.message_id),
        "number": str(delivery.number),
        "destination": delivery.destination.name,
        "key": delivery.key,
        "kind": delivery.kind,
        "state": delivery.state,
        "title": delivery_title(delivery.message),
        "count": delivery.message["count"],
        "created_at": time_as_text(delivery.created_at),
        "due_since": time_as_text(delivery.due_since),
        "due_at": time_as_text(delivery.due_at),
        "sent_at": time_as_text(delivery.sent_at),
        "is_late": delivery.is_late,
        "attempts": delivery.attempts,
        "answers": delivery.answers,
        "spare_at": time_as_text(delivery.spare_at),
        "superseded_by": str(delivery.superseded_by) if delivery.superseded_by else None,
    }


def delivery_title(message: Mapping[str, object]) -> str:
    return Message.from_row(message).title
