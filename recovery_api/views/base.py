"""What every REST view does alike: who asks, how often, what they may, which names they used; then one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from recovery_api.domain.errors import BadInput, NotFound
from recovery_api.exceptions import CONTENT_TYPE
from recovery_api.models import Intent, Pipeline
from recovery_api.rows import Row, intent_as_row
from recovery_api.selectors.ends import pipeline_get
from recovery_api.serializers.fields import Query
from recovery_api.wide_numbers import wide_as_text

T = TypeVar("T")
LOOK_AGAIN_SECONDS = "1"


class ApiView(APIView):
    """`query_class` declares the parameters of GET; every other method takes none. `asked` is what was given."""

    http_method_names = ["get", "head", "post", "patch", "delete"]
    query_class: ClassVar[type[Query]] = Query
    asked: dict[str, Any]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """As DRF's, but throttled before it is refused: a refusal is written down, and nobody fills the timeline."""
        self.format_kwarg = None
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        request.version = request.versioning_scheme = None
        self.perform_authentication(request)
        self.check_throttles(request)
        self.check_permissions(request)
        is_read = request.method in ("GET", "HEAD")
        self.asked = (self.query_class if is_read else Query).read(request.query_params)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """As DRF's; a problem is JSON even where the view answers in something else."""
        if getattr(response, "content_type", None) == CONTENT_TYPE and hasattr(request, "accepted_renderer"):
            request.accepted_renderer, request.accepted_media_type = JSONRenderer(), "application/json"
        return super().finalize_response(request, response, *args, **kwargs)

    def remembered(self, body: str) -> str:
        """What is kept of an answer for its idempotency key; a view whose answer holds a secret leaves that out."""
        return body


def answer(row: Row, status: int = 200, *, location: str = "") -> Response:
    """A row as REST gives it. 202 says when to look again, too."""
    headers = {"Location": location} if location else {}
    return Response(wide_as_text(row), status=status, headers=headers | waiting_headers(status))


def waiting_headers(status: int) -> dict[str, str]:
    """`Retry-After` of an answer whose work is still to be done."""
    return {"Retry-After": LOOK_AGAIN_SECONDS} if status == 202 else {}


def accepted(intent: Intent) -> Response:
    """202 with the intent: the work is queued, and this is where to look."""
    return answer(intent_as_row(intent), 202, location=f"/api/v1/intents/{intent.id}")


def segment(name: str) -> str:
    """A name as a segment of a path.

    >>> segment('50% "größe"')
    '50%25%20%22gr%C3%B6%C3%9Fe%22'
    """
    return quote(name, safe="")


def filtered_pipeline(asked: Mapping[str, Any]) -> Pipeline | None:
    """The pipeline a list is asked for. None: every one. Raises: BadInput."""
    return referenced("pipeline", pipeline_get, asked["pipeline"]) if "pipeline" in asked else None


def referenced(field: str, get: Callable[[str], T], name: str) -> T:
    """What a field of the body names. A missing one is that field's fault, not the address's. Raises: BadInput."""
    try:
        return get(name)
    except NotFound as error:
        raise BadInput(field, f"there is no {field} {name!r}", str(error.data["nearest"])) from error
