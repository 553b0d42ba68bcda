"""Image audits: asked for, listed, shown."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.outcomes import ImageStatus
from recovery_api.domain.words import words
from recovery_api.image_rows import image_as_row
from recovery_api.schema import operation
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.images import image_get, image_list
from recovery_api.serializers.fields import Body, Choice, Flag, Name, Text, Whole
from recovery_api.serializers.images import ImageShape
from recovery_api.serializers.shapes import page_of
from recovery_api.serializers.work import IntentShape
from recovery_api.services.event_reads import image_value_request
from recovery_api.services.images import image_request
from recovery_api.views.base import ApiView, accepted, answer, filtered_pipeline, referenced
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor


class ImagesQuery(PageQuery):
    pipeline = Name(help_text="Only of this pipeline.")
    status = Choice(words(ImageStatus))


class ImageBody(Body):
    pipeline = Name()
    frontier = Text(required=False, help_text="In the source's spelling; left out: the safe frontier.")
    keeps_base = Flag(
        required=False,
        help_text="Keep what the history gives each key, where the history is whole, for later comparisons.",
    )


class Images(ApiView):
    query_class = ImagesQuery

    @operation(
        "list_images",
        "Image audits, newest first: a copy of state beside the history.",
        answer=page_of(ImageShape),
        query=ImagesQuery,
        errors=[422],
        tag="audits",
    )
    def get(self, request: Request) -> Response:
        found = image_list(filtered_pipeline(self.asked))
        if "status" in self.asked:
            found = found.filter(status=self.asked["status"])
        return page(request, self.asked, found, ("-finished_at", "-id"), image_as_row)

    @operation(
        "request_image",
        "Compare a copy of state with the history: an intent whose result names the image audit.\n\nReads only. It says "
        "nothing of what was delivered: that is an audit.",
        answer=IntentShape,
        status=202,
        body=ImageBody,
        request_example={"pipeline": "orders-mail"},
        tag="audits",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = ImageBody.read(request.data)
        pipeline = referenced("pipeline", pipeline_get, given.pop("pipeline"))
        return accepted(image_request(pipeline, actor=actor(request), now=timezone.now(), **given))


class ImageOne(ApiView):
    @operation("show_image", "One image audit.", answer=ImageShape, errors=[404], tag="audits")
    def get(self, request: Request, image_id: str) -> Response:
        return answer(image_as_row(image_get(image_id)))


class ImageValueBody(Body):
    number = Whole(help_text="The key's place in `sample`.")


class ImageValues(ApiView):
    @operation(
        "read_key",
        "Read a named key at source and target: an intent.\n\nWhat both hold now is at `/intents/{intent_id}/content` for half "
        "an hour, as JSON: `key`, `committed` (of its latest event, where the source holds it) and `target`.",
        answer=IntentShape,
        status=202,
        body=ImageValueBody,
        errors=[404],
        request_example={"number": 0},
        tag="audits",
    )
    @idempotent
    def post(self, request: Request, image_id: str) -> Response:
        number = int(ImageValueBody.read(request.data)["number"])
        return accepted(image_value_request(image_get(image_id), number, actor=actor(request), now=timezone.now()))
