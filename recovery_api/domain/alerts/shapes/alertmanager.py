"""Alertmanager API v2: POST /api/v2/alerts.

Source: github.com/prometheus/alertmanager, api/v2/openapi.yaml (postableAlerts); prometheus.io/docs/alerting/latest/clients: a client
sends what is firing again and again, and an alert that is not told again ends at its endsAt.

The law: an alert there is its labels, so nothing that may change is one. `endsAt` outlives three missed re-sends.
"""

from __future__ import annotations

from datetime import datetime

from recovery_api.domain.alerts.messages import Message
from recovery_api.domain.alerts.outbox import RESENDS_OUTLIVED, RESENT_EVERY, DeliveryKind
from recovery_api.domain.alerts.shapes.base import Request, body_of, cut

PATH = "/api/v2/alerts"
LIVES_FOR = RESENT_EVERY * (RESENDS_OUTLIVED + 1)


def request(message: Message, secret: str, sent_at: datetime) -> Request:
    ends_at = sent_at if message.kind in (DeliveryKind.RESOLVE, DeliveryKind.TEST) else sent_at + LIVES_FOR
    annotations = {
        "summary": message.title,
        "description": cut("\n".join(message.body(sent_at)), 100_000),
        "count": str(message.count),
        "members": cut(", ".join(message.names), 100_000),
    }
    if message.runbook_url:
        annotations["runbook_url"] = message.runbook_url
    alert = {
        "labels": {
            **{f"label_{name}": value for name, value in message.labels.items()},
            "alertname": f"Fencepost{''.join(word.title() for word in message.cause.split('_'))}",
            "cause": message.cause,
            "severity": message.severity.value,
            "end": message.end or "Fencepost",
            "fencepost_key": message.key,
        },
        "annotations": annotations,
        "startsAt": min(message.since, ends_at).isoformat(),
        "endsAt": ends_at.isoformat(),
        **({"generatorURL": message.url} if message.url else {}),
    }
    return Request(body_of([alert]), {"Content-Type": "application/json", **_bearer(secret)}, PATH)


def _bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"} if secret else {}
