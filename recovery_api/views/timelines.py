"""Events and what happened to alerts, in one order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.errors import BadInput
from recovery_api.domain.timelines import place_parse
from recovery_api.exceptions import BadRequest
from recovery_api.schema import operation
from recovery_api.selectors.timelines import Lines, lines_read, timeline_lines
from recovery_api.serializers.fields import Choice, Name, Text
from recovery_api.serializers.shapes import TIMELINE_KINDS, TimelineLineShape, page_of
from recovery_api.timeline_rows import line_as_row
from recovery_api.views.base import ApiView, filtered_pipeline
from recovery_api.views.paging import LIMIT, PageQuery, cursor_read, paged


class TimelineQuery(PageQuery):
    pipeline = Name(help_text="Only of this pipeline, and of alerts about it and its ends.")
    kind = Choice(TIMELINE_KINDS)
    actor = Text(help_text="Only what this person, worker or pager did.")
    order = Choice(["oldest", "newest"], help_text="oldest first, unless said.")


class Timeline(ApiView):
    query_class = TimelineQuery

    @operation(
        "list_timeline",
        "Events, and what happened to alerts, in the order they were written.\n\nTo follow what is new, take /events: it has a number "
        "that only grows.",
        answer=page_of(TimelineLineShape, "TimelinePage"),
        query=TimelineQuery,
        errors=[422],
        tag="events",
    )
    def get(self, request: Request) -> Response:
        pipeline = filtered_pipeline(self.asked)
        given = {name: self.asked[name] for name in ("kind", "actor") if name in self.asked}
        found = timeline_lines(pipeline=pipeline.name if pipeline else "", **given)
        return lines_page(request, self.asked, found, newest=self.asked.get("order") == "newest")


def lines_page(request: Request, asked: Mapping[str, Any], of: Lines, *, newest: bool = False) -> Response:
    """One page of a timeline. Raises: BadRequest for a cursor that is not this list's."""
    limit, edge = asked.get("limit", LIMIT), None
    if "cursor" in asked:
        try:
            edge = place_parse(".".join(cursor_read(request, asked)), "cursor")
        except BadInput as error:
            raise BadRequest("cursor", "is not of this list", "Take it from `next`.") from error
    found = lines_read(of, **{"before" if newest else "after": edge}, limit=limit + 1, newest=newest)
    last = str(found[limit - 1].place).split(".") if len(found) > limit else None
    return paged(request, asked, [line_as_row(one) for one in found[:limit]], last)
