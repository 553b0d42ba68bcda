"""Jobs at a sink: settle it, read its fence, show or install its kit, drill it. Each is an intent; a worker does it."""

from __future__ import annotations

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.kinds import kinds_offered
from recovery_api.models import Intent
from recovery_api.rows import drill_as_row, end_as_row
from recovery_api.schema import operation
from recovery_api.selectors.drills import drill_list
from recovery_api.selectors.ends import sink_get
from recovery_api.serializers.fields import Body, Flag, Text, TextList, Whole
from recovery_api.serializers.shapes import DrillShape, SinkShape, page_of
from recovery_api.serializers.work import IntentShape
from recovery_api.services.drills import drill_request, drill_schedule
from recovery_api.services.sink_jobs import sink_install_request, sink_read_request
from recovery_api.services.sinks import sink_settle_request
from recovery_api.views.base import ApiView, accepted, answer
from recovery_api.views.idempotent import idempotent
from recovery_api.views.named import work_asked
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor

TRADES = sorted({trade for kind in kinds_offered("sink") if kind.installer for trade in kind.installer.trades})


class InstallBody(Body):
    is_shown_only = Flag(help_text="true: the result is the SQL, to read and run; false: a worker runs it.")
    is_upgrade = Flag(
        required=False,
        help_text="true: a kit of an earlier version is upgraded in place; its record and counters are kept.",
    )
    connection = Text(
        required=False, help_text="A reference to whoever may install: env:FENCEPOST_END_NAME or file:/path."
    )
    grants = serializers.DictField(required=False, child=Text(), help_text=f"{', '.join(TRADES)} -> a login.")


class SinkSettle(ApiView):
    @work_asked(
        "settle_sink",
        "Compare the sink with what it said before and, where it was restored, make it safe again.",
        tag="sinks",
    )
    def post(self, request: Request, name: str) -> Intent:
        return sink_settle_request(sink_get(name), actor=actor(request), now=timezone.now())


class SinkRead(ApiView):
    @work_asked(
        "read_sink",
        "Ask the sink for its fence, counter and claims as they are now: an intent whose result says.",
        tag="sinks",
    )
    def post(self, request: Request, name: str) -> Intent:
        return sink_read_request(sink_get(name), actor=actor(request), now=timezone.now())


class SinkInstall(ApiView):
    @operation(
        "install_sink",
        "Show the sink kit's SQL, install it, or upgrade it in place: an intent.",
        answer=IntentShape,
        status=202,
        body=InstallBody,
        is_named=True,
        errors=[404],
        request_example={"is_shown_only": True},
        tag="sinks",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        given = InstallBody.read(request.data)
        return accepted(sink_install_request(sink=sink_get(name), actor=actor(request), now=timezone.now(), **given))


class DrillBody(Body):
    names = TextList(required=False, help_text="Which drills; left out: all.")


class ScheduleBody(Body):
    every_hours = Whole(allow_null=True, min_value=1, max_value=24 * 366, help_text="null: only when asked.")


class SinkDrills(ApiView):
    query_class = PageQuery

    @operation(
        "list_drills",
        "The sink's drills, newest first.",
        answer=page_of(DrillShape),
        query=PageQuery,
        is_named=True,
        errors=[404],
        tag="sinks",
    )
    def get(self, request: Request, name: str) -> Response:
        return page(request, self.asked, drill_list(sink_get(name)), ("-requested_at", "-id"), drill_as_row)

    @operation(
        "drill_sink",
        "Let the sink prove what its recoveries rest on, in a namespace of its own: an intent.\n\nWhile one is under way: 409.",
        answer=IntentShape,
        status=202,
        body=DrillBody,
        is_named=True,
        errors=[404],
        tag="sinks",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        given = DrillBody.read(request.data)
        _, intent = drill_request(sink_get(name), actor=actor(request), now=timezone.now(), **given)
        return accepted(intent)


class SinkDrillSchedule(ApiView):
    @operation(
        "schedule_drills",
        "Drill the sink every so many hours from now on.",
        answer=SinkShape,
        body=ScheduleBody,
        is_named=True,
        errors=[404],
        request_example={"every_hours": 24},
        tag="sinks",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        given = ScheduleBody.read(request.data)
        sink = drill_schedule(sink_get(name), given["every_hours"], actor=actor(request), now=timezone.now())
        return answer(end_as_row(sink))
