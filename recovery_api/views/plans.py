"""Plans: asked for, shown, approved by their digest. A plan is inert."""

from __future__ import annotations

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.evidence_classes import EvidenceClass
from recovery_api.domain.words import words
from recovery_api.models import PlanState
from recovery_api.rows import finding_as_row, plan_as_row
from recovery_api.schema import operation
from recovery_api.selectors.ends import pipeline_get, source_spelling
from recovery_api.selectors.findings import plan_listing
from recovery_api.selectors.findings_named import findings_shown
from recovery_api.selectors.plans import plan_get, plan_list
from recovery_api.serializers.fields import Body, Choice, Name, Text
from recovery_api.serializers.members import WideField
from recovery_api.serializers.shapes import FindingShape, PlanShape, page_of
from recovery_api.serializers.work import IntentShape
from recovery_api.services.plans import plan_approve, plan_request
from recovery_api.views.base import ApiView, accepted, answer, filtered_pipeline, referenced
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor


class PlansQuery(PageQuery):
    pipeline = Name(help_text="Only of this pipeline.")
    state = Choice(PlanState.values)


class PlanBody(Body):
    pipeline = Name()
    frontier = Text(required=False, help_text="In the source's spelling; left out: the safe frontier.")


class ApprovalBody(Body):
    digest = Text(help_text="The digest the plan showed: what was seen is what may be sent.")


class Plans(ApiView):
    query_class = PlansQuery

    @operation(
        "list_plans", "Plans, newest first.", answer=page_of(PlanShape), query=PlansQuery, errors=[422], tag="plans"
    )
    def get(self, request: Request) -> Response:
        found = plan_list(filtered_pipeline(self.asked))
        if "state" in self.asked:
            found = found.filter(state=self.asked["state"])
        return page(request, self.asked, found, ("-created_at", "-id"), plan_as_row)

    @operation(
        "request_plan",
        "Ask what a recovery would send: an intent that names the plan.\n\nChanges nothing at either end.",
        answer=IntentShape,
        status=202,
        body=PlanBody,
        request_example={"pipeline": "orders-mail"},
        tag="plans",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = PlanBody.read(request.data)
        pipeline = referenced("pipeline", pipeline_get, given.pop("pipeline"))
        _, intent = plan_request(pipeline, actor=actor(request), now=timezone.now(), **given)
        return accepted(intent)


class PlanOne(ApiView):
    @operation(
        "show_plan",
        "One plan: conditions, exact counts, samples, digest.",
        answer=PlanShape,
        errors=[404],
        tag="plans",
    )
    def get(self, request: Request, plan_id: str) -> Response:
        return answer(plan_as_row(plan_get(plan_id)))


class PlanFindingsQuery(PageQuery):
    evidence_class = Choice(words(EvidenceClass))


class PlanFindings(ApiView):
    query_class = PlanFindingsQuery

    @operation(
        "list_batch",
        "The events of the plan, in order: what would be sent, and what stays out and why.\n\nThe listing is bounded, and "
        "kept for the newest plans.",
        answer=page_of(FindingShape, "BatchPage", plan=serializers.UUIDField(), listed=WideField()),
        query=PlanFindingsQuery,
        errors=[404],
        tag="plans",
    )
    def get(self, request: Request, plan_id: str) -> Response:
        plan = plan_get(plan_id)
        found = plan_listing(plan)
        if "evidence_class" in self.asked:
            found = found.filter(evidence_class=self.asked["evidence_class"])
        spelling = source_spelling(plan.pipeline.source)
        return page(
            request,
            self.asked,
            found,
            ("number",),
            lambda finding: finding_as_row(spelling, finding),
            look_up=lambda findings: findings_shown(plan.pipeline, findings),
            plan=str(plan.id),
            listed=plan.listed_count,
        )


class PlanApproval(ApiView):
    @operation(
        "approve_plan",
        "Approve a plan by its digest.\n\nTwice is once. Another digest, a lapsed plan, or its own author: 409.",
        answer=PlanShape,
        body=ApprovalBody,
        errors=[404],
        request_example={"digest": "3f6c…"},
        tag="plans",
    )
    @idempotent
    def post(self, request: Request, plan_id: str) -> Response:
        given = ApprovalBody.read(request.data)
        return answer(plan_as_row(plan_approve(plan_id, given["digest"], actor(request), timezone.now())))
