"""Acknowledging more than one omission: a preview of what it would do first, its confirmation second."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.coordinates import coordinate_parse
from recovery_api.domain.errors import BadInput
from recovery_api.domain.findings import Cause, FindingWord
from recovery_api.domain.moments import moment_read
from recovery_api.domain.words import words
from recovery_api.models import Pipeline
from recovery_api.omission_rows import preview_as_row
from recovery_api.rows import intent_as_row
from recovery_api.schema import operation
from recovery_api.selectors.ends import pipeline_get, source_spelling
from recovery_api.selectors.findings import FindingFilter
from recovery_api.selectors.omissions import preview_get
from recovery_api.serializers.fields import Body, Choice, Flag, Text
from recovery_api.serializers.omissions import OmissionPreviewShape, OmissionsActShape
from recovery_api.serializers.work import IntentShape
from recovery_api.services.omission_previews import export_preview, omissions_preview, preview_confirm
from recovery_api.views.base import ApiView, answer
from recovery_api.views.idempotent import idempotent
from recovery_api.views.permission import actor


class PreviewBody(Body):
    """A filter of findings; every member may be left out."""

    audit = Text(
        required=False, help_text="The audit whose findings you looked at; another one that stands is refused."
    )
    finding = Choice(words(FindingWord), required=False)
    cause = Choice(words(Cause), required=False)
    lane = Text(required=False, help_text="Only of this lane.")
    low = Text(required=False, help_text="From this coordinate on, in the source's spelling.")
    high = Text(required=False, help_text="Up to this coordinate, in the source's spelling.")


class ImportBody(Body):
    content = Text(max_length=None, help_text="The export: CSV with a header line, or JSON lines.")


class ConfirmBody(Body):
    reason = Text(help_text="Why these events are never to be delivered.")
    reference = Text(required=False, help_text="A ticket's address or number.")
    until = Text(required=False, help_text="Then they are owed again by themselves: 2026-11-28T22:30:00Z.")
    with_content = Flag(required=False, help_text="Also those that the export names by key and content alone.")


class PipelineOmissionPreviews(ApiView):
    @operation(
        "preview_omissions",
        "What acknowledging the lost findings of a range or a filter would do.\n\nThe newest audit that stands decides. Its "
        "coordinates are written down: a confirmation acknowledges these and no later ones.",
        answer=OmissionPreviewShape,
        status=201,
        body=PreviewBody,
        is_named=True,
        errors=[404],
        request_example={"low": "7001:1", "high": "7001:412"},
        tag="omissions",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        given = PreviewBody.read(request.data)
        pipeline = pipeline_get(name)
        preview = omissions_preview(
            pipeline,
            filter_of(pipeline, given),
            audit_id=given.get("audit"),
            actor=actor(request),
            now=timezone.now(),
        )
        return answer(preview_as_row(preview), 201)


class PipelineOmissionImports(ApiView):
    @operation(
        "import_omissions",
        "What acknowledging the events of a dead-letter export would do: an intent whose result names the preview.\n\n"
        "Columns are found by name: coordinate, position or id; event_id; lane; for a line with none of these key and "
        "content (value, payload), and op. Others are ignored and named.",
        answer=IntentShape,
        status=202,
        body=ImportBody,
        is_named=True,
        errors=[404],
        request_example={"content": "coordinate,why\n7001:42,poison\n"},
        tag="omissions",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        given = ImportBody.read(request.data)
        _, intent = export_preview(pipeline_get(name), given["content"], actor=actor(request), now=timezone.now())
        return answer(intent_as_row(intent), 202, location=f"/api/v1/intents/{intent.id}")


class PipelineOmissionPreview(ApiView):
    @operation(
        "show_omission_preview",
        "One preview. `counts` null: a worker still looks its events up.",
        answer=OmissionPreviewShape,
        is_named=True,
        errors=[404],
        tag="omissions",
    )
    def get(self, request: Request, name: str, preview_id: str) -> Response:
        return answer(preview_as_row(preview_get(pipeline_get(name), preview_id)))


class PipelineOmissionConfirm(ApiView):
    @operation(
        "confirm_omissions",
        "Acknowledge what the preview showed as owed, and nothing else.\n\n409 where some of it is not lost any more.",
        answer=OmissionsActShape,
        body=ConfirmBody,
        is_named=True,
        errors=[404],
        request_example={"reason": "Test orders of 2026-11-28.", "reference": "OPS-412"},
        tag="omissions",
    )
    @idempotent
    def post(self, request: Request, name: str, preview_id: str) -> Response:
        given = ConfirmBody.read(request.data)
        pipeline = pipeline_get(name)
        count = preview_confirm(
            pipeline,
            preview_id,
            reason=given["reason"],
            reference=given.get("reference", ""),
            until=moment_read(given.get("until"), "until"),
            with_content=given.get("with_content", False),
            actor=actor(request),
            now=timezone.now(),
        )
        return answer({"act": str(preview_id), "pipeline": pipeline.name, "count": count})


def filter_of(pipeline: Pipeline, given: dict[str, Any]) -> FindingFilter:
    """Raises: BadCoordinate; BadInput for a reversed range."""
    spelling = source_spelling(pipeline.source)
    ends = {name: coordinate_parse(given[name], spelling, name) for name in ("low", "high") if name in given}
    if len(ends) == 2 and ends["low"] > ends["high"]:
        problem = f"{given['low']} lies above high, {given['high']}: the range is reversed"
        raise BadInput("low", problem, "Give the lower coordinate as low.")
    return FindingFilter(
        given.get("finding", ""), given.get("cause", ""), given.get("lane", ""), ends.get("low"), ends.get("high")
    )
