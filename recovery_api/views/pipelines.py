"""Pipelines, and what is known of each: status, frontiers, generations, claims."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.labels import label_parse
from recovery_api.exceptions import BadRequest
from recovery_api.headroom_rows import statuses_as_rows
from recovery_api.models import Pipeline
from recovery_api.rows import (
    Row,
    claim_as_row,
    generation_as_row,
    intent_as_row,
    lanes_as_rows,
    pipeline_as_row,
    status_as_row,
)
from recovery_api.schema import operation
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get, pipeline_list, sink_get, source_get
from recovery_api.selectors.fleet import fleet_status, pipeline_status
from recovery_api.selectors.fleet_pages import TROUBLE, fleet_entries, fleet_select
from recovery_api.selectors.generations import claim_list, generation_list
from recovery_api.serializers.fields import Body, Choice, Flag, Name, OptionsField, Text, TextList
from recovery_api.serializers.shapes import (
    ClaimShape,
    FrontiersShape,
    GenerationShape,
    PipelineShape,
    StatusShape,
    page_of,
)
from recovery_api.serializers.work import IntentShape
from recovery_api.services.ends import connection_test_request
from recovery_api.services.pipelines import pipeline_create, pipeline_update
from recovery_api.services.retirement import pipeline_retire
from recovery_api.views.base import ApiView, answer, referenced, segment
from recovery_api.views.conditional import tagged, versions_read
from recovery_api.views.idempotent import idempotent
from recovery_api.views.named import NothingBody, retired
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor


class PipelinesQuery(PageQuery):
    source = Name(help_text="Only of this source.")
    sink = Name(help_text="Only of this sink, as the record.")
    delivery = Name(help_text="Only of this sink, as a delivery of its own.")
    owner = Text(help_text="Only those that this owner answers for.")
    label = Text(help_text="Only those with this label: name=value.")


class StatusesQuery(PipelinesQuery):
    status = Choice(TROUBLE, help_text="Only those of this status.")


class PipelineBody(Body):
    name = Name()
    source = Name(help_text="A registered source.")
    sink = Name(help_text="The record: a registered sink that serves no other pipeline.")
    delivery = Name(
        required=False,
        allow_null=True,
        help_text="Another registered sink that is fired into. null, or left out: the record itself.",
    )
    scope = TextList(required=False, allow_null=True, help_text="The keys it owes. null, or left out: every key.")
    options = OptionsField(required=False)
    requires_other_approver = Flag(required=False, help_text="Whether a plan's author may not approve it; true.")


class PipelineChange(Body):
    delivery = Name(required=False, allow_null=True, help_text="The sink that is fired into; null: the record itself.")
    scope = TextList(required=False, allow_null=True, help_text="The keys it owes; null: every key.")
    options = OptionsField(required=False, help_text="All of them: what is left out takes its default.")
    requires_other_approver = Flag(required=False)


CHANGED = ("delivery", "scope", "options", "requires_other_approver")
"""What of a pipeline may be changed later."""


class TestsShape(serializers.Serializer):
    items = IntentShape(many=True)


class Pipelines(ApiView):
    query_class = PipelinesQuery

    @operation(
        "list_pipelines",
        "Every pipeline, by name.",
        answer=page_of(PipelineShape),
        query=PipelinesQuery,
        errors=[422],
        tag="pipelines",
    )
    def get(self, request: Request) -> Response:
        return page(request, self.asked, _asked_for(self.asked), ("name",), pipeline_as_row)

    @operation(
        "create_pipeline",
        "Register a pipeline.",
        answer=PipelineShape,
        status=201,
        body=PipelineBody,
        request_example={"name": "orders-mail", "source": "orders", "sink": "mail", "options": {}},
        tag="pipelines",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = PipelineBody.read(request.data)
        source = referenced("source", source_get, given.pop("source"))
        sink = referenced("sink", sink_get, given.pop("sink"))
        if given.get("delivery") is not None:
            given["delivery"] = referenced("delivery", sink_get, given["delivery"])
        pipeline = pipeline_create(given.pop("name"), source, sink, actor=actor(request), now=timezone.now(), **given)
        return answer(pipeline_as_row(pipeline), 201, location=f"/api/v1/pipelines/{segment(pipeline.name)}")


class PipelineOne(ApiView):
    @operation("show_pipeline", "One pipeline.", answer=PipelineShape, is_named=True, errors=[404], tag="pipelines")
    def get(self, request: Request, name: str) -> Response:
        found = pipeline_get(name)
        return tagged(answer(pipeline_as_row(found)), found)

    @operation(
        "update_pipeline",
        "Change its delivery, its scope, its options, or its rule about approvers.\n\nWhat is left out stays. Waiting plans "
        "lapse. While a recovery is unfinished: 409.",
        answer=PipelineShape,
        body=PipelineChange,
        is_named=True,
        errors=[404, 412],
        request_example={"options": {"batch_limit": 50000}},
        tag="pipelines",
    )
    def patch(self, request: Request, name: str) -> Response:
        given, found = PipelineChange.read(request.data), pipeline_get(name)
        if not given:
            raise BadRequest("body", "names nothing to change", f"Known: {', '.join(CHANGED)}.")
        if given.get("delivery") is not None:
            given["delivery"] = referenced("delivery", sink_get, given["delivery"])
        kept = {member: getattr(found, member) for member in CHANGED}
        read = versions_read(request)
        changed = pipeline_update(found, actor=actor(request), now=timezone.now(), read=read, **{**kept, **given})
        return tagged(answer(pipeline_as_row(changed)), changed)


class PipelineRetire(ApiView):
    @retired("retire_pipeline", "A pipeline", shape=PipelineShape, tag="pipelines")
    def post(self, request: Request, name: str, confirm: str) -> Row:
        return pipeline_as_row(pipeline_retire(pipeline_get(name), confirm, actor=actor(request), now=timezone.now()))


class PipelineTest(ApiView):
    @operation(
        "test_pipeline",
        "Test its ends: an intent each, source first, then the record, then a delivery of its own.",
        answer=TestsShape,
        status=202,
        body=NothingBody,
        is_named=True,
        errors=[404],
        tag="pipelines",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        NothingBody.read(request.data)
        pipeline, now = pipeline_get(name), timezone.now()
        ends: list[dict[str, Any]] = [{"source": pipeline.source}, {"sink": pipeline.sink}]
        ends += [{"sink": pipeline.delivery}] if pipeline.delivery else []
        intents = [connection_test_request(actor=actor(request), now=now, **end) for end in ends]
        return answer({"items": [intent_as_row(intent) for intent in intents]}, 202)


class Fleet(ApiView):
    query_class = StatusesQuery

    @operation(
        "list_statuses",
        "The status of every pipeline, by name.\n\nUnknown is never green, and stale is unknown.",
        answer=page_of(StatusShape),
        query=StatusesQuery,
        errors=[422],
        tag="pipelines",
    )
    def get(self, request: Request) -> Response:
        now = now_get()
        found = _asked_for(self.asked)
        if "status" in self.asked:
            found = found.filter(
                pk__in=[one.pk for one in fleet_select(fleet_entries(now), status=self.asked["status"])]
            )
        return page(
            request,
            self.asked,
            found,
            ("name",),
            dict,
            lambda found: statuses_as_rows(fleet_status(now, found), now),
        )


class PipelineStatusOne(ApiView):
    @operation(
        "show_status",
        "The status of one pipeline, and what it rests on.",
        answer=StatusShape,
        is_named=True,
        errors=[404],
        tag="pipelines",
    )
    def get(self, request: Request, name: str) -> Response:
        now = now_get()
        (row,) = statuses_as_rows([pipeline_status(pipeline_get(name), now)], now)
        return answer(row)


class PipelineFrontiers(ApiView):
    @operation(
        "show_frontiers",
        "The frontiers of each lane, as last audited.\n\nJudged up to, safe up to and on which ground, head, and what is "
        "owed above. Empty while no audit stands.",
        answer=FrontiersShape,
        is_named=True,
        errors=[404],
        tag="pipelines",
    )
    def get(self, request: Request, name: str) -> Response:
        now = now_get()
        status = pipeline_status(pipeline_get(name), now)
        row = status_as_row(status)
        lanes = lanes_as_rows(status.audit, now) if status.audit else []
        return answer({**{key: row[key] for key in ("name", "audit", "audited_at", "is_stale")}, "lanes": lanes})


class PipelineGenerations(ApiView):
    query_class = PageQuery

    @operation(
        "list_generations",
        "The generations the sink gave, newest first.",
        answer=page_of(GenerationShape),
        query=PageQuery,
        is_named=True,
        errors=[404],
        tag="generations",
    )
    def get(self, request: Request, name: str) -> Response:
        return page(request, self.asked, generation_list(pipeline_get(name)), ("-number",), generation_as_row)


class ClaimsQuery(PageQuery):
    recovery = serializers.UUIDField(help_text="Only of this recovery.")


class PipelineClaims(ApiView):
    query_class = ClaimsQuery

    @operation(
        "list_claims",
        "The claims on the pipeline's sink, as the sink last said them, newest first.",
        answer=page_of(ClaimShape),
        query=ClaimsQuery,
        is_named=True,
        errors=[404],
        tag="generations",
    )
    def get(self, request: Request, name: str) -> Response:
        found = claim_list(pipeline_get(name))
        if "recovery" in self.asked:
            found = found.filter(recovery=self.asked["recovery"])
        return page(request, self.asked, found, ("-generation",), claim_as_row)


def _asked_for(asked: dict[str, Any]) -> QuerySet[Pipeline]:
    found = pipeline_list()
    for end in ("source", "sink", "delivery"):
        if end in asked:
            found = found.filter(**{f"{end}__name": asked[end]})
    if "owner" in asked:
        found = found.filter(options__owner=asked["owner"])
    if "label" in asked:
        found = found.filter(options__labels__contains=dict([label_parse(asked["label"], "label")]))
    return found
