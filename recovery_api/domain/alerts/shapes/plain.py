"""Fencepost's own JSON webhook, signed (signatures.py). Its schema is docs/webhook.schema.json."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recovery_api.domain.alerts.messages import Message, late_says
from recovery_api.domain.alerts.outbox import DeliveryKind
from recovery_api.domain.alerts.shapes.base import Request, body_of
from recovery_api.domain.alerts.signatures import headers_signed

VERSION = "1"


def request(message: Message, secret: str, sent_at: datetime) -> Request:
    body = body_of(payload(message, sent_at))
    return Request(body, {"Content-Type": "application/json", **headers_signed(secret, message.id, sent_at, body)})


def payload(message: Message, sent_at: datetime) -> dict[str, Any]:
    """`is_page`: a person is to be called by it. Numbers wider than JavaScript's are not in it."""
    return {
        "version": VERSION,
        "id": message.id,
        "kind": message.kind.value,
        "is_page": message.kind is DeliveryKind.TRIGGER,
        "key": message.key,
        "cause": message.cause,
        "severity": message.severity.value,
        "title": message.title,
        "says": message.body(sent_at),
        "end": message.end,
        "count": message.count,
        "members": [
            {"alert": one.alert, "name": one.name, "says": one.says, "since": one.since.isoformat()}
            for one in message.members
        ],
        "labels": dict(message.labels),
        "since": message.since.isoformat(),
        "sent_at": sent_at.isoformat(),
        "is_late": bool(late_says(message.due_since, sent_at)),
        "due_since": message.due_since.isoformat(),
        "url": message.url,
        "runbook_url": message.runbook_url,
    }
