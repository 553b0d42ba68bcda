"""PagerDuty Events API v2.

Source: developer.pagerduty.com/docs/events-api-v2/trigger-events (raw text: github.com/PagerDuty/developer-docs,
docs/events-API-v2/02-Trigger-Events.md): routing_key, event_action, dedup_key of at most 255 characters, payload.summary of at
most 1024, payload.severity one of critical, error, warning, info; a trigger of a known key updates its alert.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recovery_api.domain.alerts.messages import Message
from recovery_api.domain.alerts.outbox import DeliveryKind
from recovery_api.domain.alerts.shapes.base import Request, body_of, cut

ACTIONS = {
    DeliveryKind.TRIGGER: "trigger",
    DeliveryKind.UPDATE: "trigger",
    DeliveryKind.TEST: "trigger",
    DeliveryKind.ACKNOWLEDGE: "acknowledge",
    DeliveryKind.RESOLVE: "resolve",
}
SUMMARY_MOST = 1024
DETAILS_MOST = 400_000
"""Of the 512 KB that an event may have."""


def request(message: Message, secret: str, sent_at: datetime) -> Request:
    """A test opens an incident of its own, of the least severity that there is."""
    event: dict[str, Any] = {
        "routing_key": secret,
        "event_action": ACTIONS[message.kind],
        "dedup_key": message.key[:255],
    }
    if event["event_action"] == "trigger":
        is_test = message.kind is DeliveryKind.TEST
        event["payload"] = {
            "summary": cut(message.title, SUMMARY_MOST),
            "source": cut(message.end or "Fencepost", 255),
            "severity": "info" if is_test else message.severity.value,
            "timestamp": message.since.isoformat(),
            "component": cut(message.names[0] if message.count == 1 and message.names else message.end, 255),
            "group": message.end,
            "class": message.cause,
            "custom_details": {
                "count": message.count,
                "members": message.names,
                "says": cut("\n".join(message.body(sent_at)), DETAILS_MOST),
                "labels": dict(message.labels),
            },
        }
        event["client"] = "Fencepost"
        if message.url:
            event["client_url"] = message.url
        if message.runbook_url:
            event["links"] = [{"href": message.runbook_url, "text": "Runbook"}]
    return Request(body_of(event), {"Content-Type": "application/json"})
