"""The OpenAPI document: what each operation takes and answers, its errors included, said beside the view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema

from recovery_api.exceptions import CONTENT_TYPE, PROBLEMS
from recovery_api.serializers.shapes import ProblemShape

EVERYWHERE = (400, 401, 403, 406, 429, 500, 503)
WITH_BODY = (409, 413, 415, 422)
TITLES = {
    400: "The request is not understood.",
    401: "Nobody is signed in, or the token does not stand.",
    403: "The roles do not allow it; `roles` says which do.",
    404: "It is not there.",
    406: "Only application/json can be answered.",
    412: "It was changed since it was read.",
    409: "The protocol, or the idempotency key, says no.",
    413: "The body is too large.",
    415: "The body is of another type.",
    422: "What was given cannot be used.",
    429: "Too many requests; Retry-After says when.",
    500: "A defect.",
    503: "Not now; Retry-After says when.",
}
KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="1 to 200 printable ASCII characters. The same key with the same request gets the same answer again.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The ETag of what you read. Changed by anybody since: 412, and nothing is changed.",
)
LOOK_AGAIN = OpenApiParameter(
    "Retry-After", int, OpenApiParameter.HEADER, response=[202], description="Seconds until looking again is worth it."
)
NAME = OpenApiParameter(
    "name",
    {"type": "string", "minLength": 1, "maxLength": 200},
    OpenApiParameter.PATH,
    description="Its name, percent-encoded.",
)


def operation(
    operation_id: str,
    says: str,
    *,
    answer: Any,
    status: int = 200,
    body: Any = None,
    query: Any = None,
    is_named: bool = False,
    errors: Iterable[int] = (),
    request_example: Mapping[str, Any] | None = None,
    answer_example: Mapping[str, Any] | None = None,
    is_open: bool = False,
    tag: str,
) -> Callable[[Any], Any]:
    """Documents one method of a view. The first line of `says` is its summary. POST is told by its status or body."""
    is_post = operation_id.split("_")[0] not in ("list", "show", "update", "revoke")
    statuses = {*EVERYWHERE, *(WITH_BODY if is_post or body is not None else ()), *errors}
    if is_open:
        statuses -= {401, 403}
    examples = []
    if request_example is not None:
        examples.append(OpenApiExample("Request", value=dict(request_example), request_only=True))
    if answer_example is not None:
        examples.append(
            OpenApiExample("Answer", value=dict(answer_example), response_only=True, status_codes=[str(status)])
        )
    parameters = [
        *([IF_MATCH] if 412 in statuses else []),
        *([KEY] if is_post else []),
        *([NAME] if is_named else []),
        *([query] if query else []),
    ]
    if status == 202:
        parameters.append(LOOK_AGAIN)
    responses: dict[Any, Any] = {
        **(answer if isinstance(answer, dict) else {status: answer}),
        **{(one, CONTENT_TYPE): _problem(one) for one in sorted(statuses)},
    }
    document: Callable[[Any], Any] = extend_schema(
        operation_id=operation_id,
        summary=says.split("\n")[0],
        description=says,
        request=body,
        parameters=parameters,
        responses=responses,
        examples=examples,
        tags=[tag],
        **({"auth": []} if is_open else {}),
    )
    return document


def _problem(status: int) -> OpenApiResponse:
    codes = ", ".join(f"`{code}`" for code, kind in PROBLEMS.items() if kind.status == status)
    return OpenApiResponse(ProblemShape, description=f"{TITLES[status]} Codes: {codes}.")


class BearerScheme(OpenApiAuthenticationExtension):
    """How the document names a token."""

    target_class = "recovery_api.views.authentication.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "From POST /api/v1/tokens or `manage.py tokens add`.",
        }


def api_only(endpoints: list[Any], **_: Any) -> list[Any]:
    """For drf-spectacular: the addresses that are of this API."""
    return [one for one in endpoints if one[0].startswith("/api/v1/")]
