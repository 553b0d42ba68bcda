"""Freezes: audits go on, nothing is sent, until somebody lifts it."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.freeze_rows import freeze_as_row
from recovery_api.models import Freeze, Pipeline
from recovery_api.schema import operation
from recovery_api.selectors.ends import pipeline_get
from recovery_api.serializers.fields import Body, FlagWord, Name, Text
from recovery_api.serializers.freezes import FreezeShape
from recovery_api.serializers.shapes import page_of
from recovery_api.services.freezes import freeze_lift, freeze_set
from recovery_api.views.base import ApiView, answer, referenced
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor


class FreezesQuery(PageQuery):
    is_standing = FlagWord(help_text="true: only those that nobody lifted.")


class FreezeBody(Body):
    pipeline = Name(allow_null=True, help_text="null: every pipeline. It must be said, either way.")
    reason = Text(help_text="Why, in a sentence; whoever looks next reads it.")


class Freezes(ApiView):
    query_class = FreezesQuery

    @operation(
        "list_freezes",
        "What is frozen, and what was, newest first.",
        answer=page_of(FreezeShape),
        query=FreezesQuery,
        tag="freezes",
    )
    def get(self, request: Request) -> Response:
        found = Freeze.objects.select_related("pipeline")
        if self.asked.get("is_standing"):
            found = found.filter(lifted_at__isnull=True)
        return page(request, self.asked, found, ("-frozen_at", "-id"), freeze_as_row)

    @operation(
        "create_freeze",
        "Send nothing for one pipeline, or for any.\n\nAudits go on. A recovery that runs holds before its next step that could "
        "send; what is under way to the sink lands. A claim that it has stays open, so that its relay waits: stop the recovery "
        "to give it up. Frozen already: 409.",
        answer=FreezeShape,
        status=201,
        body=FreezeBody,
        request_example={"pipeline": None, "reason": "The payment provider answers wrongly."},
        tag="freezes",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        pipeline, reason = _read(request)
        freeze = freeze_set(pipeline, reason, actor=actor(request), now=timezone.now())
        return answer(freeze_as_row(freeze), 201)


class FreezeLift(ApiView):
    @operation(
        "lift_freeze",
        "Let it be sent again.\n\nWhat held goes on by itself within ten seconds. A freeze of everything is lifted apart from "
        "one of a pipeline.",
        answer=FreezeShape,
        body=FreezeBody,
        tag="freezes",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        pipeline, reason = _read(request)
        return answer(freeze_as_row(freeze_lift(pipeline, reason, actor=actor(request), now=timezone.now())))


def _read(request: Request) -> tuple[Pipeline | None, str]:
    given: dict[str, Any] = FreezeBody.read(request.data)
    name = given["pipeline"]
    return (None if name is None else referenced("pipeline", pipeline_get, name)), given["reason"]
