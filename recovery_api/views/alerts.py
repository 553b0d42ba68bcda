"""Alerts by REST: list, show, acknowledge, give back; mutes."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.alert_rows import alert_as_row, line_as_row, mute_as_row
from recovery_api.domain.alerts.causes import Cause, Severity
from recovery_api.domain.alerts.quiet import Mutes as MuteBy
from recovery_api.domain.moments import moment_read
from recovery_api.domain.words import words
from recovery_api.models import Alert
from recovery_api.rows import Row
from recovery_api.schema import operation
from recovery_api.selectors.alerts import alert_get, alert_lines, alert_list, mute_get, mutes_standing
from recovery_api.selectors.clock import now_get
from recovery_api.serializers.alerts import AlertShape, AlertWholeShape, MuteShape
from recovery_api.serializers.fields import Body, Choice, Name, Text
from recovery_api.serializers.shapes import page_of
from recovery_api.services.alert_quiet import alert_acknowledge, alert_give_back, mute_add, mute_end
from recovery_api.views.base import ApiView, answer
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor

UNTIL = "Then it comes back by itself: 2026-11-28T22:30:00Z. Within 31 days."


class AlertsQuery(PageQuery):
    state = Choice(["open", "resolved", "all"], help_text="open, unless said.")
    cause = Choice(words(Cause))
    severity = Choice(words(Severity))
    pipeline = Name(help_text="Only of this one.")


class AcknowledgeBody(Body):
    note = Text(help_text="Why: others read it.")
    until = Text(help_text=UNTIL)


class MuteBody(Body):
    by = Choice(words(MuteBy))
    value = Text(help_text="The name of a pipeline, source or sink; of a label name=value.")
    cause = Choice(words(Cause), required=False, help_text="Every cause, unless said.")
    note = Text(help_text="Why: others read it.")
    until = Text(help_text="Without an end it is refused: 2026-11-28T22:30:00Z. Within 31 days.")


class Alerts(ApiView):
    query_class = AlertsQuery

    @operation("list_alerts", "Alerts, newest first.", answer=page_of(AlertShape), query=AlertsQuery, tag="alerts")
    def get(self, request: Request) -> Response:
        now = now_get()
        given = {name: self.asked[name] for name in ("state", "cause", "severity", "pipeline") if name in self.asked}
        return page(request, self.asked, alert_list(**given), ("-opened_at", "-id"), lambda one: alert_as_row(one, now))


class AlertOne(ApiView):
    @operation(
        "show_alert",
        "One alert, with what it means and everything that happened to it.",
        answer=AlertWholeShape,
        errors=[404],
        tag="alerts",
    )
    def get(self, request: Request, alert_id: UUID) -> Response:
        return answer(whole_row(alert_get(alert_id)))


class AlertAcknowledge(ApiView):
    @operation(
        "acknowledge_alert",
        "Take an alert over until a moment.\n\nIt is told to nobody again until then, unless it becomes worse.",
        answer=AlertShape,
        body=AcknowledgeBody,
        errors=[404],
        request_example={"note": "The relay is restarted.", "until": "2026-11-28T22:30:00Z"},
        tag="alerts",
    )
    @idempotent
    def post(self, request: Request, alert_id: UUID) -> Response:
        given, now = AcknowledgeBody.read(request.data), now_get()
        until = moment_read(given["until"], "until")
        alert = alert_get(alert_id)
        alert_acknowledge(alert, note=given["note"], until=until, actor=actor(request), now=now)
        return answer(alert_as_row(alert_get(alert_id), now))


class AlertGiveBack(ApiView):
    @operation(
        "give_alert_back",
        "End an acknowledgement: the alert comes back at once.",
        answer=AlertShape,
        errors=[404],
        tag="alerts",
    )
    @idempotent
    def post(self, request: Request, alert_id: UUID) -> Response:
        now = now_get()
        alert_give_back(alert_get(alert_id), actor=actor(request), now=now)
        return answer(alert_as_row(alert_get(alert_id), now))


class Mutes(ApiView):
    query_class = PageQuery

    @operation(
        "list_mutes",
        "What is muted now, the first to end first.",
        answer=page_of(MuteShape),
        query=PageQuery,
        tag="alerts",
    )
    def get(self, request: Request) -> Response:
        return page(request, self.asked, mutes_standing(now_get()), ("until", "id"), mute_as_row)

    @operation(
        "mute_alerts",
        "Tell nobody of what fits, until a moment.\n\nMuted alerts stay open and are shown as muted.",
        answer=MuteShape,
        status=201,
        body=MuteBody,
        request_example={
            "by": "label",
            "value": "team=payments",
            "note": "Moved tonight.",
            "until": "2026-11-28T22:30:00Z",
        },
        tag="alerts",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = MuteBody.read(request.data)
        mute = mute_add(
            given["by"],
            given["value"],
            cause=given.get("cause", ""),
            note=given["note"],
            until=moment_read(given["until"], "until"),
            actor=actor(request),
            now=now_get(),
        )
        return answer(mute_as_row(mute), 201)


class MuteEnd(ApiView):
    @operation("end_mute", "End a mute now.", answer=MuteShape, errors=[404], tag="alerts")
    @idempotent
    def post(self, request: Request, mute_id: UUID) -> Response:
        return answer(mute_as_row(mute_end(mute_get(mute_id), actor=actor(request), now=now_get())))


def whole_row(alert: Alert) -> Row:
    """An alert with its cause's meaning and its history."""
    cause = Cause(alert.cause)
    of = f"?{urlencode({'pipeline': alert.pipeline.name})}" if alert.pipeline else ""
    return {
        **alert_as_row(alert, now_get()),
        "means": cause.means,
        "opens": cause.opens,
        "resolves": cause.resolves,
        "runbook": f"/api/v1/runbooks/{alert.cause}{of}",
        "history": [line_as_row(line) for line in alert_lines(alert)],
    }
