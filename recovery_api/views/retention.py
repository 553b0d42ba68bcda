"""How long the product keeps what it wrote of a pipeline, and what stays for longer."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.retention_rows import retention_as_row
from recovery_api.schema import operation
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get
from recovery_api.serializers.retention import RetentionShape
from recovery_api.views.base import ApiView, answer


class PipelineRetention(ApiView):
    @operation(
        "show_retention",
        "For how long evidence, rows and history are kept, and which parts are pinned by what.\n\nParts that a certificate "
        "needs, that an open item was seen in, or that something unfinished goes by stay, however old they are.",
        answer=RetentionShape,
        is_named=True,
        errors=[404],
        tag="pipelines",
    )
    def get(self, request: Request, name: str) -> Response:
        return answer(retention_as_row(pipeline_get(name), now_get()))
