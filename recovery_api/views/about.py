"""What the API says of itself: where things are, who asks, its codes, its document, a page to try it."""

from __future__ import annotations

from typing import Any

from django.middleware.csrf import get_token
from django.utils import timezone
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.access import permissions_of
from recovery_api.exceptions import PROBLEMS, TYPE_BASE, Problem
from recovery_api.schema import operation
from recovery_api.serializers.about import PersonShape, ProblemKindShape, WhereShape
from recovery_api.serializers.fields import Query, nearest_says
from recovery_api.serializers.shapes import page_of
from recovery_api.token_rows import token_as_row
from recovery_api.views.base import ApiView, answer
from recovery_api.views.paging import paged
from recovery_api.views.permission import actor, roles

ADDRESSES = {
    "sources": "/api/v1/sources",
    "sinks": "/api/v1/sinks",
    "pipelines": "/api/v1/pipelines",
    "statuses": "/api/v1/statuses",
    "audits": "/api/v1/audits",
    "plans": "/api/v1/plans",
    "recoveries": "/api/v1/recoveries",
    "intents": "/api/v1/intents",
    "events": "/api/v1/events",
    "incidents": "/api/v1/incidents",
    "freezes": "/api/v1/freezes",
    "kinds": "/api/v1/kinds",
    "tokens": "/api/v1/tokens",
    "me": "/api/v1/me",
    "problems": "/api/v1/problems",
    "document": "/api/v1/schema",
    "try_it": "/api/v1/docs",
}


class Index(ApiView):
    @operation("show_addresses", "What there is.", answer=WhereShape, tag="about")
    def get(self, request: Request) -> Response:
        return answer({"version": "v1", "addresses": ADDRESSES})


class Me(ApiView):
    @operation("show_me", "Who asks, and what they may.", answer=PersonShape, tag="about")
    def get(self, request: Request) -> Response:
        held = roles(request) or frozenset()
        token = token_as_row(request.auth, timezone.now()) if request.auth is not None else None
        permissions = sorted(str(one) for one in permissions_of(held))
        return answer({"name": actor(request), "roles": sorted(held), "permissions": permissions, "token": token})


class Problems(ApiView):
    @operation("list_problems", "Every code.", answer=page_of(ProblemKindShape), is_open=True, tag="about")
    def get(self, request: Request) -> Response:
        rows = [
            {"code": code, "title": kind.title, "type": TYPE_BASE + code} | {"status": kind.status}
            for code, kind in PROBLEMS.items()
        ]
        return paged(request, self.asked, rows, None)


class PlainJsonRenderer(OpenApiJsonRenderer):
    """The same document for whoever asks for JSON by its usual name."""

    media_type = "application/json"


class Schema(SpectacularAPIView, ApiView):
    """The OpenAPI document, as JSON."""

    renderer_classes = [OpenApiJsonRenderer, PlainJsonRenderer]

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class TryIt(ApiView):
    """The page to try the API: Swagger UI from the packages' own files, with no script of its own inside."""

    renderer_classes = [TemplateHTMLRenderer]

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        get_token(request._request)  # sets the cookie that the page's requests send back
        return Response({}, template_name="recovery_api/try_it.html")


class Unknown(ApiView):
    """Any other address under `/api/`: a problem, not a page."""

    query_class = Query
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.format_kwarg = None
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request, force=True)
        request.version = request.versioning_scheme = None
        self.perform_authentication(request)
        self.check_throttles(request)
        self.check_permissions(request)

    @extend_schema(exclude=True)
    def get(self, request: Request, **_: Any) -> Response:
        part = request.path.removeprefix("/api/v1/").split("/")[0]
        says = nearest_says(part, [one.rsplit("/", 1)[1] for one in ADDRESSES.values()])
        raise Problem("no_such_resource", f"There is nothing at {request.path[:300]}.", remedy=says)

    post = put = patch = delete = get
