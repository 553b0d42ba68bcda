"""The ledger: what audits found and nobody settled, how far each lane was seen, and what a person decides of the rest."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.ledger_rows import item_as_row, ledger_lane_as_row
from recovery_api.models import LedgerLane
from recovery_api.schema import operation
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.ledger import ledger_items_open, ledger_lane_rows
from recovery_api.serializers.fields import Body, Text
from recovery_api.serializers.ledger import ItemShape, LedgerLaneShape
from recovery_api.serializers.shapes import page_of
from recovery_api.services.ledger import ledger_decide_below
from recovery_api.views.base import ApiView, answer
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor


class DecisionBody(Body):
    coordinate = Text(help_text="In the source's spelling: nothing is owed below it.")
    lane = Text(required=False, help_text="0, unless said.")
    reason = Text(help_text="How you know that nothing is owed there.")


class PipelineItems(ApiView):
    query_class = PageQuery

    @operation(
        "list_open_items",
        "What audits found missing or wrong and nothing has settled, in order of coordinate.",
        answer=page_of(ItemShape),
        query=PageQuery,
        is_named=True,
        errors=[404],
        tag="ledger",
    )
    def get(self, request: Request, name: str) -> Response:
        found = ledger_items_open(pipeline_get(name))
        return page(request, self.asked, found, ("lane", "position", "ordinal", "id"), item_as_row)


class PipelineLedger(ApiView):
    query_class = PageQuery

    @operation(
        "list_ledger_lanes",
        "How far each lane was seen, and where nobody saw anything.",
        answer=page_of(LedgerLaneShape),
        query=PageQuery,
        is_named=True,
        errors=[404],
        tag="ledger",
    )
    def get(self, request: Request, name: str) -> Response:
        newest = ledger_lane_rows(pipeline_get(name)).values("pk")
        found = LedgerLane.objects.filter(pk__in=newest).select_related("pipeline__source")
        return page(request, self.asked, found, ("lane", "id"), ledger_lane_as_row)

    @operation(
        "decide_nothing_owed_below",
        "Decide that nothing is owed below a coordinate, where no audit saw what was committed.\n\nEvery verdict that "
        "rests on it names it.",
        answer=LedgerLaneShape,
        status=201,
        body=DecisionBody,
        is_named=True,
        errors=[404],
        request_example={"coordinate": "4000", "reason": "Imported before the sink was there."},
        tag="ledger",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        given = DecisionBody.read(request.data)
        lane = ledger_decide_below(
            pipeline_get(name),
            given["coordinate"],
            reason=given["reason"],
            lane=given.get("lane", SINGLE_LANE),
            actor=actor(request),
            now=timezone.now(),
        )
        return answer(ledger_lane_as_row(lane), 201)
