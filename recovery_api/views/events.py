"""The timeline: who did which step, when, at which generation; allowed and denied."""

from __future__ import annotations

from django.db.models import Q
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.words import words
from recovery_api.models import EventKind
from recovery_api.rows import event_as_row
from recovery_api.schema import operation
from recovery_api.selectors.recoveries import recovery_by_id, timeline
from recovery_api.serializers.fields import Choice, Name, Text, WholeWord
from recovery_api.serializers.shapes import EventShape, page_of
from recovery_api.views.base import ApiView, filtered_pipeline, referenced
from recovery_api.views.paging import PageQuery, page

ID_MOST = 2**63 - 1


class EventsQuery(PageQuery):
    pipeline = Name(help_text="Only of this pipeline.")
    recovery = serializers.UUIDField(help_text="Only of this recovery and its plan.")
    kind = Choice(words(EventKind))
    actor = Text(help_text="Only what this person or worker did.")
    after = WholeWord(min_value=0, max_value=ID_MOST, help_text="Only events with a greater id: to follow.")
    order = Choice(["oldest", "newest"], help_text="oldest first, unless said.")


class Events(ApiView):
    query_class = EventsQuery

    @operation(
        "list_events",
        "What happened, in the order it was written.",
        answer=page_of(EventShape),
        query=EventsQuery,
        errors=[422],
        tag="events",
    )
    def get(self, request: Request) -> Response:
        asked = self.asked
        found = timeline(pipeline=filtered_pipeline(asked), after_id=asked.get("after", 0))
        if "recovery" in asked:
            recovery = referenced("recovery", recovery_by_id, str(asked["recovery"]))
            found = found.filter(Q(recovery=recovery) | Q(plan=recovery.plan_id))
        for name in ("kind", "actor"):
            if name in asked:
                found = found.filter(**{name: asked[name]})
        order = "-id" if asked.get("order") == "newest" else "id"
        return page(request, asked, found, (order,), event_as_row)
