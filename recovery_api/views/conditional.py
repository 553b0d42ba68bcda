"""`ETag` of what may be edited, and `If-Match` of the edit: a change of what somebody else changed meanwhile is refused."""

from __future__ import annotations

import re

from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.exceptions import BadRequest
from recovery_api.selectors.versions import Versioned, version_of

TAGS = re.compile(r'\s*(?:W/)?"[\x21\x23-\x7e]*"\s*(?:,\s*(?:W/)?"[\x21\x23-\x7e]*"\s*)*')


def tagged(response: Response, one: Versioned) -> Response:
    """The answer with the `ETag` of the configuration that it shows."""
    response["ETag"] = f'"{version_of(one)}"'
    return response


def versions_read(request: Request) -> frozenset[str] | None:
    """What `If-Match` names; None: it is not given, or `*`. A weak tag matches nothing (RFC 9110, 13.1.1).

    Raises: BadRequest.
    """
    given = request.headers.get("If-Match")
    if given is None or given.strip() == "*":
        return None
    if not TAGS.fullmatch(given):
        raise BadRequest("If-Match", "is not an ETag in quotes", 'Send it as it was answered: If-Match: "…".')
    return frozenset(tag for weak, tag in re.findall(r'(W/)?"([^"]*)"', given) if not weak)
