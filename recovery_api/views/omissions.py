"""Acknowledged omissions: coordinates taken out of the obligation on purpose, each with its reason."""

from __future__ import annotations

from django.utils import timezone
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.errors import BadInput
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.moments import moment_read
from recovery_api.omission_rows import omission_as_row
from recovery_api.schema import operation
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.omissions import omission_list
from recovery_api.serializers.fields import Body, FlagWord, Text
from recovery_api.serializers.omissions import OmissionsActShape
from recovery_api.serializers.shapes import OmissionShape, page_of
from recovery_api.services.omissions import omission_acknowledge, omission_withdraw, omissions_withdraw
from recovery_api.views.base import ApiView, answer
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor

OMISSION_OR_ACT = PolymorphicProxySerializer(
    component_name="OmissionOrAct", serializers=[OmissionShape, OmissionsActShape], resource_type_field_name=None
)


class OmissionsQuery(PageQuery):
    with_withdrawn = FlagWord(help_text="true: those withdrawn, too.")


class OmissionBody(Body):
    coordinate = Text(help_text="In the source's spelling.")
    lane = Text(required=False, help_text="0, unless said.")
    reason = Text(help_text="Why this event is never to be delivered.")
    reference = Text(required=False, help_text="A ticket's address or number.")
    until = Text(
        required=False, help_text="Then it is owed again by itself: 2026-11-28T22:30:00Z. For good, unless said."
    )


class WithdrawalBody(Body):
    coordinate = Text(required=False, help_text="In the source's spelling.")
    lane = Text(required=False, help_text="0, unless said.")
    act = Text(required=False, help_text="In place of a coordinate: everything that was acknowledged in this act.")


class PipelineOmissions(ApiView):
    query_class = OmissionsQuery

    @operation(
        "list_omissions",
        "What is acknowledged, in order of coordinate.",
        answer=page_of(OmissionShape),
        query=OmissionsQuery,
        is_named=True,
        errors=[404],
        tag="omissions",
    )
    def get(self, request: Request, name: str) -> Response:
        found = omission_list(pipeline_get(name), with_withdrawn=self.asked.get("with_withdrawn", False))
        return page(request, self.asked, found, ("lane", "position", "ordinal", "id"), omission_as_row)

    @operation(
        "acknowledge_omission",
        "Take a coordinate out of the obligation.\n\nIt stays lost in the verdict, is listed apart, and is never re-driven.",
        answer=OmissionShape,
        status=201,
        body=OmissionBody,
        is_named=True,
        errors=[404],
        request_example={"coordinate": "7001:42", "reason": "A test order."},
        tag="omissions",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        given = OmissionBody.read(request.data)
        pipeline = pipeline_get(name)
        omission = omission_acknowledge(
            pipeline,
            given["coordinate"],
            reason=given["reason"],
            lane=given.get("lane", SINGLE_LANE),
            reference=given.get("reference", ""),
            until=moment_read(given.get("until"), "until"),
            actor=actor(request),
            now=timezone.now(),
        )
        return answer(omission_as_row(omission), 201)


class PipelineOmissionWithdraw(ApiView):
    @operation(
        "withdraw_omission",
        "Owe the coordinate, or everything of one act, again. Waiting plans lapse.\n\nA coordinate is answered with its "
        "omission, an act with its count.",
        answer={(200, "application/json"): OMISSION_OR_ACT},
        body=WithdrawalBody,
        is_named=True,
        errors=[404],
        request_example={"coordinate": "7001:42"},
        tag="omissions",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        given = WithdrawalBody.read(request.data)
        pipeline = pipeline_get(name)
        if ("act" in given) == ("coordinate" in given):
            raise BadInput(
                "coordinate", "is neither given alone nor left out for an act", "Give a coordinate, or an act."
            )
        if "act" in given:
            count = omissions_withdraw(pipeline, given["act"], actor=actor(request), now=timezone.now())
            return answer({"act": given["act"], "pipeline": pipeline.name, "count": count})
        omission = omission_withdraw(
            pipeline,
            given["coordinate"],
            lane=given.get("lane", SINGLE_LANE),
            actor=actor(request),
            now=timezone.now(),
        )
        return answer(omission_as_row(omission))
