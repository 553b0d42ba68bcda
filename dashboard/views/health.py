"""For machines: whether this process lives, and whether it can serve. Neither says anything of a pipeline."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_GET

from recovery_api.selectors.readiness import readiness


@require_GET
def healthz(request: HttpRequest) -> HttpResponse:
    """200 as long as the process answers. It asks nobody, so that an outage of the database restarts no web process."""
    return HttpResponse("alive\n", content_type="text/plain; charset=utf-8", headers={"Cache-Control": "no-store"})


@require_GET
def readyz(request: HttpRequest) -> HttpResponse:
    """200 where the control database answers and has this version's tables; else 503, with what is missing."""
    found = readiness()
    body = {"ready": found.is_ready, "missing": list(found.missing)}
    return JsonResponse(body, status=200 if found.is_ready else 503, headers={"Cache-Control": "no-store"})
