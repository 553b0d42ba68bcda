"""Every error of the REST API as `application/problem+json` (RFC 9457). HTTP statuses are known here and nowhere below.

    400  the request is not understood: not JSON, an unknown name, another type     raised at the edge, `BadRequest`
    422  it is understood, and what it names cannot be used                         BadInput and its kin, from services
    401 403  nobody is signed in; the roles do not allow it
    404  no such resource                      409  the protocol, or an idempotency key, says no
    405 406 413 415  the method, the answer's type, the body's size, the body's type
    412  If-Match names another version than there is
    429 503  later: `Retry-After` says when    500  a defect, logged with its traceback

Clients read `code` and the data, never the text.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions as rest
from rest_framework.response import Response

from recovery_api.domain import errors
from recovery_api.wide_numbers import wide_as_text

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """What a code stands for: its HTTP status and its title, which never depend on the case."""

    status: int
    title: str


PROBLEMS: Mapping[str, ProblemKind] = {
    # The edge: nothing below has seen the request.
    "malformed": ProblemKind(400, "The body is not one JSON object"),
    "bad_request": ProblemKind(400, "The request is not understood"),
    "unknown_field": ProblemKind(400, "A field of the body is not known here"),
    "unknown_parameter": ProblemKind(400, "A query parameter is not known here"),
    "not_authenticated": ProblemKind(401, "Nobody is signed in, or the token does not stand"),
    "not_permitted": ProblemKind(403, "The roles do not allow it"),
    "csrf_failed": ProblemKind(403, "The session's request carries no valid CSRF token"),
    "no_such_resource": ProblemKind(404, "There is no such address"),
    "method_not_allowed": ProblemKind(405, "The address takes no such method"),
    "not_acceptable": ProblemKind(406, "Only application/json can be answered"),
    "idempotency_key_reused": ProblemKind(409, "The idempotency key belongs to another request"),
    "in_flight": ProblemKind(409, "The first request with this idempotency key is not answered yet"),
    "outdated": ProblemKind(412, "It was changed since it was read"),
    "too_large": ProblemKind(413, "The body is too large"),
    "unsupported_media_type": ProblemKind(415, "The body is of another type than application/json"),
    "throttled": ProblemKind(429, "Too many requests"),
    "internal": ProblemKind(500, "A defect"),
    # What services raise: recovery_api.domain.errors.
    "bad_input": ProblemKind(422, "What was given cannot be used"),
    "unknown_option": ProblemKind(422, "There is no such option"),
    "bad_coordinate": ProblemKind(422, "It is not a coordinate of this source"),
    "bad_file": ProblemKind(422, "The file cannot be used"),
    "unsuitable": ProblemKind(422, "It is there, and cannot serve"),
    "frontier_refused": ProblemKind(422, "The frontier cannot be judged"),
    "access_denied": ProblemKind(403, "A credential is wrong or too weak"),
    "not_found": ProblemKind(404, "It is not there"),
    "cut_short": ProblemKind(422, "A limit set at the server ended it"),
    "refused": ProblemKind(409, "The protocol says no"),
    "frozen": ProblemKind(409, "People stopped all sending"),
    "sink_restored": ProblemKind(409, "The sink lies behind what it said before"),
    "transient": ProblemKind(503, "Not now"),
    "unreachable": ProblemKind(503, "Something does not answer"),
    "no_answer": ProblemKind(503, "It fell silent in the middle"),
    "out_of_room": ProblemKind(503, "A server has no room"),
    "sink_busy": ProblemKind(503, "The sink waits for somebody"),
    "snapshot_lost": ProblemKind(503, "The snapshot is gone"),
    "engine_unavailable": ProblemKind(503, "The engine does not answer"),
    "terminal": ProblemKind(422, "Somebody must act"),
    "error": ProblemKind(500, "Something went wrong"),
}
"""Every code the API answers with. A code keeps its meaning and its status for the life of `/api/v1`."""

TYPE_BASE = "/api/v1/problems#"


class Problem(rest.APIException):
    """An error of the edge. `more` are further members of the problem."""

    def __init__(self, code: str, detail: str, *, remedy: str = "", field: str = "", **more: Any) -> None:
        self.code, self.remedy, self.field, self.more = code, remedy, field, more
        self.status_code = PROBLEMS[code].status
        super().__init__(detail, code)


class BadRequest(Problem):
    """The request is not understood: `field` names where, `remedy` says what would be."""

    def __init__(self, field: str, problem: str, remedy: str = "", code: str = "bad_request", **more: Any) -> None:
        super().__init__(code, f"{field}: {problem}.", remedy=remedy, field=field, **more)


def problem_row(code: str, detail: str, **more: Any) -> dict[str, Any]:
    """The body of a problem; members that are empty are left out."""
    kind = PROBLEMS[code]
    row = {"type": TYPE_BASE + code, "title": kind.title, "status": kind.status, "code": code, "detail": detail}
    return row | {name: value for name, value in more.items() if value not in (None, "", [], {})}


def problem_response(row: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    return Response(dict(row), status=row["status"], headers=dict(headers or {}), content_type=CONTENT_TYPE)


def fencepost_problem(error: errors.FencepostError) -> dict[str, Any]:
    """The problem of an error that the domain or a service raised."""
    code = error.code if error.code in PROBLEMS else "error"
    data = error.data
    remedy = str(data.get("remedy") or data.get("nearest") or "")
    return problem_row(
        code, str(error), remedy=remedy, field=str(data.get("field") or ""), data=wide_as_text(_plain(data))
    )


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """The problem of anything that was raised under a view. It never answers None: nothing becomes a page of HTML."""
    headers: dict[str, str] = {}
    if isinstance(error, errors.FencepostError):
        row = fencepost_problem(error)
    elif isinstance(error, Problem):
        row = problem_row(error.code, str(error.detail), remedy=error.remedy, field=error.field, **error.more)
    elif isinstance(error, rest.APIException | Http404 | PermissionDenied):
        row = _framework_problem(error, headers)
    elif isinstance(error, OperationalError | InterfaceError):
        logger.warning("the control database does not serve: %s", " ".join(str(error).split()))
        row = problem_row("unreachable", "The control database does not answer. Try again shortly.")
    else:
        logger.error("uncaught in %s", type(context.get("view")).__name__, exc_info=error)
        row = problem_row(
            "internal", "This is a defect; the log has its traceback. Nothing is known of the request's effect."
        )
    if row["status"] == 503 or row["code"] == "in_flight":
        headers.setdefault("Retry-After", str(1 if row["code"] == "in_flight" else RETRY_SECONDS))
    return problem_response(row, headers)


def _framework_problem(
    error: rest.APIException | Http404 | PermissionDenied, headers: dict[str, str]
) -> dict[str, Any]:
    """Django's and DRF's own exceptions."""
    match error:
        case rest.NotAuthenticated() | rest.AuthenticationFailed():
            headers["WWW-Authenticate"] = getattr(error, "auth_header", None) or "Bearer"
            return problem_row("not_authenticated", str(error.detail), remedy="Send Authorization: Bearer <token>.")
        case rest.Throttled():
            wait = math.ceil(error.wait or 1)
            headers["Retry-After"] = str(wait)
            return problem_row("throttled", f"Too many requests; the next one is due in {wait} s.")
        case rest.MethodNotAllowed():
            return problem_row("method_not_allowed", str(error.detail))
        case rest.NotAcceptable():
            return problem_row("not_acceptable", str(error.detail), remedy="Send Accept: application/json.")
        case rest.UnsupportedMediaType():
            remedy = "Send Content-Type: application/json."
            return problem_row("unsupported_media_type", str(error.detail), remedy=remedy)
        case rest.ParseError():
            return problem_row("malformed", str(error.detail))
        case rest.PermissionDenied() | PermissionDenied():
            says = str(error) or "Not permitted."
            return problem_row("csrf_failed" if "CSRF" in says else "not_permitted", says)
        case Http404() | rest.NotFound():
            return problem_row("no_such_resource", "There is nothing at this address.")
    logger.error("no problem is written for %s", type(error).__name__, exc_info=error)
    return problem_row("internal", "This is a defect; the log has its traceback.")


def _plain(value: Any) -> Any:
    """`value` as JSON can hold it: what an error carries may be a tuple, an id or a time."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
