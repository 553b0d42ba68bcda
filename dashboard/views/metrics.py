"""`GET /metrics`, for whoever has the token or comes from an address that is named. It names every pipeline, so nobody else.

No session and no role is asked: a scraper is not a person. Where neither a token nor an address is set, it is closed.
"""

from __future__ import annotations

import logging
import secrets
from ipaddress import ip_address, ip_network

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from recovery_api.metrics import exposition
from recovery_api.selectors.clock import now_get

logger = logging.getLogger(__name__)
PLAIN = "text/plain; charset=utf-8"


@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    if not _may_scrape(request):
        says = "Send the token of FENCEPOST_METRICS_TOKEN as a bearer, or come from an address of FENCEPOST_METRICS_FROM.\n"
        return HttpResponse(says, status=401, content_type=PLAIN, headers={"WWW-Authenticate": "Bearer"})
    try:
        text, content_type = exposition(now_get(), request.headers.get("Accept", ""))
    except (DatabaseError, InterfaceError) as error:
        logger.warning("nothing was measured: the control database does not serve (%s)", type(error).__name__)
        return HttpResponse("The control database does not answer.\n", status=503, content_type=PLAIN)
    return HttpResponse(text, content_type=content_type, headers={"Cache-Control": "no-store"})


def _may_scrape(request: HttpRequest) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    token = settings.FENCEPOST_METRICS_TOKEN
    if token and scheme.lower() == "bearer" and secrets.compare_digest(given.strip().encode(), token.encode()):
        return True
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
        return any(address in ip_network(one, strict=False) for one in settings.FENCEPOST_METRICS_FROM)
    except ValueError:
        return False
