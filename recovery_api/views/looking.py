"""What a person keeps for looking: filters by name; and what changed since a moment."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.errors import BadInput
from recovery_api.domain.moments import moment_read
from recovery_api.looking_rows import changes_as_row, saved_filter_as_row
from recovery_api.schema import operation
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.looking import changes_since, saved_filters
from recovery_api.serializers.fields import Body, Name, Query, Text
from recovery_api.serializers.looking import ChangesShape, RemovedFilterShape, SavedFilterShape
from recovery_api.serializers.shapes import page_of
from recovery_api.services.looking import filter_delete, filter_save
from recovery_api.views.base import ApiView, answer, referenced
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import PageQuery, page


class SavedFilterBody(Body):
    name = Text(help_text="What you call it; one of yours that is called so is replaced.")
    query = Text(help_text="The overview's filters, as its address has them: status=owed&owner=payments.")


class SavedFilters(ApiView):
    query_class = PageQuery

    @operation(
        "list_saved_filters",
        "Your saved filters of the overview, by name.",
        answer=page_of(SavedFilterShape),
        query=PageQuery,
        tag="pipelines",
    )
    def get(self, request: Request) -> Response:
        return page(request, self.asked, saved_filters(request.user), ("name",), saved_filter_as_row)

    @operation(
        "save_filter",
        "Keep a filter of the overview by name, for yourself.",
        answer=SavedFilterShape,
        status=201,
        body=SavedFilterBody,
        request_example={"name": "ours, owed", "query": "status=owed&owner=payments"},
        tag="pipelines",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = SavedFilterBody.read(request.data)
        return answer(
            saved_filter_as_row(filter_save(request.user, given["name"], given["query"], timezone.now())), 201
        )


class SavedFilterOne(ApiView):
    @operation(
        "revoke_filter", "Delete one of your saved filters.", answer=RemovedFilterShape, errors=[404], tag="pipelines"
    )
    def delete(self, request: Request, filter_id: str) -> Response:
        filter_delete(request.user, filter_id)
        return answer({"removed": str(filter_id)})


class ChangesQuery(Query):
    since = Text(help_text="Needed: 2026-11-28T22:30:00Z.")
    pipeline = Name(help_text="Only of this one.")


class ChangesSince(ApiView):
    query_class = ChangesQuery

    @operation(
        "list_changes",
        "What changed since a moment: verdicts of audits that are others now, and how many alerts opened and resolved.\n\nWhat "
        "came and went in between is in the timeline.",
        answer=ChangesShape,
        query=ChangesQuery,
        errors=[422],
        tag="pipelines",
    )
    def get(self, request: Request) -> Response:
        since = moment_read(self.asked.get("since"), "since")
        if since is None:
            raise BadInput("since", "is missing", "Give a moment: 2026-11-28T22:30:00Z.")
        pipeline = referenced("pipeline", pipeline_get, self.asked["pipeline"]) if "pipeline" in self.asked else None
        return answer(changes_as_row(changes_since(since, pipeline)))
