"""A finding that somebody leaves as it is, with a reason."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.rows import left_as_row
from recovery_api.schema import operation
from recovery_api.selectors.ends import pipeline_get
from recovery_api.serializers.fields import Body, Text
from recovery_api.serializers.shapes import LeftShape
from recovery_api.services.findings_left import finding_leave
from recovery_api.views.base import ApiView, answer
from recovery_api.views.idempotent import idempotent
from recovery_api.views.permission import actor


class LeaveBody(Body):
    coordinate = Text(help_text="In the source's spelling.")
    lane = Text(required=False, help_text="0, unless said.")
    reason = Text(help_text="Why it may stay as it is.")


class PipelineFindingsLeave(ApiView):
    @operation(
        "leave_finding",
        "Leave what was found at a coordinate as it is, with a reason.\n\nA note for whoever looks next: it changes no verdict, "
        "and what is owed stays owed. `left` of a finding is the newest.",
        answer=LeftShape,
        status=201,
        body=LeaveBody,
        is_named=True,
        errors=[404],
        request_example={"coordinate": "7001:42", "reason": "A corrected price; the mail was right."},
        tag="audits",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        given = LeaveBody.read(request.data)
        left = finding_leave(
            pipeline_get(name),
            given["coordinate"],
            lane=given.get("lane", SINGLE_LANE),
            reason=given["reason"],
            actor=actor(request),
            now=timezone.now(),
        )
        return answer(left_as_row(left), 201)
