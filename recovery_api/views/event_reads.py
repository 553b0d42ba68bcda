"""One event at both ends, content included: asked for by name, logged, and gone after a short while."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.coordinates import coordinate_parse
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.schema import operation
from recovery_api.selectors.ends import pipeline_get, source_spelling
from recovery_api.selectors.findings import event_content_get, source_content_get
from recovery_api.serializers.fields import Body, Text
from recovery_api.serializers.members import WideField, maybe
from recovery_api.serializers.work import IntentShape
from recovery_api.services.event_reads import event_content_downloaded, event_read_request, event_sink_content_taken
from recovery_api.views.base import ApiView, accepted, answer
from recovery_api.views.idempotent import idempotent
from recovery_api.views.permission import actor

BYTES = "application/octet-stream"


class BytesRenderer(BaseRenderer):
    """For negotiation alone: bytes are answered as they are."""

    media_type = BYTES
    format = "bin"


class EventReadBody(Body):
    coordinate = Text(help_text="In the source's spelling.")
    lane = Text(required=False, help_text="0, unless said.")


class EventReads(ApiView):
    @operation(
        "read_event",
        "Read one event at both ends: an intent whose result has both sides' digests.\n\nIts content, where the source "
        "holds it, is at `/intents/{intent_id}/content` for half an hour, and what the sink holds at `/sink-content`.",
        answer=IntentShape,
        status=202,
        body=EventReadBody,
        is_named=True,
        errors=[404],
        request_example={"coordinate": "7001:42"},
        tag="events",
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        given = EventReadBody.read(request.data)
        pipeline = pipeline_get(name)
        coordinate = coordinate_parse(given["coordinate"], source_spelling(pipeline.source))
        lane = given.get("lane", SINGLE_LANE)
        return accepted(event_read_request(pipeline, lane, coordinate, actor=actor(request), now=timezone.now()))


class IntentContent(ApiView):
    renderer_classes = [JSONRenderer, BytesRenderer]

    @operation(
        "show_content",
        "The content an event reading brought, byte for byte as the source printed it.\n\nThat it was taken stands in the "
        "timeline.",
        answer={(200, BYTES): OpenApiTypes.BINARY},
        errors=[404],
        tag="events",
    )
    def get(self, request: Request, intent_id: str) -> HttpResponse:
        content = source_content_get(intent_id)
        event_content_downloaded(content, actor=actor(request), now=timezone.now())
        headers = {
            "Content-Disposition": f'attachment; filename="{content.intent_id}.bin"',
            "X-Content-Type-Options": "nosniff",
        }
        return HttpResponse(bytes(content.body), content_type=BYTES, headers=headers)


class SinkContentShape(serializers.Serializer):
    """One entry of the record there, or the target's row of the event's key."""

    of = serializers.ChoiceField(["record", "target"])
    content = maybe(serializers.CharField, help_text="How it begins; null: an entry without content.")
    bytes = WideField(help_text="Of all of it.")
    is_cut = serializers.BooleanField()


class SinkContentsShape(serializers.Serializer):
    items = SinkContentShape(many=True)


class IntentSinkContent(ApiView):
    @operation(
        "show_sink_content",
        "What the sink holds of an event that was read, each content cut to its beginning.\n\nOf the record, where that keeps "
        "contents; else of the copy of state beside it, by the event's key. That it was taken stands in the timeline.",
        answer=SinkContentsShape,
        errors=[404],
        tag="events",
    )
    def get(self, request: Request, intent_id: str) -> Response:
        rows = event_sink_content_taken(event_content_get(intent_id), actor=actor(request), now=timezone.now())
        return answer({"items": rows})
