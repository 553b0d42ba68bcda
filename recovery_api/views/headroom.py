"""How long a pipeline's recovery may still wait, from what the control database knows."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.headroom_rows import headroom_as_row
from recovery_api.schema import operation
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.headroom import pipeline_headroom
from recovery_api.serializers.headroom import HeadroomShape
from recovery_api.views.base import ApiView, answer


class PipelineHeadroomOne(ApiView):
    @operation(
        "show_headroom",
        "How long a recovery may still wait: by when it must have started, and by when somebody must have decided.\n\nNo "
        "end is asked. What is not declared and was not seen is `unknown`; then the figures are at most so much.",
        answer=HeadroomShape,
        is_named=True,
        errors=[404],
        tag="pipelines",
    )
    def get(self, request: Request, name: str) -> Response:
        return answer(headroom_as_row(pipeline_headroom(pipeline_get(name), now_get())))
