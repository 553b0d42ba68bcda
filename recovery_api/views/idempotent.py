"""`Idempotency-Key` on a POST: the same key with the same request gets the same answer, whoever was too impatient."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.errors import FencepostError
from recovery_api.exceptions import BadRequest, Problem, exception_handler
from recovery_api.services.idempotency import answer_find, answer_remember, key_locked
from recovery_api.views.base import ApiView, waiting_headers

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
LIMIT = 200

Handler = Callable[..., Response]


def idempotent(post: Handler) -> Handler:
    """Wraps the `post` of a view. Without the header nothing changes.

    What is remembered is every answer but a 5xx one, refusals included: ask again with another key.
    """

    @functools.wraps(post)
    def answered(view: ApiView, request: Request, *args: Any, **kwargs: Any) -> Response | HttpResponse:
        key = _key(request)
        if key is None:
            return post(view, request, *args, **kwargs)
        digest, person, now = _digest(request), request.user.pk, timezone.now()
        with key_locked(person, key) as is_ours:
            if not is_ours:
                raise Problem("in_flight", "The first request with this key is not answered yet.", remedy="Try again.")
            if (found := answer_find(person, key, now)) is not None:
                if found.request_digest != digest:
                    raise Problem(
                        "idempotency_key_reused",
                        "This key was used for another request.",
                        remedy="Use a new key for a new request.",
                    )
                return _again(found)
            try:
                response = post(view, request, *args, **kwargs)
            except (FencepostError, Problem) as error:
                # Services undo what they refuse by themselves; what they wrote besides (a plan that lapsed) stands.
                response = exception_handler(error, {"view": view})
                if response.status_code >= 500:
                    raise
            response = view.finalize_response(request, response, *args, **kwargs).render()
            answer_remember(
                person,
                key,
                now=now,
                request_digest=digest,
                status=response.status_code,
                content_type=response.headers["Content-Type"],
                location=response.headers.get("Location", ""),
                body=view.remembered(response.content.decode()),
            )
        return response

    answered.is_idempotent = True  # type: ignore[attr-defined]
    return answered


def _key(request: Request) -> str | None:
    key: str | None = request.headers.get(HEADER)
    if key is None:
        return None
    if not 0 < len(key) <= LIMIT or not key.isascii() or not key.isprintable():
        raise BadRequest(HEADER, f"is not 1 to {LIMIT} printable ASCII characters", "A UUID serves well.")
    return key


def _digest(request: Request) -> str:
    """Of the request: its address and its body as JSON, so that spaces and the order of members do not matter."""
    whole = json.dumps([request.method, request.path, request.data], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def _again(found: Any) -> HttpResponse:
    location = {"Location": found.location} if found.location else {}
    headers = {REPLAYED: "true", **location, **waiting_headers(found.status)}
    return HttpResponse(found.body, status=found.status, content_type=found.content_type, headers=headers)
