"""Which function makes the request of each shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from recovery_api.domain.alerts.messages import Message
from recovery_api.domain.alerts.shapes import alertmanager, pagerduty, plain, slack
from recovery_api.domain.alerts.shapes.base import Request, Shape

REQUESTS: Mapping[Shape, Callable[[Message, str, datetime], Request]] = {
    Shape.PAGERDUTY: pagerduty.request,
    Shape.ALERTMANAGER: alertmanager.request,
    Shape.SLACK: slack.request,
    Shape.JSON: plain.request,
}
"""E-mail makes none (shapes.mail)."""
