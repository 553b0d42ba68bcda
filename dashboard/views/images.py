"""The panel of a pipeline's copy of state, beside its verdict and derived from nothing there."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from dashboard.access import actor
from dashboard.views.errors import error_page, errors_shown
from recovery_api.domain.errors import FencepostError
from recovery_api.image_rows import image_as_row
from recovery_api.models import Intent, IntentAction, Pipeline
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.images import image_get, image_newest, image_refusal
from recovery_api.services.event_reads import image_value_request
from recovery_api.services.images import image_request


def image_context(pipeline: Pipeline, work: list[Intent]) -> dict[str, Any]:
    newest = image_newest(pipeline)
    row = image_as_row(newest) if newest else {}
    is_asked = any(one.action == IntentAction.IMAGE for one in work)
    return {
        "newest": newest,
        "row": row,
        "told": [one for one in row.get("words", ()) if one["keys"]],
        "may_ask": image_refusal(pipeline) is None,
        "unless": "One is queued or running already; see above." if is_asked else "",
    }


def image(request: HttpRequest, name: str) -> HttpResponse:
    """Asks for a comparison and goes to its work."""
    try:
        intent = image_request(pipeline_get(name), actor=actor(request), now=timezone.now())
    except FencepostError as error:
        return error_page(request, error, back=request.path.removesuffix("image/"))
    messages.info(request, "The comparison is queued. What it finds appears on the pipeline's page.")
    return redirect("work", intent.id)


@require_POST
@errors_shown
def image_value(request: HttpRequest, image_id: UUID) -> HttpResponse:
    """Asks a worker to read one named key at source and target, and goes to its work."""
    number = request.POST.get("number", "")
    asked = image_get(image_id)
    intent = image_value_request(
        asked, int(number) if number.isdecimal() else -1, actor=actor(request), now=timezone.now()
    )
    return redirect("work", intent.id)
